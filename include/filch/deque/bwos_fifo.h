/* SPDX-License-Identifier: MIT */
/*
 * The BWoS queue, first in, first out: bounded. The owner pops the oldest entry. Thieves steal the
 * oldest entry that the owner does not keep to itself.
 *
 * filch/deque/bwos.h names the paper, describes the blocks, and lists the differences.
 *
 *     position         get                                             put
 *        gone           |  front ... get_end  |  granted   granted  |  granted  | ... tail ... end
 *     ------------------+---------------------+---------------------+-----------+--------------->
 *                        the owner pops here -->  thieves take here -->  and it pushes here -->
 *
 * The owner pushes to the last block, behind its granted part, which thieves never read. When that
 * block is full, the owner grants all of it and opens the next one, if that is free. The owner pops
 * from a block that it has reclaimed from thieves: one read-modify-write for a whole block. While
 * only one block has entries, all of it is the owner's.
 *
 * When is it full? The ring is used in order: a block is free when it and all blocks before it are
 * empty. So a push fails only if the oldest entry was pushed more than (blocks - 1) * size entries
 * ago. Slots that thieves have emptied in the middle are not free until the owner has popped
 * everything before them. Once pop has found the queue empty, blocks * size entries fit.
 *
 * Which entries can be stolen? Two parts are the owner's alone: the rest of the block that it has
 * begun to pop from, and its pushes to the last block. A steal that finds nothing else returns
 * EMPTY and leaves a request:
 *   - When the owner has finished its next push or pop, all entries in the queue can be stolen.
 *     (That call may be in progress already, or begin after the steal has returned.)
 *   - From then on, until an entry is stolen or the queue is empty, no steal returns EMPTY. To that
 *     end the owner grants everything it has, and takes the oldest entry as a thief does.
 *   - Once the queue was empty, only the owner can take a new entry: a steal returns EMPTY, and
 *     leaves a new request.
 * So thieves starve only if the owner makes no calls, or pops all entries after each answer.
 *
 * No call waits for another thread, wherever that thread is stopped. The owner can reclaim every
 * entry that a thief has not taken, and never needs to know whether a thief has finished. The queue
 * is never full and empty at once, as it can be in the paper.
 *
 * Edges (filch/deque/bwos.h has more)
 *   went-on     pass: get -> take: get
 *               carries the grants of later blocks: a thief that skips the block before get sees
 *               all that the owner has granted meanwhile.
 */
#ifndef FILCH_DEQUE_BWOS_FIFO_H
#define FILCH_DEQUE_BWOS_FIFO_H

#include <filch/deque/bwos.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which side has the rest of the block that the owner pops from. */
typedef enum filch_bwos_rest {
    FILCH_BWOS_ALL,   /* the owner: [front, tail). It pushes to this block, too */
    FILCH_BWOS_OLDER, /* the owner: [front, get_end). It pushes to a later block */
    FILCH_BWOS_OPEN,  /* thieves, until the owner reclaims it; front is get_end */
} filch_bwos_rest;

/* Takes whole cache lines: allocate it with aligned_alloc(). */
typedef struct filch_bwos_fifo {
    /* Owner only; but any thread reads front, tail and put for the size hint. */
    filch_bwos_cursor front __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_bwos_cursor tail, get_end;
    filch_deque_slot *end; /* of put_block */
    filch_bwos_block *get_block, *put_block;
    filch_atomic_u64 put; /* the position of put_block */
    filch_bwos_rest rest;
    bool is_sharing; /* a thief has asked, and no entry was stolen since */

    /* The end of the owner's part of get_block (&tail or &get_end), or &asked. The owner reads it
     * in each push and pop, thieves overwrite it. */
    FILCH_ATOMIC(filch_bwos_cursor *) limit __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_bwos_cursor asked; /* NULL: as a limit, it makes every push and pop slow */
    filch_deque_owner owner;

    /* Where thieves look. All positions between get and top are past. */
    /* of get_block; written by the owner */
    filch_atomic_u64 get __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_atomic_u64 top;  /* moved by thieves */
    filch_atomic_u64 past; /* a position that is past, often get. Written by thieves */

    filch_bwos_ring ring __attribute__((aligned(FILCH_CACHE_LINE)));
} filch_bwos_fifo;

