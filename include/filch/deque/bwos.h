/* SPDX-License-Identifier: MIT */
/*
 * The blocks of BWoS: the base of filch/deque/bwos_lifo.h and bwos_fifo.h.
 *
 * After Wang, Trach, Fu and others, "BWoS: formally verified block-based work stealing for parallel
 * processing", 2023. README.md in this folder explains the protocol, and why it is correct.
 *
 *     ring        block 0   block 1  ...  block count - 1   block 0  ...      positions grow -->
 *
 *     block       0             head            granted                 size
 *                 |     gone     |  for thieves    |  the owner's, free  |
 *
 *     position    {round, block}   one use of a block
 *     head        {tag, index}     the oldest entry that thieves may take
 *     granted     {round, index}   where the entries for thieves end
 *
 * A thief first copies the entries [i, i + n), and then moves `head` from {tag, i} to {tag, i + n}.
 * If the move succeeds, the thief has the entries. No entry is ever reserved but not yet taken, so
 * no thread ever waits for a thief.
 *
 * The owner grants entries by moving `granted`. It reclaims the remaining entries by giving `head`
 * a new tag. A thief that copied entries before that fails to move `head`. A block is past when it
 * was granted as a whole and taken as a whole: nothing more comes at this position.
 *
 * A thief that finds nothing asks the owner: it overwrites the limit, which the owner compares with
 * in each pop and reads in each push. The owner's next call is then slow and grants all entries it
 * has, even in a block that is not full. The owner either exchanges the limit or leaves it alone,
 * so no request is lost.
 *
 * Where this leaves the paper
 *   - `head` is both the paper's reserved and its stolen, since thieves copy first. The paper's
 *     thief reserves entries, reads them and then counts them as stolen. If it is stopped in
 *     between, the owner cannot use the block, and the FIFO queue can be full and empty at once.
 *   - Owner and thieves may use the same block, with a bound between them. So the owner may grant a
 *     block that is not full, and needs no free block to go on.
 *   - `head` has a tag in the LIFO deque, too, and block sizes and counts are arbitrary.
 *
 * Edges
 *   granted     grant -> take: granted
 *               carries the entries, and everything the owner wrote before pushing them.
 *   new-tag     open, take_back -> take: head
 *               carries granted: a thief that sees the new tag never pairs it with an old bound.
 *   closed      open, take_back: granted -> take: granted
 *               carries the owner's position and its grants. If a thief finds nothing because the
 *               owner has closed or reopened the block, it sees the other blocks as they are.
 *   slot-free   take: head -> take_back, left: head
 *               the thief has read the slots before the owner writes to them again.
 *   passed      take: top -> take: top
 *               carries nothing that is needed: all positions before any value of top are past.
 *   asked       settle: limit -> settle: limit
 *               carries nothing that is needed: the owner's next exchange sees a thief's request,
 *               or the request is still there afterwards.
 */
#ifndef FILCH_DEQUE_BWOS_H
#define FILCH_DEQUE_BWOS_H

#include <errno.h>
#include <filch/atomic.h>
#include <filch/deque.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A word is {tag or round, index}. The index, in the low bits, is that of an entry in its block or
 * of a block in its ring. The tag or round, in the high bits, may start anywhere and wrap. */
#define FILCH_BWOS_INDEX_BITS 20
#define FILCH_BWOS_INDEX_MAX (((uint64_t)1 << FILCH_BWOS_INDEX_BITS) - 1)
#define FILCH_BWOS_ONE ((uint64_t)1 << FILCH_BWOS_INDEX_BITS) /* one tag, one round */

#define FILCH_BWOS_BLOCK_SIZE 16 /* the default, unless the capacity is small */
#define FILCH_BWOS_BLOCK_COUNT 32

/* A boundary in a block. */
typedef FILCH_ATOMIC(filch_deque_slot *) filch_bwos_cursor;

/* The half of an inlined function for the end of a block: not inlined, but not cold. */
#define FILCH_BWOS_SLOW static __attribute__((noinline, unused))

/* The slots of the block follow in the same memory. */
typedef struct filch_bwos_block {
    filch_atomic_u64 head;    /* {tag, index}: moved by thieves, replaced by the owner */
    filch_atomic_u64 granted; /* {round, index}: written by the owner, read by thieves */
    uint64_t head_seen;       /* owner only: index of head at its last grant or take_back */
} __attribute__((aligned(FILCH_CACHE_LINE))) filch_bwos_block;

