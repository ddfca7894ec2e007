/* SPDX-License-Identifier: MIT */
/*
 * The ABP deque: bounded. The owner pops the newest entry, thieves steal the oldest.
 *
 * After Arora, Blumofe and Plaxton, "Thread scheduling for multiprogrammed multiprocessors", 1998:
 * the first lock-free deque for work stealing.
 *
 *     slot    0             top                     bottom            capacity
 *             |   stolen     |  oldest  ...  newest  |      free       |
 *                              thieves take here -->    <-- the owner pushes and pops here
 *
 *     age     |        tag         |    top    |      one word
 *
 * The thread that moves `age` from {tag, top} to {tag, top + 1} gets the entry at top. The owner
 * takes the entry below `bottom` by moving `bottom` down. Only for the last entry, which thieves
 * want as well, the owner has to move `age`, too. After that, or when there was no entry, the owner
 * starts again at slot 0 with a new tag. A thief may have read a slot before the owner refills it.
 * The new tag stops that thief: it cannot move `age`, although `top` has the old value.
 *
 * The capacity shrinks. The array is no ring: the slots that thieves have emptied become free only
 * when the owner has popped all the rest and starts again. With 8 slots:
 *
 *     push 8 entries    [ a b c d e f g h ]   bottom 8, top 0
 *     6 are stolen      [ . . . . . . g h ]   bottom 8, top 6: full, with 2 entries
 *     pop h             [ . . . . . . g   ]   bottom 7, top 6: there is room for one
 *     pop g             [                 ]   bottom 0, top 0: there is room for 8
 *
 * After -ENOBUFS the owner may pop and push again. It either gets its newest entry, or finds the
 * deque empty and has all the room again. If thieves take everything, an owner that only pushes
 * never gets that room.
 *
 * Where this leaves the paper
 *   - The paper has no memory model. Here the operations carry the orders; the paper's machine gave
 *     [last-entry] for free.
 *   - The tag has all the bits that `top` does not need: at least 32, and 53 with the default
 *     capacity. It grows by one at each new start. At one start in 5 ns, 32 bits wrap after 21
 *     seconds, and a thread may well be stopped that long. 53 bits wrap after a year.
 *
 * Edges
 *   entry-ready   push: bottom -> steal: bottom
 *                 carries the slot, and everything the owner wrote before the push. Pop stores
 *                 bottom, too, and carries the same.
 *   new-tag       pop: age -> steal: age
 *                 carries bottom: a thief that sees the new tag never pairs it with the old bottom.
 *   slot-free     steal: age -> pop: age
 *                 the thief has read the slot before the owner starts again and writes to it.
 *   last-entry    pop: bottom store, age load  x  steal: age load and cas, bottom load
 *                 forbidden: both sides take entry b. The owner would miss that top has reached b,
 *                 and take it without moving age. The thief that moves age past b would miss that
 *                 bottom is down at b.
 */
#ifndef FILCH_DEQUE_ABP_H
#define FILCH_DEQUE_ABP_H

#include <errno.h>
#include <filch/atomic.h>
#include <filch/deque.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_abp {
    /* {tag, top}. Moved by thieves, and by the owner when it takes the last entry or finds none. */
    filch_atomic_u64 age __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Written by the owner, read by thieves. */
    filch_atomic_u64 bottom __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_deque_slot *slots; /* constant, like the two below */
    uint64_t top_mask;       /* the bits of top in age */
    uint64_t capacity;
    filch_deque_owner owner;
} filch_abp;

#define FILCH_ABP_CAPACITY 1024 /* the default */
#define FILCH_ABP_CAPACITY_MAX UINT32_MAX

/* ---- start ----------------------------------------------------------------------------------- */

/* As filch_abp_init, with the highest bits of `start` as the first tag: for tests. */
FILCH_INLINE int filch_abp_init_at(filch_abp *d, size_t capacity, uint64_t start)
{
    uint64_t mask = 1;

    if (capacity > FILCH_ABP_CAPACITY_MAX)
        return -EINVAL;
    if (capacity == 0)
        capacity = FILCH_ABP_CAPACITY;
    while (mask < capacity) /* top is at most capacity */
        mask = 2 * mask + 1;
    d->slots = (filch_deque_slot *)calloc(capacity, sizeof(filch_deque_slot));
    if (!d->slots)
        return -ENOMEM;
    d->top_mask = mask;
    d->capacity = capacity;
    /* relaxed: no other thread knows the deque yet. */
    filch_store_relaxed(&d->age, start & ~mask);
    filch_store_relaxed(&d->bottom, 0);
    filch_store_relaxed(&d->owner, (const void *)NULL);
    return 0;
}