/* ---- start ----------------------------------------------------------------------------------- */

/* From now on, push to block `b`, starting with its first slot. */
FILCH_INLINE void filch_bwos_fifo_put_to(filch_bwos_fifo *d, filch_bwos_block *b, uint64_t position)
{
    filch_deque_slot *slots = filch_bwos_slots(b);

    d->put_block = b;
    d->end = slots + d->ring.size;
    /* relaxed: own variables; hints for other threads. */
    filch_store_relaxed(&d->tail, slots);
    filch_store_relaxed(&d->put, position);
}

/* From now on, pop from [front, end), or from [front, tail) if `rest` is ALL. */
FILCH_INLINE void filch_bwos_fifo_get_from(filch_bwos_fifo *d, filch_bwos_rest rest,
                                           filch_deque_slot *front, filch_deque_slot *end)
{
    d->rest = rest;
    /* relaxed: own variables; hints for other threads. */
    filch_store_relaxed(&d->front, front);
    filch_store_relaxed(&d->get_end, end);
}

/* The end of the owner's part of the block that it pops from. */
FILCH_INLINE filch_bwos_cursor *filch_bwos_fifo_front_end(filch_bwos_fifo *d)
{
    return d->rest == FILCH_BWOS_ALL ? &d->tail : &d->get_end;
}

FILCH_INLINE void filch_bwos_fifo_start(filch_bwos_fifo *d, uint64_t start)
{
    uint64_t position = filch_bwos_round(start);
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, position);

    d->is_sharing = false;
    d->get_block = b;
    filch_bwos_open(b, position);
    filch_bwos_fifo_put_to(d, b, position);
    filch_bwos_fifo_get_from(d, FILCH_BWOS_ALL, filch_bwos_slots(b), NULL);
    /* relaxed: no other thread knows the queue yet. */
    filch_store_relaxed(&d->limit, &d->tail);
    filch_store_relaxed(&d->asked, (filch_deque_slot *)NULL);
    filch_store_relaxed(&d->get, position);
    filch_store_relaxed(&d->top, position);
    filch_store_relaxed(&d->past, filch_bwos_previous(&d->ring, position));
    filch_store_relaxed(&d->owner, (const void *)NULL);
}

/* As filch_bwos_fifo_init_blocks, with the highest bits of `start` as the first round and the first
 * tag: for tests. */
FILCH_INLINE int filch_bwos_fifo_init_blocks_at(filch_bwos_fifo *d, size_t block_size,
                                                size_t block_count, uint64_t start)
{
    int err = filch_bwos_ring_init(&d->ring, block_size, block_count, start);

    if (!err)
        filch_bwos_fifo_start(d, start);
    return err;
}

/* Use `block_count` blocks of `block_size` entries each. -EINVAL: fewer than 1 entry or 2 blocks,
 * or more than 1048575 of either. */
FILCH_INLINE int filch_bwos_fifo_init_blocks(filch_bwos_fifo *d, size_t block_size,
                                             size_t block_count)
{
    return filch_bwos_fifo_init_blocks_at(d, block_size, block_count, 0);
}

/* As filch_bwos_fifo_init, with the highest bits of `start` as the first round and tag: for
 * tests. */
FILCH_INLINE int filch_bwos_fifo_init_at(filch_bwos_fifo *d, size_t capacity, uint64_t start)
{
    int err = filch_bwos_ring_init_capacity(&d->ring, capacity, start);

    if (!err)
        filch_bwos_fifo_start(d, start);
    return err;
}

/* Make room for at least `capacity` entries; 0 means 32 blocks of 16. Blocks have 16 entries; if
 * `capacity` is below 128, an eighth of it. */
FILCH_INLINE int filch_bwos_fifo_init(filch_bwos_fifo *d, size_t capacity)
{
    return filch_bwos_fifo_init_at(d, capacity, 0);
}

/* ---- owner ----------------------------------------------------------------------------------- */

/* The end of the filled part of block `b`. */
FILCH_INLINE uint64_t filch_bwos_fifo_filled(filch_bwos_fifo *d, filch_bwos_block *b)
{
    /* relaxed: own variable. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail);
    return b == d->put_block ? (uint64_t)(tail - filch_bwos_slots(b)) : d->ring.size;
}

FILCH_INLINE bool filch_bwos_fifo_has_front(filch_bwos_fifo *d)
{
    /* relaxed: own variables. */
    return filch_load_relaxed(&d->front) != filch_load_relaxed(filch_bwos_fifo_front_end(d));
}

