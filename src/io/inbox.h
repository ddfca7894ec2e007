/* SPDX-License-Identifier: MIT */
/*
 * The inbox of a ring, which its thread submits: operations without a free entry, operations to be
 * tried again, and requests to cancel.
 *
 *     inbox ------------------- the ring's thread -----------------> submitted
 *       |
 *       '-- lookout --> urgent -- the ring's thread ---------------> submitted
 *                          '----- handler of the kick --> served --> completed, by the lookout
 *                                                                    or the ring's thread
 *
 * Any thread may push. The ring's thread takes all entries when it comes to its loop. If the thread
 * computes, the lookout makes one request at a time urgent, and interrupts the thread. The signal's
 * handler may call the kernel but take no lock. If `served` is free, the handler carries the
 * request out and leaves it there.
 *
 * `is_filled` is set while one of the three places is filled. Each change under the lock computes
 * it anew: a request that the handler carries out stays in `urgent` until it is in `served`. Each
 * push rings the bell. After the bell, the thread looks into all three places.
 *
 * Edges
 *   urgent  filch_inbox_hasten -> filch_inbox_begin_urgent, filch_inbox_take_all    carries the
 *           request.
 *   served  filch_inbox_end_urgent -> filch_inbox_take_served    carries the request back.
 *   moved   filch_inbox_end_urgent -> filch_inbox_note    a thread that no longer finds the
 *           request in `urgent` finds it in `served`, or taken from there.
 */
#ifndef FILCH_IO_INBOX_H
#define FILCH_IO_INBOX_H

#include "base/lock.h"
#include "io/op.h"

typedef struct filch_inbox {
    filch_lock lock;
    filch_op *list;                  /* the newest first, under the lock */
    filch_atomic_u32 is_filled;      /* changed under the lock; read without it, a hint */
    FILCH_ATOMIC(filch_op *) urgent; /* put there under the lock */
    FILCH_ATOMIC(filch_op *) served;
} filch_inbox;

static inline bool filch_inbox_seems_empty(filch_inbox *inbox)
{
    /* relaxed: a hint; the bell wakes a thread that waits in the kernel. */
    return !filch_load_relaxed(&inbox->is_filled);
}

/* Under the lock, after a change. */
static inline void filch_inbox_note(filch_inbox *inbox)
{
    /* acquire [moved]; relaxed: as above; the thread whose handler has served a request hears the
     * bell. */
    bool is_filled =
        inbox->list || filch_load_acquire(&inbox->urgent) || filch_load_relaxed(&inbox->served);
    /* relaxed: as above. */
    filch_store_relaxed(&inbox->is_filled, is_filled);
}

/* Under the lock. */
static inline void filch_inbox_add(filch_inbox *inbox, filch_op *op)
{
    op->next = inbox->list;
    inbox->list = op;
    filch_inbox_note(inbox);
}

/* A request to cancel another operation marks that operation. */
static inline void filch_inbox_push(filch_inbox *inbox, filch_op *op)
{
    filch_lock_acquire(&inbox->lock);
    if (op->target && op->target != op)
        op->target->is_cancelled = true;
    filch_inbox_add(inbox, op);
    filch_lock_release(&inbox->lock);
}

/* Put back an operation that is to be submitted again, or later. False: it was cancelled, and the
 * request did not find it in the kernel, so the caller completes it. */
static inline bool filch_inbox_put_back(filch_inbox *inbox, filch_op *op)
{
    filch_lock_acquire(&inbox->lock);
    bool is_wanted = !op->is_cancelled;
    if (is_wanted)
        filch_inbox_add(inbox, op);
    filch_lock_release(&inbox->lock);
    return is_wanted;
}

/* By the ring's thread: take all operations to submit, the oldest first. After this call, take the
 * served request. */
static inline filch_op *filch_inbox_take_all(filch_inbox *inbox)
{
    filch_op *first = NULL, *next;

    filch_lock_acquire(&inbox->lock);
    for (filch_op *op = inbox->list; op; op = next) {
        next = op->next;
        op->next = first;
        first = op;
    }
    inbox->list = NULL;
    /* acquire [urgent]. NULL if the handler, on the same thread, was faster. */
    filch_op *urgent = filch_exchange_acq_rel(&inbox->urgent, NULL);
    if (urgent) {
        urgent->next = first;
        first = urgent;
    }
    filch_inbox_note(inbox);
    filch_lock_release(&inbox->lock);
    return first;
}

/* Under the lock. False: it is not in the list. */
static inline bool filch_inbox_remove(filch_inbox *inbox, filch_op *op)
{
    filch_op **place = &inbox->list;

    while (*place && *place != op)
        place = &(*place)->next;
    if (!*place)
        return false;
    *place = op->next;
    return true;
}

/* Under the lock: the oldest request to cancel; NULL: there is none. */
static inline filch_op *filch_inbox_find_request(filch_inbox *inbox)
{
    filch_op *oldest = NULL;

    for (filch_op *op = inbox->list; op; op = op->next)
        if (op->target)
            oldest = op;
    return oldest;
}

/* By the lookout: make a request urgent. Not NULL: a request whose target was still in the inbox.
 * Both were removed, and the caller completes them, the request last. */
static inline filch_op *filch_inbox_hasten(filch_inbox *inbox)
{
    filch_op *over = NULL;

    filch_lock_acquire(&inbox->lock);
    /* relaxed: requests become urgent under the lock only. */
    filch_op *request = filch_load_relaxed(&inbox->urgent) ? NULL : filch_inbox_find_request(inbox);
    if (request) {
        filch_inbox_remove(inbox, request);
        if (request->target != request && filch_inbox_remove(inbox, request->target)) {
            over = request;
        } else {
            /* release [urgent] */
            filch_store_release(&inbox->urgent, request);
        }
        filch_inbox_note(inbox);
    }
    filch_lock_release(&inbox->lock);
    return over;
}

/* By the lookout: is there a request for the handler? */
static inline bool filch_inbox_has_urgent(filch_inbox *inbox)
{
    /* relaxed: a hint; the ring's thread takes a request that is left. */
    return filch_load_relaxed(&inbox->urgent);
}

/* By the handler: a request to carry out before filch_inbox_end_urgent; NULL: there is none, or the
 * last one served has not been taken yet. */
static inline filch_op *filch_inbox_begin_urgent(filch_inbox *inbox)
{
    /* relaxed: only the handler writes it. acquire [urgent] */
    return filch_load_relaxed(&inbox->served) ? NULL : filch_load_acquire(&inbox->urgent);
}

static inline void filch_inbox_end_urgent(filch_inbox *inbox, filch_op *op)
{
    /* release [served] */
    filch_store_release(&inbox->served, op);
    /* release [moved] */
    filch_store_release(&inbox->urgent, NULL);
}

/* A request that was carried out, to be completed; NULL: there is none. */
static inline filch_op *filch_inbox_take_served(filch_inbox *inbox)
{
    /* relaxed: a hint; the ring's thread looks as long as the inbox is filled. */
    if (!filch_load_relaxed(&inbox->served))
        return NULL;
    filch_lock_acquire(&inbox->lock);
    /* acquire [served] */
    filch_op *op = filch_exchange_acq_rel(&inbox->served, NULL);
    filch_inbox_note(inbox);
    filch_lock_release(&inbox->lock);
    return op;
}

#endif