/* All members are constant. */
typedef struct filch_bwos_ring {
    uint64_t size, count; /* entries per block; number of blocks */
    char *blocks;
    size_t block_bytes;
    void *memory; /* for free() */
} filch_bwos_ring;

FILCH_INLINE uint64_t filch_bwos_index(uint64_t word)
{
    return word & FILCH_BWOS_INDEX_MAX;
}

FILCH_INLINE uint64_t filch_bwos_round(uint64_t word)
{
    return word & ~FILCH_BWOS_INDEX_MAX;
}

FILCH_INLINE filch_bwos_block *filch_bwos_block_at(const filch_bwos_ring *r, uint64_t position)
{
    return (filch_bwos_block *)(void *)(r->blocks + filch_bwos_index(position) * r->block_bytes);
}

FILCH_INLINE filch_deque_slot *filch_bwos_slots(filch_bwos_block *b)
{
    return (filch_deque_slot *)(b + 1);
}

FILCH_INLINE uint64_t filch_bwos_next(const filch_bwos_ring *r, uint64_t position)
{
    bool is_last = filch_bwos_index(position) + 1 == r->count;
    return is_last ? filch_bwos_round(position) + FILCH_BWOS_ONE : position + 1;
}

FILCH_INLINE uint64_t filch_bwos_previous(const filch_bwos_ring *r, uint64_t position)
{
    return filch_bwos_index(position) > 0 ? position - 1 : position - FILCH_BWOS_ONE + r->count - 1;
}

/* The distance from position `a` to `b`, which is not before `a`. */
FILCH_INLINE uint64_t filch_bwos_distance(const filch_bwos_ring *r, uint64_t a, uint64_t b)
{
    uint64_t rounds = (filch_bwos_round(b) - filch_bwos_round(a)) >> FILCH_BWOS_INDEX_BITS;
    return rounds * r->count + filch_bwos_index(b) - filch_bwos_index(a);
}

FILCH_INLINE bool filch_bwos_is_after(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) > 0;
}

/* ---- start, stop ----------------------------------------------------------------------------- */

/* All blocks start as past, in the round before `start`. Tags begin with the round of `start`. */
FILCH_INLINE int filch_bwos_ring_init(filch_bwos_ring *r, size_t size, size_t count, uint64_t start)
{
    const size_t line = FILCH_CACHE_LINE;

    if (size < 1 || size > FILCH_BWOS_INDEX_MAX || count < 2 || count > FILCH_BWOS_INDEX_MAX)
        return -EINVAL;
    size_t slot_bytes = (size * sizeof(filch_deque_slot) + line - 1) / line * line;
    r->size = size;
    r->count = count;
    r->block_bytes = sizeof(filch_bwos_block) + slot_bytes;
    r->memory = calloc(1, count * r->block_bytes + line);
    if (!r->memory)
        return -ENOMEM;
    r->blocks = (char *)(((uintptr_t)r->memory + line - 1) / line * line);
    for (uint64_t i = 0; i < count; i++) {
        filch_bwos_block *b = filch_bwos_block_at(r, i);
        /* relaxed: no other thread knows the deque yet. */
        filch_store_relaxed(&b->head, filch_bwos_round(start) | size);
        filch_store_relaxed(&b->granted, (filch_bwos_round(start) - FILCH_BWOS_ONE) | size);
    }
    return 0;
}

/* Blocks have 16 entries, or an eighth of the capacity if that is less. They are larger if there
 * would be too many of them. One more block makes up for slots of the oldest block that are used
 * up. */
FILCH_INLINE int filch_bwos_ring_init_capacity(filch_bwos_ring *r, size_t capacity, uint64_t start)
{
    size_t size = FILCH_BWOS_BLOCK_SIZE;

    if (capacity == 0)
        return filch_bwos_ring_init(r, size, FILCH_BWOS_BLOCK_COUNT, start);
    if (capacity / 8 < size)
        size = capacity < 8 ? 1 : capacity / 8;
    while (capacity / size + 2 > FILCH_BWOS_INDEX_MAX && size <= FILCH_BWOS_INDEX_MAX)
        size *= 2;
    return filch_bwos_ring_init(r, size, (capacity - 1) / size + 2, start);
}

