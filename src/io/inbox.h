/* SPDX-License-Identifier: MIT */
/*
 * What a ring is to do that its thread has not submitted: operations that found no place, or are to be tried once more, and requests to take something back.
 *
 *     inbox --------------------- its thread ----------------------> submitted
 *       |
 *       '-- lookout --> urgent -- its thread ----------------------> submitted
 *                          '----- handler of the kick --> served --> ended, by the lookout or its thread
 *
 * Everybody may push. Its thread takes all when it comes to its loop. If it computes, the lookout makes a request to take something back urgent, one at a time, and interrupts the thread: the handler may call the
 * kernel, but take no lock, so it carries the request out and leaves it in `served`. It does so only if nothing lies there.
 *
 * `is_filled` is set while something is in one of the three, and found out anew under the lock: a request that the handler carries out is in `urgent` until it is in `served`. The thread looks into all three when it has heard the bell
 * that was rung when something was pushed.
 *
 * Edges
 *   urgent  filch_inbox_hasten -> filch_inbox_begin_urgent, filch_inbox_take_all    carries the request.
 *   served  filch_inbox_end_urgent -> filch_inbox_take_served    carries it back.
 *   moved   filch_inbox_end_urgent -> filch_inbox_note    who sees that it is not urgent any more sees it served, or taken.
 */
#ifndef FILCH_IO_INBOX_H
#define FILCH_IO_INBOX_H

#include "base/lock.h"
#include "io/op.h"

typedef struct filch_inbox {
    filch_lock lock;
    filch_op *list;                  /* the newest first, under the lock */
    filch_atomic_u32 is_filled;      /* changed under the lock; without it, a hint */
    FILCH_ATOMIC(filch_op *) urgent; /* put there under the lock */
    FILCH_ATOMIC(filch_op *) served;
} filch_inbox;

static inline bool filch_inbox_seems_empty(filch_inbox *inbox)
{
    /* relaxed: a hint; who waits in the kernel is woken by the bell. */
    return !filch_load_relaxed(&inbox->is_filled);
}

/* Under the lock, after a change. */
static inline void filch_inbox_note(filch_inbox *inbox)
{
    /* acquire [moved]; relaxed: as above, and who has served it is told by the bell. */
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

/* A request to take another operation back marks that. */
static inline void filch_inbox_push(filch_inbox *inbox, filch_op *op)
{
    filch_lock_acquire(&inbox->lock);
    if (op->target && op->target != op)
        op->target->is_cancelled = true;
    filch_inbox_add(inbox, op);
    filch_lock_release(&inbox->lock);
}

/* One that is to be carried out once more, or later. False: it has been taken back, and who did that would not find it any more. */
static inline bool filch_inbox_put_back(filch_inbox *inbox, filch_op *op)
{
    filch_lock_acquire(&inbox->lock);
    bool is_wanted = !op->is_cancelled;
    if (is_wanted)
        filch_inbox_add(inbox, op);
    filch_lock_release(&inbox->lock);
    return is_wanted;
}

/* By its thread: all that is to be submitted, the oldest first. What was served has to be taken after that. */
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
    /* acquire [urgent]: or the handler, which is the same thread, has been faster. */
    filch_op *urgent = filch_exchange_acq_rel(&inbox->urgent, NULL);
    if (urgent) {
        urgent->next = first;
        first = urgent;
    }
    filch_inbox_note(inbox);
    filch_lock_release(&inbox->lock);
    return first;
}

/* Under the lock. False: it is not there. */
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

/* Under the lock: the oldest request to take something back; NULL: there is none. */
static inline filch_op *filch_inbox_find_request(filch_inbox *inbox)
{
    filch_op *oldest = NULL;

    for (filch_op *op = inbox->list; op; op = op->next)
        if (op->target)
            oldest = op;
    return oldest;
}

/* By the lookout: make a request urgent. Not NULL: one whose target waited in the inbox itself, so that both are over, and the caller ends them, the request last. */
static inline filch_op *filch_inbox_hasten(filch_inbox *inbox)
{
    filch_op *over = NULL;

    filch_lock_acquire(&inbox->lock);
    /* relaxed: it is put there under the lock only. */
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
    /* relaxed: a hint; its thread takes what is left. */
    return filch_load_relaxed(&inbox->urgent);
}

/* By the handler: a request to carry out, and then filch_inbox_end_urgent; NULL: there is none, or the one before has not been taken yet. */
static inline filch_op *filch_inbox_begin_urgent(filch_inbox *inbox)
{
    /* relaxed: only we put something there. acquire [urgent] */
    return filch_load_relaxed(&inbox->served) ? NULL : filch_load_acquire(&inbox->urgent);
}

static inline void filch_inbox_end_urgent(filch_inbox *inbox, filch_op *op)
{
    /* release [served] */
    filch_store_release(&inbox->served, op);
    /* release [moved] */
    filch_store_release(&inbox->urgent, NULL);
}

/* One that was carried out, to be ended; NULL: there is none. */
static inline filch_op *filch_inbox_take_served(filch_inbox *inbox)
{
    /* relaxed: a hint; its thread looks as long as the inbox is filled. */
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
