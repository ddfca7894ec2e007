/* SPDX-License-Identifier: MIT */
/*
 * A growing ring of entries behind a lock: the base of filch/deque/locked.h and global.h.
 *
 *     entries    oldest  ...  newest                 slot of the i-th oldest: (oldest + i) & mask
 *     [ free ]  [<------ count ------>]  [ free ]
 *
 * The lock is a mutex of libc: a waiting thread sleeps, and every tool understands it. A full ring
 * is replaced by a ring of twice the size. The lock keeps other readers out, so the old ring is
 * freed at once. Growing is that simple under a lock, so no kind with a lock is bounded.
 *
 * A call also takes the lock to find that the ring is empty. So EMPTY holds at one moment in the
 * total order of all calls. A caller that wants to avoid the lock reads the size hint first:
 * `count` may be read without the lock.
 */
#ifndef FILCH_DEQUE_RING_H
#define FILCH_DEQUE_RING_H

#include <errno.h>
#include <filch/atomic.h>
#include <filch/deque.h>
#include <pthread.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_ring {
    /* Only the holder of the lock writes. */
    pthread_mutex_t lock __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_atomic_u64 count; /* may be read without the lock */
    uint64_t oldest;        /* any start value; may wrap */

    filch_entry *entries __attribute__((aligned(FILCH_CACHE_LINE)));
    uint64_t mask; /* capacity - 1 */
} filch_ring;

#define FILCH_RING_CAPACITY 64 /* the default; the ring grows */
#define FILCH_RING_CAPACITY_MAX (SIZE_MAX / 4 / sizeof(filch_entry))

/* ---- start ----------------------------------------------------------------------------------- */

/* Make room for `capacity` entries, rounded up to a power of two; 0 means 64. The ring grows when
 * it is full. The first entry has index `start`. */
FILCH_INLINE int filch_ring_init(filch_ring *r, size_t capacity, uint64_t start)
{
    uint64_t rounded = 1;
    int err;

    if (capacity > FILCH_RING_CAPACITY_MAX)
        return -EINVAL;
    if (capacity == 0)
        capacity = FILCH_RING_CAPACITY;
    while (rounded < capacity)
        rounded *= 2;
    r->entries = (filch_entry *)calloc(rounded, sizeof(filch_entry));
    if (!r->entries)
        return -ENOMEM;
    err = pthread_mutex_init(&r->lock, NULL);
    if (err)
        goto free_entries;
    r->mask = rounded - 1;
    r->oldest = start;
    /* relaxed: no other thread knows the ring yet. */
    filch_store_relaxed(&r->count, 0);
    return 0;

free_entries:
    free(r->entries);
    return -err;
}

/* ---- under the lock -------------------------------------------------------------------------- */

FILCH_INLINE filch_entry *filch_ring_entry_at(filch_ring *r, uint64_t i)
{
    return &r->entries[(r->oldest + i) & r->mask];
}

/* Replace the ring by one of twice the size. */
FILCH_DEQUE_COLD int filch_ring_grow(filch_ring *r, uint64_t count)
{
    uint64_t mask = 2 * r->mask + 1;
    filch_entry *entries = NULL;

    if (mask < FILCH_RING_CAPACITY_MAX)
        entries = (filch_entry *)calloc(mask + 1, sizeof(filch_entry));
    if (!entries)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++)
        entries[(r->oldest + i) & mask] = *filch_ring_entry_at(r, i);
    free(r->entries);
    r->entries = entries;
    r->mask = mask;
    return 0;
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* Add `entry` as the newest one. -ENOMEM: the ring is full and cannot grow now; a later push may
 * succeed. */
FILCH_INLINE int filch_ring_push(filch_ring *r, filch_entry entry)
{
    int err = 0;

    pthread_mutex_lock(&r->lock);
    /* relaxed: only holders of the lock write it. */
    uint64_t count = filch_load_relaxed(&r->count);
    if (__builtin_expect(count > r->mask, 0))
        err = filch_ring_grow(r, count);
    if (__builtin_expect(!err, 1)) {
        *filch_ring_entry_at(r, count) = entry;
        /* relaxed: the lock orders the entry. */
        filch_store_relaxed(&r->count, count + 1);
    }
    pthread_mutex_unlock(&r->lock);
    return err;
}

/* Take the newest entry. false: the ring is empty. */
FILCH_INLINE bool filch_ring_take_newest(filch_ring *r, filch_entry *entry)
{
    pthread_mutex_lock(&r->lock);
    /* relaxed: only holders of the lock write it. */
    uint64_t count = filch_load_relaxed(&r->count);
    if (count > 0) {
        *entry = *filch_ring_entry_at(r, count - 1);
        filch_store_relaxed(&r->count, count - 1);
    }
    pthread_mutex_unlock(&r->lock);
    return count > 0;
}

/* Take the oldest half of the entries, rounded up, but at most `max`. Returns their number; 0: the
 * ring is empty, or `max` is 0. */
FILCH_INLINE size_t filch_ring_take_oldest(filch_ring *r, filch_entry *entries, size_t max)
{
    pthread_mutex_lock(&r->lock);
    /* relaxed: only holders of the lock write it. */
    uint64_t count = filch_load_relaxed(&r->count);
    uint64_t taken = (count + 1) / 2 < max ? (count + 1) / 2 : max;
    for (uint64_t i = 0; i < taken; i++)
        entries[i] = *filch_ring_entry_at(r, i);
    r->oldest += taken;
    filch_store_relaxed(&r->count, count - taken);
    pthread_mutex_unlock(&r->lock);
    return (size_t)taken;
}

FILCH_INLINE size_t filch_ring_size_hint(filch_ring *r)
{
    /* relaxed: a hint. */
    return (size_t)filch_load_relaxed(&r->count);
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_ring_fini(filch_ring *r)
{
    pthread_mutex_destroy(&r->lock);
    free(r->entries);
}

#ifdef __cplusplus
}
#endif

#endif
