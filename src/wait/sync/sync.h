/* SPDX-License-Identifier: MIT */
/*
 * Shared by locks and signals: a word that is enough for most calls, and behind it a lock and a
 * list.
 *
 *     word      the state of the object, and QUEUED: the list is not empty
 *     lock      for the list, and for QUEUED: both change together
 *     waiters   first come, first served
 *
 * A caller that has to wait begins the wait and acquires the lock. Then one compare and swap of the
 * word decides: the caller need not wait after all, or it sets QUEUED and enters the list.
 *
 * A caller that gives something, and finds no QUEUED, gives it to the word by one compare and swap.
 * If it finds QUEUED, it claims the first waiter whose wait is still open:
 *
 *     lock;  filch_claim(list, &claimed);  unlock;  the word;  filch_claimed_go(&claimed)
 *
 * The giver finishes the wait only after it has released the lock and changed the word. So when the
 * waiter goes on, the giver no longer touches the object, and the waiter may free it without
 * acquiring the lock again.
 *
 * A waiter that is cancelled, or whose deadline passes, before it is claimed gets nothing; the next
 * one is claimed instead. After the claim it cannot be cancelled. No thread wakes a waiter under
 * the lock.
 */
#ifndef FILCH_WAIT_SYNC_SYNC_H
#define FILCH_WAIT_SYNC_SYNC_H

#include "wait/wait.h"

#include <filch/sync.h>

/* The lock and the list of an object of filch/sync.h. */
#define FILCH_LOCK_OF(object) ((filch_lock *)&(object)->lock)
#define FILCH_WAITERS_OF(object) ((filch_waiters *)&(object)->waiters)

/* For checked programs: does any task or thread hold the lock? */
bool filch_mutex_is_held(filch_mutex *mutex);
bool filch_rwlock_is_held(filch_rwlock *rwlock);

/* Waiters whose waits the caller has claimed, in their order. */
typedef struct filch_claimed {
    filch_waiter *first, *last;
} filch_claimed;

static inline bool filch_waiters_is_empty(const filch_waiters *list)
{
    return !list->first;
}

/* Add a waiter that was claimed, and is in no list any more. */
static inline void filch_claimed_add(filch_claimed *claimed, filch_waiter *waiter)
{
    waiter->next = NULL;
    if (claimed->last)
        claimed->last->next = waiter;
    else
        claimed->first = waiter;
    claimed->last = waiter;
}

/* Claim the first waiter whose wait is still open. Under the lock of the list. False: there is
 * none, and the list is empty. */
static inline bool filch_claim(filch_waiters *list, filch_claimed *claimed)
{
    filch_waiter *waiter = filch_waiters_claim(list);

    if (waiter)
        filch_claimed_add(claimed, waiter);
    return waiter != NULL;
}

/* Finish the waits. The caller holds no lock, and the object may be gone. */
static inline void filch_claimed_go(filch_claimed *claimed)
{
    filch_wakes wakes = {NULL, NULL};

    for (filch_waiter *waiter = claimed->first, *next; waiter; waiter = next) {
        next = waiter->next; /* the waiter is gone when its wait is finished */
        filch_waiting_finish(waiter->waiting, waiter->outcome, &wakes);
    }
    filch_wakes_go(&wakes);
}

/* Remove a waiter whose wait has ended early. Under the lock. True: it was the last in the list. */
static inline bool filch_waiters_leave(filch_waiters *list, filch_waiter *waiter)
{
    bool was_listed = waiter->is_listed;

    filch_waiters_remove(list, waiter);
    return was_listed && filch_waiters_is_empty(list);
}

#endif
