/* SPDX-License-Identifier: MIT */
/*
 * A barrier: a list of waiters, and their number, under a lock.
 *
 *     wait      if the caller is the last of `count`, all waiters in the list go on. Otherwise it
 *               enters the list
 *
 * The lock decides whether a caller has arrived. A waiter that is cancelled, and is still in the
 * list, leaves it and has not arrived. A waiter that is no longer in the list was counted by the
 * last caller: it has arrived and returns 0. It learns of the cancellation in its next wait.
 */
#include "wait/sync/sync.h"

void filch_barrier_init(filch_barrier *barrier, uint32_t count)
{
    *barrier = (filch_barrier){.count = count};
}

/* Under the lock. */
static bool is_last(const filch_barrier *barrier)
{
    return barrier->waiting + 1 >= barrier->count;
}

/* End the round: release the lock, and let all waiters go on. */
static int end_round(filch_barrier *barrier)
{
    filch_claimed claimed = {NULL, NULL};

    while (filch_claim(FILCH_WAITERS_OF(barrier), &claimed))
        ;
    barrier->waiting = 0;
    filch_lock_release(FILCH_LOCK_OF(barrier));
    filch_claimed_go(&claimed);
    return 1;
}

int filch_barrier_wait(filch_frame *f, filch_barrier *barrier)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    filch_lock_acquire(FILCH_LOCK_OF(barrier));
    if (is_last(barrier))
        return end_round(barrier);
    filch_lock_release(FILCH_LOCK_OF(barrier));

    filch_waiting_begin(&waiting, f, FILCH_WAITS_BARRIER, barrier);
    filch_lock_acquire(FILCH_LOCK_OF(barrier));
    if (is_last(barrier)) {
        int result = end_round(barrier);
        filch_waiting_drop(&waiting);
        return result;
    }
    barrier->waiting++;
    filch_waiters_push(FILCH_WAITERS_OF(barrier), &waiter);
    filch_lock_release(FILCH_LOCK_OF(barrier));

    int outcome = filch_waiting_wait(&waiting, FILCH_NEVER_NS);
    if (outcome >= 0)
        return 0;
    filch_lock_acquire(FILCH_LOCK_OF(barrier));
    bool has_come = !waiter.is_listed;
    filch_waiters_remove(FILCH_WAITERS_OF(barrier), &waiter);
    if (!has_come)
        barrier->waiting--;
    filch_lock_release(FILCH_LOCK_OF(barrier));
    return has_come ? 0 : outcome;
}
