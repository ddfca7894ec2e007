/* SPDX-License-Identifier: MIT */
/*
 * A mutex of four bytes that lets threads sleep, for short sections off the fast path.
 *
 *     FREE  --- acquire --->  HELD  --- another gave up spinning --->  CONTENDED
 *      ^                        |                                          |
 *      '------- release --------'----------- release, wakes one -----------'
 *
 * CONTENDED means that somebody may sleep. One who has slept takes the lock as CONTENDED,
 * because it cannot know whether it was the last; that costs at most one wake for nobody.
 *
 * It blocks the thread, so no strand may be suspended while it holds one.
 *
 * Edges
 *   lock-passed  release: state exchange -> acquire, try: state cas or exchange
 *                carries all that the holders so far wrote.
 */
#ifndef FILCH_BASE_LOCK_H
#define FILCH_BASE_LOCK_H

#include "base/futex.h"

/* About a microsecond. Sections are a few list operations long: one that takes longer has
 * lost its core, perhaps to us, and gets it back sooner when we sleep. */
#ifndef FILCH_LOCK_SPINS /* the model checker has fewer */
#define FILCH_LOCK_SPINS 40
#endif

enum filch_lock_state {
    FILCH_LOCK_FREE,
    FILCH_LOCK_HELD,      /* and nobody sleeps */
    FILCH_LOCK_CONTENDED, /* and somebody may sleep: release must wake */
};

typedef struct filch_lock {
    filch_atomic_u32 state;
} filch_lock;

/* All zero is a free lock, too. There is nothing to undo. */
static inline void filch_lock_init(filch_lock *lock)
{
    /* relaxed: nobody else knows the lock yet; whatever makes it known orders this. */
    filch_store_relaxed(&lock->state, FILCH_LOCK_FREE);
}

static inline void filch_lock_acquire(filch_lock *lock)
{
    for (int spins = 0; spins < FILCH_LOCK_SPINS; spins++) {
        /* relaxed: a hint, rechecked by the cas; it leaves the line with its holder. */
        uint32_t seen = filch_load_relaxed(&lock->state);
        /* acquire [lock-passed] */
        if (seen == FILCH_LOCK_FREE && filch_cas_acq_rel(&lock->state, &seen, FILCH_LOCK_HELD))
            return;
        filch_pause();
    }
    /* acquire [lock-passed]: if it was FREE it is ours, else marked for its holder. */
    while (filch_exchange_acq_rel(&lock->state, FILCH_LOCK_CONTENDED) != FILCH_LOCK_FREE)
        filch_futex_wait(&lock->state, FILCH_LOCK_CONTENDED, NULL);
}

/* False: somebody has it. */
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
