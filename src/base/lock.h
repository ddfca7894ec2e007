/* SPDX-License-Identifier: MIT */
/*
 * A mutex of four bytes whose waiters sleep, for short sections off the fast path.
 *
 *     FREE  --- acquire --->  HELD  ---- a waiter stops spinning --->  CONTENDED
 *      ^                        |                                          |
 *      '------- release --------'----------- release, wakes one -----------'
 *
 * CONTENDED means that a thread may sleep. A thread that has slept takes the lock as CONTENDED,
 * because it cannot know whether it was the last sleeper. That costs at most one unneeded wake.
 *
 * The lock blocks the thread, so no strand may suspend while it holds one.
 *
 * Edges
 *   lock-passed  release: state exchange -> acquire, try: state cas or exchange
 *                carries everything the holders so far wrote.
 */
#ifndef FILCH_BASE_LOCK_H
#define FILCH_BASE_LOCK_H

#include "base/futex.h"

/* About a microsecond. Sections are a few list operations long. If one takes longer, its holder has
 * lost its core, perhaps to this thread, and gets the core back sooner when this thread sleeps. */
#ifndef FILCH_LOCK_SPINS /* the model checker sets fewer */
#define FILCH_LOCK_SPINS 40
#endif

enum filch_lock_state {
    FILCH_LOCK_FREE,
    FILCH_LOCK_HELD,      /* and no thread sleeps */
    FILCH_LOCK_CONTENDED, /* and a thread may sleep: release must wake */
};

typedef struct filch_lock {
    filch_atomic_u32 state;
} filch_lock;

/* A lock of all zero bytes is free, too. No fini is needed. */
static inline void filch_lock_init(filch_lock *lock)
{
    /* relaxed: no other thread knows the lock yet. The operation that publishes it orders this
     * store. */
    filch_store_relaxed(&lock->state, FILCH_LOCK_FREE);
}

static inline void filch_lock_acquire(filch_lock *lock)
{
    for (int spins = 0; spins < FILCH_LOCK_SPINS; spins++) {
        /* relaxed: a hint, rechecked by the cas; it leaves the cache line with the holder. */
        uint32_t seen = filch_load_relaxed(&lock->state);
        /* acquire [lock-passed] */
        if (seen == FILCH_LOCK_FREE && filch_cas_acq_rel(&lock->state, &seen, FILCH_LOCK_HELD))
            return;
        filch_pause();
    }
    /* acquire [lock-passed]: if the lock was FREE, we have it. Otherwise its holder must wake. */
    while (filch_exchange_acq_rel(&lock->state, FILCH_LOCK_CONTENDED) != FILCH_LOCK_FREE)
        filch_futex_wait(&lock->state, FILCH_LOCK_CONTENDED, NULL);
}

/* False: another thread holds the lock. */
static inline bool filch_lock_try(filch_lock *lock)
{
    uint32_t seen = FILCH_LOCK_FREE;
    /* acquire [lock-passed] */
    return filch_cas_acq_rel(&lock->state, &seen, FILCH_LOCK_HELD);
}

static inline void filch_lock_release(filch_lock *lock)
{
    /* release [lock-passed] */
    if (filch_exchange_acq_rel(&lock->state, FILCH_LOCK_FREE) == FILCH_LOCK_CONTENDED)
        filch_futex_wake(&lock->state, 1);
}

#endif
