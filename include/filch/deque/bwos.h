/* SPDX-License-Identifier: MIT */
/*
 * The blocks of BWoS: what filch/deque/bwos_lifo.h and bwos_fifo.h are made of.
 *
 * After Wang, Trach, Fu and others, "BWoS: formally verified block-based work stealing for parallel
 * processing", 2023. README.md in this folder has the protocol, and why it is right.
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
 * A thief copies the entries [i, i + n) and then moves `head` from {tag, i} to {tag, i + n}: if
 * that works they are its own. At no time are entries reserved and not yet taken, so nobody ever
 * waits for a thief. The owner grants entries by moving `granted`, and takes back what is left by
 * giving `head` a new tag; whoever has copied something before that fails. A block that was granted
 * as a whole and taken as a whole is past: at this position nothing comes any more.
 *
 * Thieves that find nothing ask the owner: they overwrite the limit with which it compares in each
 * pop, and at which it looks in each push. Its next call is then slow, and grants what it has, also
 * of a block that is not full. The owner exchanges the limit or leaves it alone, so that no question
 * is lost.
 *
 * Where this leaves the paper
 *   - `head` is both its reserved and its stolen, since thieves copy first. The paper claims
 *     entries, reads them and then counts them as stolen; a thief that is stopped in between keeps
 *     the owner from using the block, and the FIFO queue is then full and empty at once.
 *   - Owner and thieves may be in one block, with a bound between them. So a block need not be full
 *     to be granted, and there need not be a free one to go on with.
 *   - `head` has a tag, in the LIFO queue as well, and any sizes will do.
 *
 * Edges
 *   granted     grant -> take: granted
 *               carries the entries, and all that the owner wrote before pushing them.
 *   new-tag     open, take_back -> take: head
 *               carries granted: who knows the new tag does not take an old bound for its own.
 *   closed      open, take_back: granted -> take: granted
 *               carries where the owner is and what it has granted: a thief that finds nothing
 *               here, as the block is the owner's or is used anew, finds the others as they are.
 *   slot-free   take: head -> take_back, left: head
 *               the thief has read the slots before the owner writes to them again.
 *   passed      take: top -> take: top
 *               carries nothing that is needed: positions before top are past, whoever says so.
 *   asked       settle: limit -> settle: limit
 *               carries nothing that is needed: what a thief writes to the limit is seen by the
 *               owner's next exchange, or is still there after it.
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

/* An index is the lower part of a word: of an entry in its block, of a block in its ring. The tag
 * or the round is the upper part, which may start anywhere and wrap. */
#define FILCH_BWOS_INDEX_BITS 20
#define FILCH_BWOS_INDEX_MAX (((uint64_t)1 << FILCH_BWOS_INDEX_BITS) - 1)
#define FILCH_BWOS_ONE ((uint64_t)1 << FILCH_BWOS_INDEX_BITS) /* one tag, one round */

#define FILCH_BWOS_BLOCK_SIZE 16 /* unless said otherwise, or the capacity is small */
#define FILCH_BWOS_BLOCK_COUNT 32

/* Where something begins or ends in a block. */
typedef FILCH_ATOMIC(filch_deque_slot *) filch_bwos_cursor;

/* The half of an inlined function for the end of a block: not inlined, and not cold. */
#define FILCH_BWOS_SLOW static __attribute__((noinline, unused))

/* Its slots follow in the same memory. */
typedef struct filch_bwos_block {
    filch_atomic_u64 head;    /* {tag, index}: moved by thieves, replaced by the owner */
    filch_atomic_u64 granted; /* {round, index}: written by the owner, read by thieves */
    uint64_t head_seen;       /* owner only: the head was here when it granted, or took back */
} __attribute__((aligned(FILCH_CACHE_LINE))) filch_bwos_block;

/* All of it is constant. */
typedef struct filch_bwos_ring {
    uint64_t size, count; /* entries in a block; blocks */
    char *blocks;
    size_t block_bytes;
    void *memory; /* what free() takes */
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

/* From position `a` to a later one. */
FILCH_INLINE uint64_t filch_bwos_distance(const filch_bwos_ring *r, uint64_t a, uint64_t b)
{
    uint64_t rounds = (filch_bwos_round(b) - filch_bwos_round(a)) >> FILCH_BWOS_INDEX_BITS;
    return rounds * r->count + filch_bwos_index(b) - filch_bwos_index(a);
}

FILCH_INLINE bool filch_bwos_is_after(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) > 0;
}