/* Make room for exactly `capacity` entries, at most UINT32_MAX, while nothing is stolen. 0 means
 * 1024. */
FILCH_INLINE int filch_abp_init(filch_abp *d, size_t capacity)
{
    return filch_abp_init_at(d, capacity, 0);
}

/* ---- owner ----------------------------------------------------------------------------------- */

/* Add `entry` as the newest one. -ENOBUFS: the last slot is in use. */
FILCH_INLINE int filch_abp_push(filch_abp *d, filch_entry entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: only the owner writes bottom. */
    uint64_t b = filch_load_relaxed(&d->bottom);

    if (__builtin_expect(b >= d->capacity, 0))
        return -ENOBUFS;
    /* relaxed: ordered by the release below. */
    filch_store_relaxed(&d->slots[b], entry);
    /* release [entry-ready] */
    filch_store_release(&d->bottom, b + 1);
    return 0;
}

/* Take the newest entry. false: the deque was empty, or a thief took the last entry; all slots are
 * free now. */
FILCH_INLINE bool filch_abp_pop(filch_abp *d, filch_entry *entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: only the owner writes bottom. */
    uint64_t b = filch_load_relaxed(&d->bottom);

    if (b == 0)
        return false;
    b--;
    /* seq_cst [last-entry], release [entry-ready] */
    filch_store_seq_cst(&d->bottom, b);
    /* seq_cst [last-entry], acquire [slot-free] */
    uint64_t age = filch_load_seq_cst(&d->age);
    uint64_t t = age & d->top_mask;

    /* relaxed: the owner wrote the slot. */
    filch_entry newest = filch_load_relaxed(&d->slots[b]);
    if (__builtin_expect(b > t, 1)) {
        *entry = newest;
        return true;
    }

    /* The last entry, or none: start again. relaxed: ordered by [new-tag]; under the old tag
     * nothing is left to take. */
    filch_store_relaxed(&d->bottom, 0);
    uint64_t new_age = (age | d->top_mask) + 1; /* {tag + 1, 0} */
    /* release [new-tag], acquire [slot-free] */
    if (b == t && filch_cas_acq_rel(&d->age, &age, new_age)) {
        *entry = newest;
        return true;
    }
    /* A thief has the entry. No other thief can move age now, as bottom is not above top. release
     * [new-tag] */
    filch_store_release(&d->age, new_age);
    return false;
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* Take the oldest entry. */
FILCH_INLINE filch_steal_result filch_abp_steal(filch_abp *d, filch_entry *entry)
{
    /* seq_cst [last-entry], acquire [new-tag] */
    uint64_t age = filch_load_seq_cst(&d->age);
    /* seq_cst [last-entry], acquire [entry-ready] */
    uint64_t b = filch_load_seq_cst(&d->bottom);
    uint64_t t = age & d->top_mask;

    if (b <= t)
        return FILCH_STEAL_EMPTY;
    /* relaxed: the cas below decides whether this is the entry at top. Read before the cas: after
     * it, the owner may reuse the slot. */
    filch_entry oldest = filch_load_relaxed(&d->slots[t]);
    /* seq_cst [last-entry], release [slot-free] */
    if (!filch_cas_seq_cst(&d->age, &age, age + 1))
        return FILCH_STEAL_LOST;
    *entry = oldest;
    return FILCH_STEAL_WON;
}

/* ---- any thread ------------------------------------------------------------------------------ */

FILCH_INLINE size_t filch_abp_size_hint(filch_abp *d)
{
    /* relaxed: a hint. */
    uint64_t b = filch_load_relaxed(&d->bottom), t = filch_load_relaxed(&d->age) & d->top_mask;
    return b > t ? (size_t)(b - t) : 0;
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_abp_fini(filch_abp *d)
{
    free(d->slots);
}

FILCH_DEQUE_FITS(abp)

#ifdef __cplusplus
}
#endif

#endif
