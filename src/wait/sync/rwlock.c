/* SPDX-License-Identifier: MIT */
/*
 * A reader-writer lock. sync.h has what it shares with the others.
 *
 *     word      how many readers have it, or WRITER; and QUEUED
 *
 *     read      neither WRITER nor QUEUED: one reader more. Else QUEUED
 *     write     0: WRITER. Else QUEUED
 *     unlock    no QUEUED: one reader less, or no WRITER. QUEUED: under the lock the caller leaves, and those who come next get it: the
 *               first in the list if it writes and nobody reads any more, or all who read up to the next who writes. If all have left the list
 *               meanwhile, no QUEUED, and as above
 *
 * Nobody overtakes those who wait. So readers and writers take turns: a writer waits for the readers that have it and for those before it in the list, a reader
 * for one writer at most that has it and for those before it. While QUEUED is set, the word changes only under the lock. Who leaves the list because its wait
 * has ended early lets those behind it pass.
 *
 * Who unlocks and finds nobody to give it to keeps it until its lock is released: the word is its last touch, and who locks and unlocks it next may free it.
 *
 * Edges
 *   rwlock-passed  filch_rwlock_unlock, pass, leave -> take, queue   carries what writers wrote; and to writers, that readers are done.
 */
#include "wait/sync/sync.h"

#define QUEUED ((uint32_t)1 << 31)
#define WRITER ((uint32_t)1 << 30)

/* What the word becomes when one more gets it; or QUEUED: that one has to wait. */
static uint32_t with(uint32_t word, bool writes)
{
    if (writes)
        return word == 0 ? WRITER : QUEUED;
    return word & (QUEUED | WRITER) ? QUEUED : word + 1;
}

/* When one less has it. */
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

/* Take it, or say that the list is not empty. Under the lock. False: the caller has to wait. */
static bool queue(filch_rwlock *rwlock, bool writes)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&rwlock->state), next;

    do {
        next = with(seen, writes);
        /* acquire [rwlock-passed]; and release what it carried so far, for who unlocks under the lock next */
    } while (!filch_cas_acq_rel(&rwlock->state, &seen, next == QUEUED ? seen | QUEUED : next));
    return next != QUEUED;
}

/* Claim those in the list who can have it now. Returns the word, with QUEUED if somebody is left. Under the lock. */
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

/* The wait has ended early. Those behind it may have waited for it only. */
static void leave(filch_rwlock *rwlock, filch_waiter *waiter)
{
    filch_claimed claimed = {NULL, NULL};

    filch_lock_acquire(FILCH_LOCK_OF(rwlock));
    if (waiter->is_listed) {
        filch_waiters_remove(FILCH_WAITERS_OF(rwlock), waiter);
        /* relaxed: under the lock. release [rwlock-passed]: of those who unlocked before, under the same lock. */
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
    filch_waiting_begin(&waiting, f, writes ? "a lock, to write" : "a lock, to read");
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

int filch_rwlock_read_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns)
{
    return lock_until(f, rwlock, deadline_ns, false);
}

int filch_rwlock_read(filch_frame *f, filch_rwlock *rwlock)
{
    return lock_until(f, rwlock, FILCH_NEVER_NS, false);
}

int filch_rwlock_write_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns)
{
    return lock_until(f, rwlock, deadline_ns, true);
}

int filch_rwlock_write(filch_frame *f, filch_rwlock *rwlock)
{
    return lock_until(f, rwlock, FILCH_NEVER_NS, true);
}

/* Give the caller's share to those who wait. False: it still has it, and nobody waits. */
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