/* Whether the last block has entries behind its granted part. */
FILCH_INLINE bool filch_bwos_fifo_has_tail(filch_bwos_fifo *d)
{
    /* relaxed: only the owner writes it. */
    uint64_t granted = filch_bwos_index(filch_load_relaxed(&d->put_block->granted));
    return d->rest != FILCH_BWOS_ALL && filch_bwos_fifo_filled(d, d->put_block) > granted;
}

/* Grant the rest of the block that the owner pops from. */
FILCH_INLINE void filch_bwos_fifo_grant_front(filch_bwos_fifo *d)
{
    filch_bwos_block *b = d->get_block;
    /* relaxed: own variables; thieves do not move this head, as nothing is granted. */
    uint64_t get = filch_load_relaxed(&d->get), head = filch_load_relaxed(&b->head);
    filch_deque_slot *front = filch_load_relaxed(&d->front);
    uint64_t i = (uint64_t)(front - filch_bwos_slots(b));

    /* release [new-tag] */
    filch_store_release(&b->head, filch_bwos_round(head) | i);
    filch_bwos_grant(b, get, filch_bwos_fifo_filled(d, b));
    filch_bwos_fifo_get_from(d, FILCH_BWOS_OPEN, front, front);
}

/* Grant the filled part of the last block. */
FILCH_INLINE void filch_bwos_fifo_grant_tail(filch_bwos_fifo *d)
{
    /* relaxed: own variable. */
    uint64_t put = filch_load_relaxed(&d->put);
    filch_bwos_grant(d->put_block, put, filch_bwos_fifo_filled(d, d->put_block));
}

/* The end of a slow push or pop: return to fast calls. If thieves have asked, grant them
 * everything. */
FILCH_INLINE void filch_bwos_fifo_settle(filch_bwos_fifo *d)
{
    bool has_front = filch_bwos_fifo_has_front(d), has_tail = filch_bwos_fifo_has_tail(d);
    filch_bwos_cursor *limit = filch_bwos_fifo_front_end(d);

    /* The limit is right, and no thief has asked. relaxed: nothing is written, so a request that
     * this load misses stays. */
    if (filch_load_relaxed(&d->limit) == limit)
        return;
    /* acq_rel [asked] */
    if (filch_exchange_acq_rel(&d->limit, limit) != &d->asked)
        return;
    d->is_sharing = true;
    if (!has_front && !has_tail) {
        /* Thieves have everything already: keep the request for the next push. relaxed: as if a
         * thief asked now. */
        filch_store_relaxed(&d->limit, &d->asked);
        return;
    }
    /* Before the grants, which answer every request made so far. relaxed: ordered by [granted]. */
    filch_store_relaxed(&d->limit, &d->get_end);
    if (has_front)
        filch_bwos_fifo_grant_front(d);
    if (has_tail)
        filch_bwos_fifo_grant_tail(d);
}

/* The block that the owner pops from is used up, and is not the last: go to the next. */
FILCH_INLINE void filch_bwos_fifo_pass(filch_bwos_fifo *d)
{
    /* relaxed: own variable. */
    uint64_t get = filch_bwos_next(&d->ring, filch_load_relaxed(&d->get));
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, get);

    d->get_block = b;
    /* release [went-on] */
    filch_store_release(&d->get, get);
    filch_bwos_fifo_get_from(d, FILCH_BWOS_OPEN, filch_bwos_slots(b), filch_bwos_slots(b));
}

/* The queue is empty, and the owner pops and pushes in one block. Start again at its first slot. If
 * the block is past, start in the next one instead, since thieves remember that a position is past.
 * False: the owner is at the first slot already. */
