/* SPDX-License-Identifier: MIT */
/*
 * The BWoS deque, last in, first out: bounded. The owner pops the newest entry, thieves steal the
 * oldest. If there are enough entries, owner and thieves work in different blocks.
 *
 * filch/deque/bwos.h names the paper, describes the blocks, and lists the differences.
 *
 *     position         top                                  position
 *        past           |  granted   granted    granted  |  granted | base ... tail ... end
 *     ------------------+-------------------------------+----------+--------------------------->
 *                        thieves take here -->             the owner pushes and pops here
 *
 * The owner has [base, tail) of its block, which thieves never read. When the block is full, the
 * owner grants all of it and opens the next one, if that is free. When the owner has nothing left,
 * it reclaims the granted entries of its block, or else the block before. One read-modify-write
 * reclaims a whole block.
 *
 * When is it full? The slot of a stolen entry is not free until the rest of its block is stolen,
 * too, or pop finds the deque empty. So between (blocks - 1) * size + 1 and blocks * size entries
 * fit, whatever thieves do.
 *
 * Which entries can be stolen? Only the owner can take the entries [base, tail). A steal that finds
 * nothing else returns EMPTY and leaves a request:
 *   - When the owner has finished its next push or pop, all entries in the deque can be stolen.
 *     (That call may be in progress already, or begin after the steal has returned.)
 *   - From then on, until an entry is stolen or the deque is empty, no steal returns EMPTY. To that
 *     end the owner reclaims only half of the granted entries at a time.
 *   - Once the deque was empty, only the owner can take a new entry: a steal returns EMPTY, and
 *     leaves a new request.
 * So thieves starve only if the owner makes no calls, or pops all entries after each answer.
 *
 * No call waits for another thread, wherever that thread is stopped. The owner can reclaim every
 * entry that a thief has not taken, and never needs to know whether a thief has finished.
 *
 * Edges: those of filch/deque/bwos.h.
 */
#ifndef FILCH_DEQUE_BWOS_LIFO_H
#define FILCH_DEQUE_BWOS_LIFO_H

#include <filch/deque/bwos.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_bwos_lifo {
    /* Owner only; but any thread reads tail and position for the size hint. */
    filch_bwos_cursor tail __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_deque_slot *base, *end;
    filch_bwos_block *block;
    filch_atomic_u64 position; /* of the block */
    bool is_sharing;           /* a thief has asked, and no entry was stolen since */
    filch_deque_owner owner;

    /* base, or ASKED. The owner reads it in each push and pop, thieves overwrite it. */
    filch_bwos_cursor limit __attribute__((aligned(FILCH_CACHE_LINE)));

    /* All positions before it are past. Moved by thieves. */
    filch_atomic_u64 top __attribute__((aligned(FILCH_CACHE_LINE)));

    filch_bwos_ring ring __attribute__((aligned(FILCH_CACHE_LINE)));
} filch_bwos_lifo;

/* The limit that a thief sets: it makes every push and pop slow. */
#define FILCH_BWOS_ASKED ((filch_deque_slot *)UINTPTR_MAX)

/* ---- start ----------------------------------------------------------------------------------- */

/* Move the owner to block `b`. Thieves have its entries below `base`, the owner has [base,
 * tail). */
FILCH_INLINE void filch_bwos_lifo_go_to(filch_bwos_lifo *d, filch_bwos_block *b, uint64_t position,
                                        uint64_t base, uint64_t tail)
{
    filch_deque_slot *slots = filch_bwos_slots(b);

    d->block = b;
    d->base = slots + base;
    d->end = slots + d->ring.size;
    /* relaxed: own variables; hints for other threads. */
    filch_store_relaxed(&d->tail, slots + tail);
    filch_store_relaxed(&d->position, position);
}

FILCH_INLINE void filch_bwos_lifo_start(filch_bwos_lifo *d, uint64_t start)
{
    uint64_t position = filch_bwos_round(start);
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, position);

    d->is_sharing = false;
    filch_bwos_open(b, position);
    filch_bwos_lifo_go_to(d, b, position, 0, 0);
    /* relaxed: no other thread knows the deque yet. */
    filch_store_relaxed(&d->limit, d->base);
    filch_store_relaxed(&d->top, position);
    filch_store_relaxed(&d->owner, (const void *)NULL);
}

