/* SPDX-License-Identifier: MIT */
/*
 * How everything that waits does it: a task leaves its strand, a plain thread sleeps in the kernel.
 *
 *     filch_waiting w;                                 on the waiter's stack
 *     filch_waiting_begin(&w, f, "mutex");             from here on the wait can be ended
 *     lock; look once more; put w into a list; unlock
 *     int outcome = filch_waiting_wait(&w, deadline_ns);
 *     if (outcome < 0) { lock; take w off the list, if it is still there; unlock }
 *
 * and the one it waits for, under the same lock:
 *
 *     take w off the list; filch_waiting_end(w, 0, &wakes); unlock; filch_wakes_go(&wakes);
 *
 * A waiter is in a list only as long as it waits, and gets off it under the lock before it goes on: so whoever finds it there, under the lock, may touch
 * it. Of those who end a wait (the one it waits for, its deadline, a cancellation) the first wins: strand/wait_word.h. What is handed over is written after
 * filch_waiting_claim and before filch_waiting_finish. Nobody is resumed under a lock: strands are collected, and go when all is
 * unlocked.
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
    filch_wait own;        /* of a thread; of a strand it is in its header */
    filch_atomic_u32 bell; /* a thread sleeps on this */
    bool is_firm;          /* it ends by itself, whatever the waiter has forked: not with -ENOMEM */
};

/* One place in a list of those who wait. Most have one; who waits for several things has one for each. */
typedef struct filch_waiter filch_waiter;
struct filch_waiter {
    filch_waiter *next, *prev;
    filch_waiting *waiting;
    unsigned outcome; /* how the wait ends if it ends by this one */
    bool is_listed;
    bool may_try;   /* it can be nudged, to look for itself: channel.c */
    bool is_nudged; /* it was; who does it says so under the lock */
    void *data;     /* what is handed over, or where to */
};

/* First come, first served. All zero is empty. Under the lock of whatever has it. */
typedef struct filch_waiters {
    filch_waiter *first, *last;
} filch_waiters;

/* Strands to resume when all is unlocked. */
typedef struct filch_wakes {
    filch_strand *first;
    filch_link **last; /* NULL while there is none */
} filch_wakes;

/* The wait can be ended from here on. `at` says what for, to who looks from outside. */
void filch_waiting_begin(filch_waiting *waiting, filch_frame *f, const char *at);

/* The wait has not been published: forget it. */
void filch_waiting_drop(filch_waiting *waiting);

/*
 * Wait. Returns the outcome, >= 0, or -ETIMEDOUT, or -ECANCELED. What the caller has forked can be stolen meanwhile; or -ENOMEM: nobody could run it, and nothing else
 * ran either (worker/shortage.c). A wait that is shielded, or firm, does not end so.
 * deadline_ns: as from filch_clock_ns; FILCH_NEVER_NS: none.
 */
int filch_waiting_wait(filch_waiting *waiting, uint64_t deadline_ns);

/* End a wait. False: somebody else has. */
bool filch_waiting_end(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes);

/* The same in two steps, with something in between that is handed over. */
bool filch_waiting_claim(filch_waiting *waiting);
void filch_waiting_finish(filch_waiting *waiting, unsigned outcome, filch_wakes *wakes);

/* Let a strand that waits look for itself: its wait ends with FILCH_WAIT_TO_TRY, if nobody ends it otherwise before it goes on. False: somebody else has ended it. */
bool filch_waiting_nudge(filch_waiting *waiting, filch_wakes *wakes);

/* Resume what was collected. The caller holds no lock. */
void filch_wakes_go(filch_wakes *wakes);

/* Add a strand whose wait the caller has ended. */
void filch_wakes_add(filch_wakes *wakes, filch_strand *strand);

/* ---- lists ------------------------------------------------------------------------------------- */

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

/* End the wait of the first in the list for whom nobody else has, and take it off. False: there is none. */
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

/* Claim the first in the list that can be, and take it off; NULL: there is none. The caller hands something over and finishes it. */
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