FILCH_INLINE bool filch_bwos_fifo_restart(filch_bwos_fifo *d)
{
    filch_bwos_block *b = d->put_block;
    /* relaxed: own variables. */
    uint64_t put = filch_load_relaxed(&d->put);
    bool is_there = filch_load_relaxed(&d->front) == filch_bwos_slots(b);
    bool is_past = filch_bwos_index(filch_load_relaxed(&b->granted)) == d->ring.size;

    if (d->rest != FILCH_BWOS_OPEN && is_there)
        return false;
    if (is_past) {
        put = filch_bwos_next(&d->ring, put);
        b = filch_bwos_block_at(&d->ring, put);
    }
    if (d->rest == FILCH_BWOS_OPEN)
        filch_bwos_open(b, put);
    filch_bwos_fifo_put_to(d, b, put);
    if (is_past)
        filch_bwos_fifo_pass(d);
    filch_bwos_fifo_get_from(d, FILCH_BWOS_ALL, filch_bwos_slots(b), NULL);
    return true;
}

/* The last block is full: open the next one for pushes. */
FILCH_INLINE int filch_bwos_fifo_advance(filch_bwos_fifo *d)
{
    /* relaxed: own variable. */
    uint64_t next = filch_bwos_next(&d->ring, filch_load_relaxed(&d->put));
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, next);

    if (d->rest == FILCH_BWOS_ALL && !filch_bwos_fifo_has_front(d)) {
        filch_bwos_fifo_restart(d);
        return 0;
    }
    /* All blocks before get_block are free, and get_block itself once it is used up. */
    if (b == d->get_block) {
        if (filch_bwos_fifo_has_front(d) ||
            (d->rest == FILCH_BWOS_OPEN && filch_bwos_left(b, d->ring.size) > 0))
            return -ENOBUFS;
        filch_bwos_fifo_pass(d);
    }
    if (d->rest == FILCH_BWOS_ALL)
        filch_bwos_fifo_grant_front(d);
    else
        filch_bwos_fifo_grant_tail(d);
    filch_bwos_open(b, next);
    filch_bwos_fifo_put_to(d, b, next);
    return 0;
}

FILCH_INLINE void filch_bwos_fifo_append(filch_bwos_fifo *d, filch_deque_slot *tail,
                                         filch_entry entry)
{
    /* relaxed: [granted] carries the entry to thieves; tail is an own variable. */
    filch_store_relaxed(tail, entry);
    filch_store_relaxed(&d->tail, tail + 1);
}

FILCH_BWOS_SLOW int filch_bwos_fifo_push_slow(filch_bwos_fifo *d, filch_entry entry)
{
    int err = 0;

    /* relaxed: own variable, here and below. */
    if (filch_load_relaxed(&d->tail) == d->end)
        err = filch_bwos_fifo_advance(d);
    if (!err)
        filch_bwos_fifo_append(d, filch_load_relaxed(&d->tail), entry);
    filch_bwos_fifo_settle(d);
    return err;
}

/* Add `entry` as the newest one. -ENOBUFS: the next block is not free. */
FILCH_INLINE int filch_bwos_fifo_push(filch_bwos_fifo *d, filch_entry entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: own variable. */
    filch_deque_slot *tail = filch_load_relaxed(&d->tail);

    /* relaxed: a request carries no data. */
    if (__builtin_expect(tail == d->end || filch_load_relaxed(&d->limit) == &d->asked, 0))
        return filch_bwos_fifo_push_slow(d, entry);
    filch_bwos_fifo_append(d, tail, entry);
    return 0;
}

/* Reclaim the entries that thieves have left of the block that the owner pops from. */
FILCH_INLINE void filch_bwos_fifo_take_back(filch_bwos_fifo *d)
{
    filch_bwos_block *b = d->get_block;
    /* relaxed: own variable. */
    uint64_t get = filch_load_relaxed(&d->get), i = filch_bwos_take_back(b, get, 0);
    bool is_one = b == d->put_block;

    if (i == d->ring.size) {
        filch_bwos_grant(b, get, i); /* the block is past, and thieves may have seen that */
        return;
    }
    filch_bwos_fifo_get_from(d, is_one ? FILCH_BWOS_ALL : FILCH_BWOS_OLDER, filch_bwos_slots(b) + i,
                             filch_bwos_slots(b) + d->ring.size);
}

/* Take the oldest entry as a thief does. So at no moment do thieves find nothing while there are
 * entries. */
