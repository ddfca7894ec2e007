/* SPDX-License-Identifier: MIT */
/*
 * The global queue: unbounded, one queue for all threads, behind one lock. Every thread takes the
 * oldest entry.
 *
 *     all threads take  <--  [ oldest  ...  newest ]  <--  all threads push     filch/deque/ring.h
 *
 * It is no deque, and pops and steals are the same. It has the functions of a deque, so that
 * programs can compare work stealing with it. Work is always balanced, and served in the order of
 * its pushes. But every push and pop contends with all other threads for the lock. And a thread
 * rarely pops an entry that it pushed itself while that entry is still in its cache.
 *
 * No steal is ever LOST.
 */
#ifndef FILCH_DEQUE_GLOBAL_H
#define FILCH_DEQUE_GLOBAL_H

#include <filch/deque/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_global {
    filch_ring ring;
} filch_global;

/* ---- start ----------------------------------------------------------------------------------- */

/* As filch_global_init, with the first entry at index `start`: for tests. */
FILCH_INLINE int filch_global_init_at(filch_global *d, size_t capacity, uint64_t start)
{
    return filch_ring_init(&d->ring, capacity, start);
}

/* Make room for `capacity` entries, rounded up to a power of two; 0 means 64. The ring grows when
 * it is full. */
FILCH_INLINE int filch_global_init(filch_global *d, size_t capacity)
{
    return filch_global_init_at(d, capacity, 0);
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* Add `entry` as the newest one. -ENOMEM: the ring is full and cannot grow now; a later push may
 * succeed. */
FILCH_INLINE int filch_global_push(filch_global *d, filch_entry entry)
{
    return filch_ring_push(&d->ring, entry);
}

/* Take the oldest entry. false: the queue is empty. */
FILCH_INLINE bool filch_global_pop(filch_global *d, filch_entry *entry)
{
    return filch_ring_take_oldest(&d->ring, entry, 1) > 0;
}

/* The same as pop. */
FILCH_INLINE filch_steal_result filch_global_steal(filch_global *d, filch_entry *entry)
{
    return filch_global_pop(d, entry) ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY;
}

/* Take the oldest half of the entries, rounded up, but at most `max`; oldest first. */
FILCH_INLINE filch_steal_result filch_global_steal_batch(filch_global *d, filch_entry *entries,
                                                         size_t max, size_t *count)
{
    size_t taken = filch_ring_take_oldest(&d->ring, entries, max);

    if (taken == 0)
        return FILCH_STEAL_EMPTY;
    *count = taken;
    return FILCH_STEAL_WON;
}

FILCH_INLINE size_t filch_global_size_hint(filch_global *d)
{
    return filch_ring_size_hint(&d->ring);
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_global_fini(filch_global *d)
{
    filch_ring_fini(&d->ring);
}

FILCH_DEQUE_FITS(global)
FILCH_DEQUE_BATCH_FITS(global)

#ifdef __cplusplus
}
#endif

#endif
