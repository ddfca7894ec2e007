/* SPDX-License-Identifier: MIT */
/*
 * A condition. sync.h explains the part that all objects share.
 *
 *     word      QUEUED or 0
 *
 *     wait      enters the list before it unlocks the mutex. So a caller that holds the mutex
 *               later, and signals, finds the waiter
 *     signal    claims the first waiter whose wait is still open
 *
 * The wait locks the mutex again in any case, and that cannot be cancelled. A signal last accesses
 * the condition when it releases the lock. So the waiters that it lets go on may free the
 * condition.
 */
#include "wait/scope.h"
#include "wait/sync/sync.h"

#define QUEUED 1u

/* Under the lock. */
static void update(filch_cond *cond)
{
    /* relaxed: a caller that signals has held the mutex after the waiter, and so sees the store;
     * otherwise its signal comes too early anyway. */
    filch_store_relaxed(&cond->state, filch_waiters_is_empty(FILCH_WAITERS_OF(cond)) ? 0 : QUEUED);
}

int filch_cond_wait_until(filch_frame *f, filch_cond *cond, filch_mutex *mutex,
                          uint64_t deadline_ns)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    filch_waiting_begin(&waiting, f, FILCH_WAITS_CONDITION, cond);
    filch_lock_acquire(FILCH_LOCK_OF(cond));
    filch_waiters_push(FILCH_WAITERS_OF(cond), &waiter);
    update(cond);
    filch_lock_release(FILCH_LOCK_OF(cond));
    filch_mutex_unlock(mutex);
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome < 0) {
        filch_lock_acquire(FILCH_LOCK_OF(cond));
        filch_waiters_remove(FILCH_WAITERS_OF(cond), &waiter);
        update(cond);
        filch_lock_release(FILCH_LOCK_OF(cond));
    }
    filch_frame *shield = filch_shield(f);
    filch_mutex_lock(f, mutex);
    filch_unshield(f, shield);
    return outcome;
}

int filch_cond_wait(filch_frame *f, filch_cond *cond, filch_mutex *mutex)
{
    return filch_cond_wait_until(f, cond, mutex, FILCH_NEVER_NS);
}

static void wake(filch_cond *cond, bool is_for_all)
{
    filch_claimed claimed = {NULL, NULL};

    /* relaxed: as in update. */
    if (!filch_load_relaxed(&cond->state))
        return;
    filch_lock_acquire(FILCH_LOCK_OF(cond));
    while (filch_claim(FILCH_WAITERS_OF(cond), &claimed) && is_for_all)
        ;
    update(cond);
    filch_lock_release(FILCH_LOCK_OF(cond));
    filch_claimed_go(&claimed);
}

void filch_cond_signal(filch_cond *cond)
{
    wake(cond, false);
}

void filch_cond_broadcast(filch_cond *cond)
{
    wake(cond, true);
}
