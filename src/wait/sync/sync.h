/* SPDX-License-Identifier: MIT */
/*
 * What locks and signals share: a word that most calls are done with, and behind it a lock and a list of those who wait.
 *
 *     word      what it is, and QUEUED: the list is not empty
 *     lock      for the list, and for QUEUED: both change together
 *     waiters   first come, first served
 *
 * One who finds that it has to wait begins the wait, takes the lock, and then, by one compare and swap of the word, either has what it wanted after all or
 * sets QUEUED; and stands in the list when it lets go of the lock. One who has something to give and finds no QUEUED gives it to the word, by one compare and
 * swap. If it finds QUEUED, it takes the lock, claims the first who still waits, lets go of the lock and of the word, and only then finishes the wait:
 *
 *     lock;  filch_claim(list, &claimed);  unlock;  the word;  filch_claimed_go(&claimed)
 *
 * So nobody goes on before the one who let it has touched the object for the last time, and may free the object: no waiter takes the lock again to make sure. A
 * waiter whose deadline passes or that is cancelled before it is claimed gets nothing, and the next one is claimed instead; afterwards it cannot be
 * cancelled. Nobody is woken under the lock.
 */
#ifndef FILCH_WAIT_SYNC_SYNC_H
#define FILCH_WAIT_SYNC_SYNC_H

#include "wait/wait.h"

#include <filch/sync.h>

/* The lock and the list of something in filch/wait.h. */
#define FILCH_LOCK_OF(object) ((filch_lock *)&(object)->lock)
#define FILCH_WAITERS_OF(object) ((filch_waiters *)&(object)->waiters)

/* Those whose waits the caller has claimed, in their order. */
typedef struct filch_claimed {
    filch_waiter *first, *last;
} filch_claimed;

static inline bool filch_waiters_is_empty(const filch_waiters *list)
{
    return !list->first;
}

/* Add one who was claimed, and is in no list any more. */
static inline void filch_claimed_add(filch_claimed *claimed, filch_waiter *waiter)
{
    waiter->next = NULL;
    if (claimed->last)
        claimed->last->next = waiter;
    else
        claimed->first = waiter;
    claimed->last = waiter;
}

/* Claim the first in the list that can be. Under the lock of the list. False: there is none; the list is empty then. */
static inline bool filch_claim(filch_waiters *list, filch_claimed *claimed)
{
    filch_waiter *waiter = filch_waiters_claim(list);

    if (waiter)
        filch_claimed_add(claimed, waiter);
    return waiter != NULL;
}

/* Let them go on. The caller holds no lock, and the object may be gone. */
static inline void filch_claimed_go(filch_claimed *claimed)
{
    filch_wakes wakes = {NULL, NULL};

    for (filch_waiter *waiter = claimed->first, *next; waiter; waiter = next) {
        next = waiter->next; /* the waiter is gone when its wait is finished */
        filch_waiting_finish(waiter->waiting, waiter->outcome, &wakes);
    }
    filch_wakes_go(&wakes);
}

/* Of one whose wait has ended early: off the list. Under the lock. True: it was the last in it. */
static inline bool filch_waiters_leave(filch_waiters *list, filch_waiter *waiter)
{
    bool was_listed = waiter->is_listed;

    filch_waiters_remove(list, waiter);
    return was_listed && filch_waiters_is_empty(list);
}

#endif