FILCH_INLINE bool filch_bwos_fifo_share(filch_bwos_fifo *d, filch_entry *entry)
{
    filch_bwos_block *b = d->get_block;
    size_t count;

    /* relaxed: own variable; and take reads head again. */
    if (filch_bwos_index(filch_load_relaxed(&b->head)) == b->head_seen) {
        if (filch_bwos_fifo_has_tail(d))
            filch_bwos_fifo_grant_tail(d);
        uint64_t get = filch_load_relaxed(&d->get);
        if (filch_bwos_take(&d->ring, get, entry, 1, &count) == FILCH_BWOS_WON) {
            b->head_seen++;
            return true;
        }
    }
    d->is_sharing = false; /* a thief has taken something */
    return false;
}

FILCH_BWOS_SLOW bool filch_bwos_fifo_pop_slow(filch_bwos_fifo *d, filch_entry *entry)
{
    while (!filch_bwos_fifo_has_front(d)) {
        filch_bwos_block *b = d->get_block;
        bool is_open = d->rest == FILCH_BWOS_OPEN;

        if (is_open && filch_bwos_left(b, filch_bwos_fifo_filled(d, b)) > 0) {
            if (!d->is_sharing)
                filch_bwos_fifo_take_back(d);
            else if (filch_bwos_fifo_share(d, entry))
                return true;
        } else if (b != d->put_block) {
            filch_bwos_fifo_pass(d);
        } else {
            d->is_sharing = false;
            if (filch_bwos_fifo_restart(d))
                filch_bwos_fifo_settle(d);
            return false;
        }
    }
    /* relaxed: own variable and slot. */
    filch_deque_slot *front = filch_load_relaxed(&d->front);
    *entry = filch_load_relaxed(front);
    filch_store_relaxed(&d->front, front + 1);
    filch_bwos_fifo_settle(d);
    return true;
}

/* Take the oldest entry. false: the queue is empty, or thieves took the rest. */
FILCH_INLINE bool filch_bwos_fifo_pop(filch_bwos_fifo *d, filch_entry *entry)
{
    FILCH_DEQUE_OWNER_CALL(d);
    /* relaxed: own variable; a limit, as in push. */
    filch_deque_slot *front = filch_load_relaxed(&d->front);
    filch_bwos_cursor *limit = filch_load_relaxed(&d->limit);

    /* relaxed: own variable, or a constant. */
    if (__builtin_expect(front >= filch_load_relaxed(limit), 0)) {
        filch_entry popped;
        bool is_popped = filch_bwos_fifo_pop_slow(d, &popped);
        if (is_popped)
            *entry = popped;
        return is_popped;
    }
    /* relaxed: own slot and variable. */
    *entry = filch_load_relaxed(front);
    filch_store_relaxed(&d->front, front + 1);
    return true;
}

/* ---- thieves --------------------------------------------------------------------------------- */

/* Make the owner's next push or pop slow, so that it grants all entries it has. */
FILCH_INLINE void filch_bwos_fifo_ask(filch_bwos_fifo *d)
{
    /* relaxed: a request carries no data. Do not write it twice: the owner reads this line in each
     * call. */
    if (filch_load_relaxed(&d->limit) != &d->asked)
        filch_store_relaxed(&d->limit, &d->asked);
}

/* Where a thief looks first if the owner pops at `get`: at `get`, which may be granted, unless that
 * is known to be past. */
FILCH_INLINE uint64_t filch_bwos_fifo_first(filch_bwos_fifo *d, uint64_t get, uint64_t top)
{
    /* relaxed: any value it ever had is a position that is past. */
    if (filch_load_relaxed(&d->past) != get)
        return get;
    return filch_bwos_is_after(top, get) ? top : filch_bwos_next(&d->ring, get);
}

