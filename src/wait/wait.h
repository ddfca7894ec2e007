/* SPDX-License-Identifier: MIT */
/*
 * The one way to wait: a task leaves its strand, a plain thread sleeps in the kernel.
 *
 *     filch_waiting w;                                 on the waiter's stack
 *     filch_waiting_begin(&w, f, kind, object);        from here on the wait can be ended
 *     lock; check once more; put w into a list; unlock
 *     int outcome = filch_waiting_wait(&w, deadline_ns);
 *     if (outcome < 0) { lock; remove w from the list, if it is still there; unlock }
 *
 * The object that it waits for, under the same lock:
 *
 *     remove w from the list; filch_waiting_end(w, 0, &wakes); unlock; filch_wakes_go(&wakes);
 *
 * A waiter is in a list only while it waits, and removes itself under the lock before it returns.
 * So a waiter in a list, under the lock, may be touched. The object, the deadline and a
 * cancellation may all end a wait; the first wins (strand/wait_word.h). To hand something over,
 * write it between filch_waiting_claim and filch_waiting_finish. No strand is resumed under a lock:
 * strands are collected, and resumed when all locks are released.
 */
#ifndef FILCH_WAIT_WAIT_H
#define FILCH_WAIT_WAIT_H

#include "worker/worker.h"

typedef struct filch_waiting filch_waiting;
struct filch_waiting {
    filch_frame *f;
    filch_strand *strand; /* NULL: a thread waits */
    filch_wait *wait;
    uint64_t turn;
    filch_wait own;        /* the wait word of a thread; that of a strand is in its header */
    filch_atomic_u32 bell; /* a thread sleeps on this */
    bool is_firm;          /* ends by itself, whatever the waiter has forked: never -ENOMEM */
};

/* An entry in a list of waiters. A waiter has one for each object that it waits for. */
typedef struct filch_waiter filch_waiter;
struct filch_waiter {
    filch_waiter *next, *prev;
    filch_waiting *waiting;
    unsigned outcome; /* of the wait, if this entry ends it */
    bool is_listed;
    bool may_try;   /* the waiter can be nudged: channel.c */
    bool is_nudged; /* the waiter was nudged; written under the lock */
    void *data;     /* the data to hand over, or the place for it */
};

/* First come, first served. All zero is empty. Under the lock of the object. */
typedef struct filch_waiters {
    filch_waiter *first, *last;
} filch_waiters;

/* Strands to resume when all locks are released. */
typedef struct filch_wakes {
    filch_strand *first;
    filch_link **last; /* NULL while there is no strand */
} filch_wakes;

/* Open the wait: from here on it can be ended. The kind and the object are for filch_pool_dump and
 * debuggers (strand/waits.h). */
void filch_waiting_begin(filch_waiting *waiting, filch_frame *f, enum filch_waits kind,
                         const void *object);

/* End a wait that is in no list yet. */
void filch_waiting_drop(filch_waiting *waiting);

/*
 * Wait. Returns the outcome, >= 0, or -ETIMEDOUT, -ECANCELED or -ENOMEM.
 *
 * Tasks that the caller has forked can be stolen meanwhile. -ENOMEM: there was no memory to run
 * these forks, and nothing else ran either (worker/shortage.c). A wait that is shielded, or firm,
 * never ends with -ENOMEM.
 *
 * deadline_ns is a time as from filch_clock_ns; FILCH_NEVER_NS: none.
 */
int filch_waiting_wait(filch_waiting *waiting, uint64_t deadline_ns);

/* End a wait. False: it has ended before. */
bool filch_waiting_end(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes);

/* The same in two steps; in between, the caller hands something over. */
bool filch_waiting_claim(filch_waiting *waiting);
void filch_waiting_finish(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes);

/* Resume a strand without a promise. Its wait ends with FILCH_WAIT_TO_TRY, unless another ender is
 * faster. False: it has ended before. */
bool filch_waiting_nudge(filch_waiting *waiting, filch_wakes *wakes);

/* Resume the collected strands. The caller holds no lock. */
void filch_wakes_go(filch_wakes *wakes);

/* Add a strand whose wait the caller has ended. */
void filch_wakes_add(filch_wakes *wakes, filch_strand *strand);

/* ---- lists ----------------------------------------------------------------------------------- */

static inline void filch_waiters_push(filch_waiters *list, filch_waiter *waiter)
{
    waiter->next = NULL;
    waiter->prev = list->last;
    waiter->is_listed = true;
    if (list->last)
        list->last->next = waiter;
    else
        list->first = waiter;
    list->last = waiter;
}

/* Before all others. */
static inline void filch_waiters_push_front(filch_waiters *list, filch_waiter *waiter)
{
    waiter->prev = NULL;
    waiter->next = list->first;
    waiter->is_listed = true;
    if (list->first)
        list->first->prev = waiter;
    else
        list->last = waiter;
    list->first = waiter;
}

/* Nothing happens if it is in no list. */
static inline void filch_waiters_remove(filch_waiters *list, filch_waiter *waiter)
{
    if (!waiter->is_listed)
        return;
    waiter->is_listed = false;
    if (waiter->prev)
        waiter->prev->next = waiter->next;
    else
        list->first = waiter->next;
    if (waiter->next)
        waiter->next->prev = waiter->prev;
    else
        list->last = waiter->prev;
}

/* End the wait of the first waiter whose wait is still open, and remove it from the list. False:
 * there is none. */
static inline bool filch_waiters_wake(filch_waiters *list, filch_wakes *wakes)
{
    for (filch_waiter *waiter = list->first; waiter; waiter = list->first) {
        filch_waiters_remove(list, waiter);
        if (filch_waiting_end(waiter->waiting, waiter->outcome, wakes))
            return true;
    }
    return false;
}

static inline void filch_waiters_wake_all(filch_waiters *list, filch_wakes *wakes)
{
    while (filch_waiters_wake(list, wakes))
        ;
}

/* Claim the first waiter whose wait is still open, and remove it from the list; NULL: there is
 * none. The caller hands something over and finishes the wait. */
static inline filch_waiter *filch_waiters_claim(filch_waiters *list)
{
    for (filch_waiter *waiter = list->first; waiter; waiter = list->first) {
        filch_waiters_remove(list, waiter);
        if (filch_waiting_claim(waiter->waiting))
            return waiter;
    }
    return NULL;
}

#endif