/* As filch_bwos_lifo_init_blocks, with the highest bits of `start` as the first round and the first
 * tag: for tests. */
FILCH_INLINE int filch_bwos_lifo_init_blocks_at(filch_bwos_lifo *d, size_t block_size,
                                                size_t block_count, uint64_t start)
{
    int err = filch_bwos_ring_init(&d->ring, block_size, block_count, start);

    if (!err)
        filch_bwos_lifo_start(d, start);
    return err;
}

/* Use `block_count` blocks of `block_size` entries each. -EINVAL: fewer than 1 entry or 2 blocks,
 * or more than 1048575 of either. */
FILCH_INLINE int filch_bwos_lifo_init_blocks(filch_bwos_lifo *d, size_t block_size,
                                             size_t block_count)
{
    return filch_bwos_lifo_init_blocks_at(d, block_size, block_count, 0);
}

/* As filch_bwos_lifo_init, with the highest bits of `start` as the first round and tag: for
 * tests. */
FILCH_INLINE int filch_bwos_lifo_init_at(filch_bwos_lifo *d, size_t capacity, uint64_t start)
{
    int err = filch_bwos_ring_init_capacity(&d->ring, capacity, start);

    if (!err)
        filch_bwos_lifo_start(d, start);
    return err;
}

/* Make room for at least `capacity` entries; 0 means 32 blocks of 16. Blocks have 16 entries; if
 * `capacity` is below 128, an eighth of it. */
FILCH_INLINE int filch_bwos_lifo_init(filch_bwos_lifo *d, size_t capacity)
{
    return filch_bwos_lifo_init_at(d, capacity, 0);
}

/* ---- owner ----------------------------------------------------------------------------------- */

FILCH_INLINE void filch_bwos_lifo_put(filch_bwos_lifo *d, filch_deque_slot *tail, filch_entry entry)
{
    /* relaxed: [granted] carries the entry to thieves; tail is an own variable. */
    filch_store_relaxed(tail, entry);
    filch_store_relaxed(&d->tail, tail + 1);
}

/* The end of a slow push or pop: return to fast calls. If thieves have asked, grant them
 * everything. */
FILCH_INLINE void filch_bwos_lifo_settle(filch_bwos_lifo *d)
{
    /* relaxed: own variables. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail);
    uint64_t position = filch_load_relaxed(&d->position);

    /* acq_rel [asked] */
    if (filch_exchange_acq_rel(&d->limit, d->base) != FILCH_BWOS_ASKED)
        return;
    d->is_sharing = true;
    if (d->base == tail) {
        /* Thieves have everything already: keep the request for the next push. relaxed: as if a
         * thief asked now. */
        filch_store_relaxed(&d->limit, FILCH_BWOS_ASKED);
        return;
    }
    d->base = tail;
    /* Before the grant, which answers every request made so far. relaxed: ordered by [granted]. */
    filch_store_relaxed(&d->limit, tail);
    filch_bwos_grant(d->block, position, (uint64_t)(tail - filch_bwos_slots(d->block)));
}

/* Grant the owner's block, which is full, and open the next one. */
FILCH_INLINE int filch_bwos_lifo_advance(filch_bwos_lifo *d)
{
    /* relaxed: own variables. */
    uint64_t position = filch_load_relaxed(&d->position);
    uint64_t next = filch_bwos_next(&d->ring, position);
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, next);
    uint64_t round = filch_bwos_round(filch_load_relaxed(&b->granted));

    /* The next block is free if the owner has left it again in this round, or thieves took all of
     * it. */
    if (round != filch_bwos_round(next) && filch_bwos_left(b, d->ring.size) > 0)
        return -ENOBUFS;
    filch_bwos_grant(d->block, position, d->ring.size);
    filch_bwos_open(b, next);
    filch_bwos_lifo_go_to(d, b, next, 0, 0);
    return 0;
}

