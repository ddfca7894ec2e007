/* SPDX-License-Identifier: MIT */
/*
 * Builds with FILCH_DEBUG: which task waits for which mutex, and which task holds it. A circle is
 * printed when the last of its tasks begins to wait.
 *
 *     strand 3 --waits for--> mutex 1 --held by--> strand 5
 *        ^                                            |
 *        '-------held by-- mutex 2 <--waits for-------'
 *
 * All waits are in one list, under one lock. A mutex in the list cannot be freed, and a strand in
 * the list cannot unlock: so a circle that is found exists. Strands outside the list are only
 * compared, never read. Plain threads are not followed, nor are tasks that used
 * filch_mutex_try_lock. The child of a fork() begins with an empty list.
 *
 * In other builds, only the holder is stored.
 */
#ifndef FILCH_WAIT_SYNC_CYCLE_H
#define FILCH_WAIT_SYNC_CYCLE_H

#include "strand/strand.h"

#include <filch/sync.h>

typedef struct filch_lock_wait filch_lock_wait;

#ifdef FILCH_DEBUG

struct filch_lock_wait {
    filch_lock_wait *next, **to;
    filch_strand *strand; /* NULL: a thread; the wait is in no list */
    filch_mutex *mutex;
};

/* The strand waits for `mutex` from the first call until the second. */
void filch_lock_wait_begin(filch_lock_wait *wait, filch_strand *strand, filch_mutex *mutex);
void filch_lock_wait_end(filch_lock_wait *wait);

#else

struct filch_lock_wait {
    char none;
};

#define filch_lock_wait_begin(wait, strand, mutex) ((void)(wait))
#define filch_lock_wait_end(wait) ((void)(wait))
#endif

/* The task of `f` has locked the mutex. For filch_pool_dump and checked programs, in all builds. A
 * serial strand counts as its thread. */
static inline void filch_lock_held(filch_mutex *mutex, const filch_frame *f)
{
    /* relaxed: only the holder itself must not miss its own value. */
    filch_store_relaxed(&mutex->holder, f && filch_strand_of(f)->pool ? filch_strand_of(f) : NULL);
}

static inline void filch_lock_released(filch_mutex *mutex)
{
    /* relaxed: as above. */
    filch_store_relaxed(&mutex->holder, NULL);
}

#endif