FILCH_INLINE void filch_bwos_ring_fini(filch_bwos_ring *r)
{
    free(r->memory);
}

/* ---- owner ----------------------------------------------------------------------------------- */

/* Open block `b` at `position`, from its first slot on. No other thread may have anything in it. */
FILCH_INLINE void filch_bwos_open(filch_bwos_block *b, uint64_t position)
{
    b->head_seen = 0;
    /* release [closed] */
    filch_store_release(&b->granted, filch_bwos_round(position));
    /* relaxed: thieves no longer move it. release [new-tag] */
    uint64_t head = filch_load_relaxed(&b->head);
    filch_store_release(&b->head, filch_bwos_round(head) + FILCH_BWOS_ONE);
}

/* The number of entries below `end` that thieves have not taken. */
FILCH_INLINE uint64_t filch_bwos_left(filch_bwos_block *b, uint64_t end)
{
    /* acquire [slot-free] */
    uint64_t i = filch_bwos_index(filch_load_acquire(&b->head));
    return i < end ? end - i : 0;
}

/* Let thieves have the entries below `end`. */
FILCH_INLINE void filch_bwos_grant(filch_bwos_block *b, uint64_t position, uint64_t end)
{
    /* relaxed: an older value will do. */
    b->head_seen = filch_bwos_index(filch_load_relaxed(&b->head));
    /* release [granted] */
    filch_store_release(&b->granted, filch_bwos_round(position) | end);
}

/* Reclaim the entries from `end` on that thieves have not taken. Returns the index of the thieves'
 * next entry, which may be above `end`. */
FILCH_INLINE uint64_t filch_bwos_take_back(filch_bwos_block *b, uint64_t position, uint64_t end)
{
    /* release [closed] */
    filch_store_release(&b->granted, filch_bwos_round(position) | end);
    /* release [new-tag], acquire [slot-free] */
    return filch_bwos_index(filch_fetch_add_acq_rel(&b->head, FILCH_BWOS_ONE));
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* The outcome of a thief's look at one position. */
typedef enum filch_bwos_found {
    FILCH_BWOS_WON,
    FILCH_BWOS_LOST,
    FILCH_BWOS_NONE, /* nothing for thieves, or the owner has not been here yet */
    FILCH_BWOS_PAST, /* all entries are taken, and no more will come */
} filch_bwos_found;

/* Take up to `max` entries and store their number in *count; `max` is at least 1. LOST may have
 * written to `entries`. */
FILCH_INLINE filch_bwos_found filch_bwos_take(const filch_bwos_ring *r, uint64_t position,
                                              filch_entry *entries, size_t max, size_t *count)
{
    filch_bwos_block *b = filch_bwos_block_at(r, position);
    /* acquire [new-tag] */
    uint64_t head = filch_load_acquire(&b->head);

    for (;;) {
        /* acquire [granted], [closed]. After the load of head: at least as new as its tag. */
        uint64_t granted = filch_load_acquire(&b->granted);
        if (filch_bwos_round(granted) != filch_bwos_round(position))
            return filch_bwos_is_after(granted, position) ? FILCH_BWOS_PAST : FILCH_BWOS_NONE;

        uint64_t i = filch_bwos_index(head), end = filch_bwos_index(granted);
        if (i < end) {
            size_t n = end - i < max ? (size_t)(end - i) : max;
            filch_deque_slot *slot = filch_bwos_slots(b) + i;
            /* relaxed: [granted] carries the granted entries. A newer entry follows a take_back,
             * which replaces this head, so that the cas fails. */
            for (size_t k = 0; k < n; k++)
                entries[k] = filch_load_relaxed(slot + k);
            /* release [slot-free] */
            if (!filch_cas_acq_rel(&b->head, &head, head + n))
                return FILCH_BWOS_LOST;
            *count = n;
            return FILCH_BWOS_WON;
        }
        if (end < r->size)
            return FILCH_BWOS_NONE;
        /* The block was granted as a whole. Only a head of this round tells that it was taken as a
         * whole; every head read from now on is of this round. acquire [new-tag] */
        uint64_t again = filch_load_acquire(&b->head);
        if (again == head)
            return FILCH_BWOS_PAST;
        head = again;
    }
}

#ifdef __cplusplus
}
#endif

#endif