FILCH_BWOS_SLOW int filch_bwos_lifo_push_slow(filch_bwos_lifo *d, filch_entry entry)
{
    int err = 0;

    /* relaxed: own variable, here and below. */
    if (filch_load_relaxed(&d->tail) == d->end)
        err = filch_bwos_lifo_advance(d);
    if (!err)
        filch_bwos_lifo_put(d, filch_load_relaxed(&d->tail), entry);
    filch_bwos_lifo_settle(d);
    return err;
}

/* Add `entry` as the newest one. -ENOBUFS: the next block is not free. */
FILCH_INLINE int filch_bwos_lifo_push(filch_bwos_lifo *d, filch_entry entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: own variable. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail);

    /* relaxed: a request carries no data. */
    if (__builtin_expect(tail == d->end || filch_load_relaxed(&d->limit) == FILCH_BWOS_ASKED, 0))
        return filch_bwos_lifo_push_slow(d, entry);
    filch_bwos_lifo_put(d, tail, entry);
    return 0;
}

/* Reclaim the entries of block `b` that thieves have not taken. False: there are none. */
FILCH_INLINE bool filch_bwos_lifo_take_back(filch_bwos_lifo *d, filch_bwos_block *b,
                                            uint64_t position)
{
    /* relaxed: only the owner writes it. */
    uint64_t granted = filch_load_relaxed(&b->granted), end = filch_bwos_index(granted);
    uint64_t left = filch_bwos_left(b, end), keep = d->is_sharing ? end - left + left / 2 : 0;

    if (filch_bwos_round(granted) != filch_bwos_round(position) || left == 0)
        return false;
    uint64_t i = filch_bwos_take_back(b, position, keep);
    if (i != b->head_seen)
        d->is_sharing = false;
    b->head_seen = i;
    if (i == d->ring.size)
        filch_bwos_grant(b, position, i); /* shows thieves that the block is past */
    if (i == end)
        return false;
    filch_bwos_lifo_go_to(d, b, position, i > keep ? i : keep, end);
    return true;
}

/* The owner has no entries: reclaim some. False: thieves have taken all. */
FILCH_INLINE bool filch_bwos_lifo_retreat(filch_bwos_lifo *d)
{
    /* relaxed: own variable. */
    uint64_t position = filch_load_relaxed(&d->position);
    uint64_t previous = filch_bwos_previous(&d->ring, position);

    return filch_bwos_lifo_take_back(d, d->block, position) ||
           filch_bwos_lifo_take_back(d, filch_bwos_block_at(&d->ring, previous), previous);
}

/* The result of the slow half of pop, returned in registers. If it went through memory, the fast
 * half would have to provide for that, and a loop of pops would be a tenth slower. */
typedef struct filch_bwos_popped {
    filch_entry entry;
    bool is_popped;
} filch_bwos_popped;