/* Steal, but make no request if there is nothing. */
FILCH_INLINE filch_steal_result filch_bwos_fifo_take(filch_bwos_fifo *d, filch_entry *entries,
                                                     size_t max, size_t *count)
{
    /* acquire [went-on] */
    uint64_t get = filch_load_acquire(&d->get);
    /* relaxed: for any value of top, all positions between get and top are past. */
    uint64_t top = filch_load_relaxed(&d->top), t = filch_bwos_fifo_first(d, get, top);

    for (;;) {
        filch_bwos_found found = filch_bwos_take(&d->ring, t, entries, max, count);

        if (found == FILCH_BWOS_WON)
            return FILCH_STEAL_WON;
        if (found == FILCH_BWOS_LOST)
            return FILCH_STEAL_LOST;
        if (t != get) {
            /* The owner may have moved on and closed this block: [closed]. acquire [went-on] */
            uint64_t now = filch_load_acquire(&d->get), next = filch_bwos_next(&d->ring, t);
            if (now != get) {
                get = now;
                t = filch_bwos_fifo_first(d, get, top);
                continue;
            }
            if (found == FILCH_BWOS_NONE)
                return FILCH_STEAL_EMPTY; /* the last block: all between get and it are granted */
            /* acq_rel [passed] */
            if (filch_cas_acq_rel(&d->top, &top, next))
                top = next;
        } else if (found == FILCH_BWOS_PAST) {
            filch_store_relaxed(&d->past, t); /* relaxed: a position stays past. */
        }
        t = filch_bwos_is_after(top, get) ? top : filch_bwos_next(&d->ring, get);
    }
}

/* Take the oldest granted entry. */
FILCH_INLINE filch_steal_result filch_bwos_fifo_steal(filch_bwos_fifo *d, filch_entry *entry)
{
    filch_entry oldest;
    size_t count;
    filch_steal_result result = filch_bwos_fifo_take(d, &oldest, 1, &count);

    if (result == FILCH_STEAL_WON)
        *entry = oldest;
    else if (result == FILCH_STEAL_EMPTY)
        filch_bwos_fifo_ask(d);
    return result;
}

/* Take up to `max` of the oldest granted entries, all of one block. After LOST, the contents of
 * `entries` are undefined. */
FILCH_INLINE filch_steal_result filch_bwos_fifo_steal_batch(filch_bwos_fifo *d,
                                                            filch_entry *entries, size_t max,
                                                            size_t *count)
{
    if (max == 0)
        return FILCH_STEAL_EMPTY;
    filch_steal_result result = filch_bwos_fifo_take(d, entries, max, count);

    if (result == FILCH_STEAL_EMPTY)
        filch_bwos_fifo_ask(d);
    return result;
}

/* ---- any thread ------------------------------------------------------------------------------ */

FILCH_INLINE size_t filch_bwos_fifo_size_hint(filch_bwos_fifo *d)
{
    const uint64_t size = d->ring.size;
    /* relaxed: hints, all of them. */
    uint64_t get = filch_load_relaxed(&d->get), put = filch_load_relaxed(&d->put);
    uint64_t top = filch_load_relaxed(&d->top);
    filch_bwos_block *b = filch_bwos_block_at(&d->ring, get);
    filch_deque_slot *put_slots = filch_bwos_slots(filch_bwos_block_at(&d->ring, put));
    uint64_t gone = (uint64_t)(filch_load_relaxed(&d->front) - filch_bwos_slots(b));
    uint64_t tail = (uint64_t)(filch_load_relaxed(&d->tail) - put_slots);
    uint64_t first = get, sum = 0;

    /* The entries that are gone from get_block. Thieves may have taken some of them. relaxed: as
     * above. */
    if (filch_bwos_index(filch_load_relaxed(&b->granted)) > 0)
        gone = filch_bwos_index(filch_load_relaxed(&b->head));
    if (get != put) {
        /* The rest of get_block, then the other blocks from the first that is not past. */
        sum = gone < size ? size - gone : 0;
        first = filch_bwos_is_after(top, get) ? top : filch_bwos_next(&d->ring, get);
        b = filch_bwos_block_at(&d->ring, first);
        /* relaxed: as above. */
        gone = filch_bwos_index(filch_load_relaxed(&b->head));
    }
    if (filch_bwos_is_after(first, put) || tail > size)
        return (size_t)sum;
    uint64_t rest = filch_bwos_distance(&d->ring, first, put) * size + tail;
    return (size_t)(sum + (rest > gone ? rest - gone : 0));
}

/* ---- stop ------------------------------------------------------------------------------------ */

FILCH_INLINE void filch_bwos_fifo_fini(filch_bwos_fifo *d)
{
    filch_bwos_ring_fini(&d->ring);
}

FILCH_DEQUE_FITS(bwos_fifo)
FILCH_DEQUE_BATCH_FITS(bwos_fifo)

#ifdef __cplusplus
}
#endif

#endif
