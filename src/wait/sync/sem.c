/* SPDX-License-Identifier: MIT */
/*
 * A semaphore. sync.h explains the part that all objects share.
 *
 *     word      the number of units; or QUEUED, and there are none
 *
 *     acquire   some units: subtract one. None: set QUEUED and wait
 *     release   no QUEUED: add the units. QUEUED: give each unit to the first waiter whose wait is
 *               still open. When the list is empty, make the word 0 and add the remaining units
 *
 * No caller overtakes waiters: while there are waiters, there are no units. While QUEUED is set,
 * the word changes only under the lock.
 *
 * Units are added to the word after the lock was released. That is the last access, so a caller
 * that gets the unit may free the semaphore.
 *
 * Edges
 *   units  give -> take, queue   carries all that came before the release.
 */
#include "wait/sync/sync.h"

#define QUEUED ((uint32_t)1 << 31)

void filch_sem_init(filch_sem *sem, uint32_t count)
{
    *sem = (filch_sem){.state = {count < FILCH_SEM_MAX ? count : FILCH_SEM_MAX}};
}

static bool take(filch_sem *sem)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&sem->state);

    while (seen != 0 && seen != QUEUED)
        /* acquire [units] */
        if (filch_cas_acq_rel(&sem->state, &seen, seen - 1))
            return true;
    return false;
}

/* Take a unit, or set QUEUED. Under the lock. False: the caller has to wait. */
static bool queue(filch_sem *sem)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&sem->state);
    bool has_unit;

    do {
        has_unit = seen != 0 && seen != QUEUED;
        /* acquire [units] */
    } while (!filch_cas_acq_rel(&sem->state, &seen, has_unit ? seen - 1 : QUEUED));
    return has_unit;
}

/* The list has become empty. Under the lock. */
static void unqueue(filch_sem *sem)
{
    /* relaxed: there is no unit that would carry anything. */
    filch_store_relaxed(&sem->state, 0);
}

int filch_sem_acquire_until(filch_frame *f, filch_sem *sem, uint64_t deadline_ns)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    if (take(sem))
        return 0;
    filch_waiting_begin(&waiting, f, FILCH_WAITS_SEMAPHORE, sem);
    filch_lock_acquire(FILCH_LOCK_OF(sem));
    bool is_taken = queue(sem);
    if (!is_taken)
        filch_waiters_push(FILCH_WAITERS_OF(sem), &waiter);
    filch_lock_release(FILCH_LOCK_OF(sem));
    if (is_taken) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome < 0) {
        filch_lock_acquire(FILCH_LOCK_OF(sem));
        if (filch_waiters_leave(FILCH_WAITERS_OF(sem), &waiter))
            unqueue(sem);
        filch_lock_release(FILCH_LOCK_OF(sem));
    }
    return outcome;
}

int filch_sem_acquire(filch_frame *f, filch_sem *sem)
{
    return filch_sem_acquire_until(f, sem, FILCH_NEVER_NS);
}

bool filch_sem_try_acquire(filch_sem *sem)
{
    return take(sem);
}

/* Add the units to the word. False: there are waiters for them. */
static bool give(filch_sem *sem, uint32_t count)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&sem->state);

    while (seen != QUEUED) {
        uint32_t sum = count > FILCH_SEM_MAX - seen ? FILCH_SEM_MAX : seen + count;
        /* release [units] */
        if (filch_cas_acq_rel(&sem->state, &seen, sum))
            return true;
    }
    return false;
}

void filch_sem_release(filch_sem *sem, uint32_t count)
{
    filch_claimed claimed = {NULL, NULL};

    while (count > 0 && !give(sem, count)) {
        filch_waiters *list = FILCH_WAITERS_OF(sem);

        filch_lock_acquire(FILCH_LOCK_OF(sem));
        bool was_queued = !filch_waiters_is_empty(list);
        while (count > 0 && filch_claim(list, &claimed))
            count--;
        if (was_queued && filch_waiters_is_empty(list))
            unqueue(sem);
        filch_lock_release(FILCH_LOCK_OF(sem));
    }
    filch_claimed_go(&claimed);
}
