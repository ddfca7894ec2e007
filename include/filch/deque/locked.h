/* SPDX-License-Identifier: MIT */
/*
 * The locked deque: unbounded, with a lock for each deque. The owner pops the newest entry, thieves
 * steal the oldest.
 *
 *     [ oldest  ...  newest ]        filch/deque/ring.h
 *       ^                  ^
 *       thieves            the owner
 *
 * It is the baseline for the other kinds: work stealing in its simplest form. Only one end can be
 * used at a time. A thread that loses its core while it holds the lock stops all others. In return
 * any thread may make any call, and a thief gets half of the entries for the price of one.
 *
 * No steal is ever LOST.
 */
#ifndef FILCH_DEQUE_LOCKED_H
#define FILCH_DEQUE_LOCKED_H

#include <filch/deque/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_locked {
    filch_ring ring;
} filch_locked;

/* ---- start ----------------------------------------------------------------------------------- */

/* As filch_locked_init, with the first entry at index `start`: for tests. */
FILCH_INLINE int filch_locked_init_at(filch_locked *d, size_t capacity, uint64_t start)
{
    return filch_ring_init(&d->ring, capacity, start);
}

/* Make room for `capacity` entries, rounded up to a power of two; 0 means 64. The ring grows when
 * it is full. */
FILCH_INLINE int filch_locked_init(filch_locked *d, size_t capacity)
{
    return filch_locked_init_at(d, capacity, 0);
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* Add `entry` as the newest one. -ENOMEM: the ring is full and cannot grow now; a later push may
 * succeed. */
FILCH_INLINE int filch_locked_push(filch_locked *d, filch_entry entry)
{
    return filch_ring_push(&d->ring, entry);
}

/* Take the newest entry. false: the deque is empty. */
FILCH_INLINE bool filch_locked_pop(filch_locked *d, filch_entry *entry)
{
    return filch_ring_take_newest(&d->ring, entry);
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* Take the oldest entry. */
FILCH_INLINE filch_steal_result filch_locked_steal(filch_locked *d, filch_entry *entry)
{
    return filch_ring_take_oldest(&d->ring, entry, 1) > 0 ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY;
}

/* Take the oldest half of the entries, rounded up, but at most `max`; oldest first. */
FILCH_INLINE filch_steal_result filch_locked_steal_batch(filch_locked *d, filch_entry *entries,
                                                         size_t max, size_t *count)
{
    size_t taken = filch_ring_take_oldest(&d->ring, entries, max);

    if (taken == 0)
        return FILCH_STEAL_EMPTY;
    *count = taken;
    return FILCH_STEAL_WON;
}

/* ---- any thread ------------------------------------------------------------------------------ */

FILCH_INLINE size_t filch_locked_size_hint(filch_locked *d)
{
    return filch_ring_size_hint(&d->ring);
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_locked_fini(filch_locked *d)
{
    filch_ring_fini(&d->ring);
}

FILCH_DEQUE_FITS(locked)
FILCH_DEQUE_BATCH_FITS(locked)

#ifdef __cplusplus
}
#endif

#endif
