/* SPDX-License-Identifier: MIT */
/*
 * Builds with FILCH_DEBUG: who waits for which mutex, and who holds it; a circle is printed when the last of it begins to wait.
 *
 *     strand 3 --waits for--> mutex 1 --held by--> strand 5 --waits for--> mutex 2 --held by--> strand 3
 *
 * Tasks that wait are in one list for all, under one lock. A mutex in that list cannot be gone, and a strand in it cannot unlock: so what is found there is so.
 * Strands that are not in it are only compared, never looked into. Plain threads are not followed, nor those who took a mutex by filch_mutex_try_lock.
 *
 * In other builds this is nothing.
 */
#ifndef FILCH_WAIT_SYNC_CYCLE_H
#define FILCH_WAIT_SYNC_CYCLE_H

#include "strand/strand.h"

#include <filch/sync.h>

typedef struct filch_lock_wait filch_lock_wait;

#ifdef FILCH_DEBUG

struct filch_lock_wait {
    filch_lock_wait *next, **to;
    filch_strand *strand; /* NULL: a thread; it is in no list */
    filch_mutex *mutex;
};

/* A strand stands in the list of `mutex`, until the second call. */
void filch_lock_wait_begin(filch_lock_wait *wait, filch_strand *strand, filch_mutex *mutex);
void filch_lock_wait_end(filch_lock_wait *wait);

/* The one who has the handle has locked it, or will unlock it. */
static inline void filch_lock_held(filch_mutex *mutex, const filch_frame *f)
{
    /* relaxed: of those who read it, only the holder itself must not be missed. */
    filch_store_relaxed(&mutex->holder, f ? filch_strand_of(f) : NULL);
}

static inline void filch_lock_released(filch_mutex *mutex)
{
    /* relaxed: as above. */
    filch_store_relaxed(&mutex->holder, NULL);
}

#else

struct filch_lock_wait {
    char none;
};

#define filch_lock_wait_begin(wait, strand, mutex) ((void)(wait))
#define filch_lock_wait_end(wait) ((void)(wait))
#define filch_lock_held(mutex, f) ((void)(mutex))
#define filch_lock_released(mutex) ((void)(mutex))

#endif

#endif
