/* SPDX-License-Identifier: MIT */
/*
 * A reader-writer lock. sync.h explains the part that all objects share.
 *
 *     word      the number of readers that hold the lock, or WRITER; and QUEUED
 *
 *     read      neither WRITER nor QUEUED: add a reader. Otherwise set QUEUED and wait
 *     write     0: set WRITER. Otherwise set QUEUED and wait
 *     unlock    no QUEUED: subtract the reader, or clear WRITER. QUEUED: under the lock of the
 *               list, the caller leaves, and the next waiters go on: all readers up to the next
 *               writer; or the first waiter, if it writes and no reader is left. If all waiters
 *               have left the list meanwhile, clear QUEUED and begin again
 *
 * No caller overtakes waiters, so readers and writers take turns. A writer waits for the readers
 * that hold the lock, and for the waiters before it. A reader waits for at most one writer that
 * holds the lock, and for the waiters before it. While QUEUED is set, the word changes only under
 * the lock. A waiter that leaves the list early lets the waiters behind it pass.
 *
 * An unlock that finds no waiter to give its share to keeps the share until the lock is released.
 * So the word is its last access, and the next task that locks and unlocks the lock may free it.
 *
 * Edges
 *   rwlock-passed  filch_rwlock_unlock, pass, leave -> take, queue
 *                  carries all that writers wrote; and to writers, that readers are done.
 */
#include "wait/sync/sync.h"

#define QUEUED ((uint32_t)1 << 31)
#define WRITER FILCH_RWLOCK_WRITER

/* The word when one more caller gets the lock; or QUEUED: that caller has to wait. */
static uint32_t with(uint32_t word, bool writes)
{
    if (writes)
        return word == 0 ? WRITER : QUEUED;
    return word & (QUEUED | WRITER) ? QUEUED : word + 1;
}

/* The word when the caller has left. */
static uint32_t without(uint32_t word)
{
    return word & WRITER ? word - WRITER : word - 1;
}

static bool take(filch_rwlock *rwlock, bool writes)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&rwlock->state), next;

    while ((next = with(seen, writes)) != QUEUED)
        /* acquire [rwlock-passed] */
        if (filch_cas_acq_rel(&rwlock->state, &seen, next))
            return true;
    return false;
}

/* Take the lock, or set QUEUED. Under the lock of the list. False: the caller has to wait. */
static bool queue(filch_rwlock *rwlock, bool writes)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&rwlock->state), next;

    do {
        next = with(seen, writes);
        /* acquire [rwlock-passed]; also release all that the word carried so far, for the next
         * unlock under the lock */
    } while (!filch_cas_acq_rel(&rwlock->state, &seen, next == QUEUED ? seen | QUEUED : next));
    return next != QUEUED;
}

/* Claim the waiters that can have the lock now. Returns the word, with QUEUED if a waiter is left.
 * Under the lock of the list. */
static uint32_t grant(filch_rwlock *rwlock, uint32_t word, filch_claimed *claimed)
{
    filch_waiters *list = FILCH_WAITERS_OF(rwlock);

    word &= ~QUEUED;
    for (filch_waiter *waiter = list->first; waiter; waiter = list->first) {
        uint32_t next = with(word, waiter->data != NULL);
        if (next == QUEUED)
            return word | QUEUED;
        filch_waiters_remove(list, waiter);
        if (!filch_waiting_claim(waiter->waiting))
            continue;
        filch_claimed_add(claimed, waiter);
        word = next;
    }
    return word;
}

/* The wait has ended early. The waiters behind this one may have waited only for it. */
static void leave(filch_rwlock *rwlock, filch_waiter *waiter)
{
    filch_claimed claimed = {NULL, NULL};

    filch_lock_acquire(FILCH_LOCK_OF(rwlock));
    if (waiter->is_listed) {
        filch_waiters_remove(FILCH_WAITERS_OF(rwlock), waiter);
        /* relaxed: under the lock. release [rwlock-passed]: of unlocks before, under the same
         * lock. */
        uint32_t seen = filch_load_relaxed(&rwlock->state);
        filch_store_release(&rwlock->state, grant(rwlock, seen, &claimed));
    }
    filch_lock_release(FILCH_LOCK_OF(rwlock));
    filch_claimed_go(&claimed);
}

static int lock_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns, bool writes)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting, .data = writes ? &waiting : NULL};

    if (take(rwlock, writes))
        return 0;
    filch_waiting_begin(&waiting, f, writes ? FILCH_WAITS_WRITE_LOCK : FILCH_WAITS_READ_LOCK,
                        rwlock);
    filch_lock_acquire(FILCH_LOCK_OF(rwlock));
    bool is_taken = queue(rwlock, writes);
    if (!is_taken)
        filch_waiters_push(FILCH_WAITERS_OF(rwlock), &waiter);
    filch_lock_release(FILCH_LOCK_OF(rwlock));
    if (is_taken) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome < 0)
        leave(rwlock, &waiter);
    return outcome;
}

int filch_rwlock_read_lock_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns)
{
    return lock_until(f, rwlock, deadline_ns, false);
}

int filch_rwlock_read_lock(filch_frame *f, filch_rwlock *rwlock)
{
    return lock_until(f, rwlock, FILCH_NEVER_NS, false);
}

int filch_rwlock_write_lock_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns)
{
    return lock_until(f, rwlock, deadline_ns, true);
}

int filch_rwlock_write_lock(filch_frame *f, filch_rwlock *rwlock)
{
    return lock_until(f, rwlock, FILCH_NEVER_NS, true);
}

bool filch_rwlock_try_read_lock(filch_rwlock *rwlock)
{
    return take(rwlock, false);
}

bool filch_rwlock_try_write_lock(filch_rwlock *rwlock)
{
    return take(rwlock, true);
}

/* Give the caller's share to waiters. False: no waiter is left, and the caller still has its
 * share. */
static bool pass(filch_rwlock *rwlock)
{
    filch_claimed claimed = {NULL, NULL};
    bool is_passed = false;

    filch_lock_acquire(FILCH_LOCK_OF(rwlock));
    /* relaxed: under the lock. */
    uint32_t seen = filch_load_relaxed(&rwlock->state);
    if (seen & QUEUED) {
        uint32_t word = grant(rwlock, without(seen), &claimed);
        is_passed = claimed.first || (word & QUEUED);
        /* release [rwlock-passed] */
        filch_store_release(&rwlock->state, is_passed ? word : seen & ~QUEUED);
    }
    filch_lock_release(FILCH_LOCK_OF(rwlock));
    filch_claimed_go(&claimed);
    return is_passed;
}

bool filch_rwlock_is_held(filch_rwlock *rwlock)
{
    /* relaxed: the caller wants to know whether it holds the lock. */
    return filch_load_relaxed(&rwlock->state) & ~QUEUED;
}

void filch_rwlock_unlock(filch_rwlock *rwlock)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&rwlock->state);

    for (;;) {
        if (!(seen & QUEUED)) {
            /* release [rwlock-passed] */
            if (filch_cas_acq_rel(&rwlock->state, &seen, without(seen)))
                return;
        } else {
            if (pass(rwlock))
                return;
            /* relaxed: the cas decides. */
            seen = filch_load_relaxed(&rwlock->state);
        }
    }
}