FILCH_BWOS_SLOW filch_bwos_popped filch_bwos_lifo_pop_slow(filch_bwos_lifo *d)
{
    filch_bwos_popped popped = {(filch_entry)0, false};

    /* relaxed: own variables. */
    if (filch_load_relaxed(&d->tail) == d->base && !filch_bwos_lifo_retreat(d)) {
        uint64_t position = filch_load_relaxed(&d->position);
        d->is_sharing = false;
        /* Empty: start again at the first slot, unless the block is past. */
        if (d->base != d->end && d->base != filch_bwos_slots(d->block)) {
            filch_bwos_open(d->block, position);
            filch_bwos_lifo_go_to(d, d->block, position, 0, 0);
            filch_bwos_lifo_settle(d);
        }
        return popped;
    }
    /* relaxed: own variable and slot. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail) - 1;
    popped.entry = filch_load_relaxed(tail);
    popped.is_popped = true;
    filch_store_relaxed(&d->tail, tail);
    filch_bwos_lifo_settle(d);
    return popped;
}

/* Take the newest entry. false: the deque is empty, or thieves took the rest. */
FILCH_INLINE bool filch_bwos_lifo_pop(filch_bwos_lifo *d, filch_entry *entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: own variable. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail);

    /* relaxed: as in push. */
    if (__builtin_expect(tail <= filch_load_relaxed(&d->limit), 0)) {
        filch_bwos_popped popped = filch_bwos_lifo_pop_slow(d);
        if (popped.is_popped)
            *entry = popped.entry;
        return popped.is_popped;
    }
    /* relaxed: own slot and variable. */
    *entry = filch_load_relaxed(tail - 1);
    filch_store_relaxed(&d->tail, tail - 1);
    return true;
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* Make the owner's next push or pop slow, so that it grants all entries it has. */
FILCH_INLINE void filch_bwos_lifo_ask(filch_bwos_lifo *d)
{
    /* relaxed: a request carries no data. Do not write it twice: the owner reads this line in each
     * call. */
    if (filch_load_relaxed(&d->limit) != FILCH_BWOS_ASKED)
        filch_store_relaxed(&d->limit, FILCH_BWOS_ASKED);
}

/* Steal, but make no request if there is nothing. */
FILCH_INLINE filch_steal_result filch_bwos_lifo_take(filch_bwos_lifo *d, filch_entry *entries,
                                                     size_t max, size_t *count)
{
    /* relaxed: all positions before any value of top are past. */
    uint64_t t = filch_load_relaxed(&d->top);

    for (;;) {
        switch (filch_bwos_take(&d->ring, t, entries, max, count)) {
        case FILCH_BWOS_WON:
            return FILCH_STEAL_WON;
        case FILCH_BWOS_LOST:
            return FILCH_STEAL_LOST;
        case FILCH_BWOS_NONE:
            /* No later position has granted entries either: all blocks before the owner's are
             * granted. */
            return FILCH_STEAL_EMPTY;
        case FILCH_BWOS_PAST:
            break;
        }
        uint64_t next = filch_bwos_next(&d->ring, t);
        /* acq_rel [passed] */
        if (filch_cas_acq_rel(&d->top, &t, next))
            t = next;
    }
}

/* Take the oldest entry. */
FILCH_INLINE filch_steal_result filch_bwos_lifo_steal(filch_bwos_lifo *d, filch_entry *entry)
{
    filch_entry oldest;
    size_t count;
    filch_steal_result result = filch_bwos_lifo_take(d, &oldest, 1, &count);

    if (result == FILCH_STEAL_WON)
        *entry = oldest;
    else if (result == FILCH_STEAL_EMPTY)
        filch_bwos_lifo_ask(d);
    return result;
}

/* Take up to `max` of the oldest entries, at most all granted entries of one block. After LOST, the
 * contents of `entries` are undefined. */
FILCH_INLINE filch_steal_result filch_bwos_lifo_steal_batch(filch_bwos_lifo *d,
                                                            filch_entry *entries, size_t max,
                                                            size_t *count)
{
    if (max == 0)
        return FILCH_STEAL_EMPTY;
    filch_steal_result result = filch_bwos_lifo_take(d, entries, max, count);

    if (result == FILCH_STEAL_EMPTY)
        filch_bwos_lifo_ask(d);
    return result;
}

/* ---- any thread ------------------------------------------------------------------------------ */

FILCH_INLINE size_t filch_bwos_lifo_size_hint(filch_bwos_lifo *d)
{
    /* relaxed: hints. */
    uint64_t top = filch_load_relaxed(&d->top), position = filch_load_relaxed(&d->position);
    filch_bwos_block *first = filch_bwos_block_at(&d->ring, top);
    filch_bwos_block *last = filch_bwos_block_at(&d->ring, position);
    uint64_t round = filch_bwos_round(filch_load_relaxed(&first->granted));
    uint64_t gone = filch_bwos_index(filch_load_relaxed(&first->head));
    uint64_t tail = (uint64_t)(filch_load_relaxed(&d->tail) - filch_bwos_slots(last));

    if (filch_bwos_is_after(top, position) || tail > d->ring.size)
        return 0;
    if (round != filch_bwos_round(top)) /* past, and in use again */
        gone = d->ring.size;
    uint64_t size = filch_bwos_distance(&d->ring, top, position) * d->ring.size + tail;
    return size > gone ? (size_t)(size - gone) : 0;
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_bwos_lifo_fini(filch_bwos_lifo *d)
{
    filch_bwos_ring_fini(&d->ring);
}

FILCH_DEQUE_FITS(bwos_lifo)
FILCH_DEQUE_BATCH_FITS(bwos_lifo)

#ifdef __cplusplus
}
#endif

#endif