/* ---- start, stop ------------------------------------------------------------------------------- */

/* All blocks are past, in the round before that of `start`; tags begin there, too. */
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
        /* relaxed: nobody else knows the deque yet. */
        filch_store_relaxed(&b->head, filch_bwos_round(start) | size);
        filch_store_relaxed(&b->granted, (filch_bwos_round(start) - FILCH_BWOS_ONE) | size);
    }
    return 0;
}

/* In blocks of 16 entries, or of an eighth of the capacity if that is less, or of more if there
 * would be too many blocks; and one block more, as some slots of the oldest may be used up. */
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

/* ---- owner ------------------------------------------------------------------------------------- */

/* Use block `b`, of which nobody else has anything, at `position` from its first slot on. */
FILCH_INLINE void filch_bwos_open(filch_bwos_block *b, uint64_t position)
{
    b->head_seen = 0;
    /* release [closed] */
    filch_store_release(&b->granted, filch_bwos_round(position));
    /* relaxed: thieves move it no more. release [new-tag] */
    uint64_t head = filch_load_relaxed(&b->head);
    filch_store_release(&b->head, filch_bwos_round(head) + FILCH_BWOS_ONE);
}

/* How many entries thieves have left, up to `end`. */
FILCH_INLINE uint64_t filch_bwos_left(filch_bwos_block *b, uint64_t end)
{
    /* acquire [slot-free] */
    uint64_t i = filch_bwos_index(filch_load_acquire(&b->head));
    return i < end ? end - i : 0;
}

/* Let thieves have the entries below `end`. */
FILCH_INLINE void filch_bwos_grant(filch_bwos_block *b, uint64_t position, uint64_t end)
{
    /* relaxed: what is seen here need not be the last. */
    b->head_seen = filch_bwos_index(filch_load_relaxed(&b->head));
    /* release [granted] */
    filch_store_release(&b->granted, filch_bwos_round(position) | end);
}

/* Take back what thieves have left, from `end` on. Returns the index of their next entry, which may
 * be beyond it. */
FILCH_INLINE uint64_t filch_bwos_take_back(filch_bwos_block *b, uint64_t position, uint64_t end)
{
    /* release [closed] */
    filch_store_release(&b->granted, filch_bwos_round(position) | end);
    /* release [new-tag], acquire [slot-free] */
    return filch_bwos_index(filch_fetch_add_acq_rel(&b->head, FILCH_BWOS_ONE));
}

/* ---- thieves ----------------------------------------------------------------------------------- */

/* What a thief finds at a position. */
typedef enum filch_bwos_found {
    FILCH_BWOS_WON,
    FILCH_BWOS_LOST,
    FILCH_BWOS_NONE, /* nothing for thieves, or the owner has not come here yet */
    FILCH_BWOS_PAST, /* all is gone, and nothing will come */
} filch_bwos_found;

/* Take up to `max` entries, 1 or more, and say how many. LOST may have written to `entries`. */
FILCH_INLINE filch_bwos_found filch_bwos_take(const filch_bwos_ring *r, uint64_t position,
                                              filch_entry *entries, size_t max, size_t *count)
{
    filch_bwos_block *b = filch_bwos_block_at(r, position);
    /* acquire [new-tag] */
    uint64_t head = filch_load_acquire(&b->head);

    for (;;) {
        /* acquire [granted], [closed]. After head: not older than its tag. */
        uint64_t granted = filch_load_acquire(&b->granted);
        if (filch_bwos_round(granted) != filch_bwos_round(position))
            return filch_bwos_is_after(granted, position) ? FILCH_BWOS_PAST : FILCH_BWOS_NONE;

        uint64_t i = filch_bwos_index(head), end = filch_bwos_index(granted);
        if (i < end) {
            size_t n = end - i < max ? (size_t)(end - i) : max;
            filch_deque_slot *slot = filch_bwos_slots(b) + i;
            /* relaxed: what is granted is there by [granted]. A newer entry comes after a take_back,
             * which has replaced this head, so that the cas fails. */
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
        /* The block was granted as a whole. That it was taken as a whole says only a head of
         * this round, as is every one read from now on. acquire [new-tag] */
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
