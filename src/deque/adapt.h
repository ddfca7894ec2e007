/* SPDX-License-Identifier: MIT */
/*
 * One row per deque of filch/deque.h that a pool can use: FILCH_KIND_ROWS, at the end.
 *
 * Each deque has functions of its own types. Here they get the types of filch_kind. kind.c makes
 * the table of them. src/fork/kinds.c makes a copy of fork and join for each kind, with these
 * functions inlined.
 */
#ifndef FILCH_DEQUE_ADAPT_H
#define FILCH_DEQUE_ADAPT_H

#include "deque/kind.h"

#include <assert.h>
#include <filch/deque/abp.h>
#include <filch/deque/bwos_fifo.h>
#include <filch/deque/bwos_lifo.h>
#include <filch/deque/chaselev.h>
#include <filch/deque/global.h>
#include <filch/deque/locked.h>

/* The members that every kind has. */
#define FILCH_ADAPT(d)                                                                             \
    static inline int d##_push(void *deque, void *entry)                                           \
    {                                                                                              \
        return filch_##d##_push(deque, entry);                                                     \
    }                                                                                              \
    static inline bool d##_pop(void *deque, void **entry)                                          \
    {                                                                                              \
        return filch_##d##_pop(deque, entry);                                                      \
    }                                                                                              \
    static inline filch_steal_result d##_steal(void *deque, void **entry)                          \
    {                                                                                              \
        return filch_##d##_steal(deque, entry);                                                    \
    }                                                                                              \
    static inline size_t d##_size_hint(void *deque)                                                \
    {                                                                                              \
        return filch_##d##_size_hint(deque);                                                       \
    }                                                                                              \
    static inline void d##_fini(void *deque)                                                       \
    {                                                                                              \
        filch_##d##_fini(deque);                                                                   \
    }

/* For kinds whose push and pop have no shorter form for an owner that knows its newest entry. */
#define FILCH_ADAPT_WHOLE_CALLS(d)                                                                 \
    static inline bool d##_push_fast(void *deque, void *entry)                                     \
    {                                                                                              \
        return filch_##d##_push(deque, entry) == 0;                                                \
    }                                                                                              \
    static inline bool d##_take(void *deque, void *newest)                                         \
    {                                                                                              \
        void *entry = NULL;                                                                        \
        bool is_taken = filch_##d##_pop(deque, &entry);                                            \
        assert(!is_taken || entry == newest);                                                      \
        (void)newest;                                                                              \
        return is_taken;                                                                           \
    }

/* A kind without blocks, whose entries can all be stolen. */
#define FILCH_ADAPT_PLAIN(d)                                                                       \
    FILCH_ADAPT(d)                                                                                 \
    static inline int d##_init(void *deque, size_t capacity, size_t block)                         \
    {                                                                                              \
        (void)block;                                                                               \
        return filch_##d##_init(deque, capacity);                                                  \
    }                                                                                              \
    static inline bool d##_has_public(void *deque)                                                 \
    {                                                                                              \
        return filch_##d##_size_hint(deque) > 0;                                                   \
    }

/* A kind with blocks. It gets one block more, since some slots of the oldest may be used up. */
#define FILCH_ADAPT_BLOCKS(d)                                                                      \
    FILCH_ADAPT(d)                                                                                 \
    static inline int d##_init(void *deque, size_t capacity, size_t block)                         \
    {                                                                                              \
        if (block == 0)                                                                            \
            return filch_##d##_init(deque, capacity);                                              \
        size_t count = capacity > 0 ? (capacity - 1) / block + 2 : FILCH_BWOS_BLOCK_COUNT;         \
        return filch_##d##_init_blocks(deque, block, count);                                       \
    }

FILCH_ADAPT_PLAIN(locked)
FILCH_ADAPT_WHOLE_CALLS(locked)

FILCH_ADAPT_PLAIN(global)
FILCH_ADAPT_WHOLE_CALLS(global)

FILCH_ADAPT_PLAIN(abp)
FILCH_ADAPT_WHOLE_CALLS(abp)

/* ---- Chase-Lev ------------------------------------------------------------------------------- */

FILCH_ADAPT_PLAIN(chaselev)

static inline bool chaselev_push_fast(void *deque, void *entry)
{
    return filch_chaselev_push_fast(deque, entry);
}

/* The owner knows its newest entry, so the slot of the deque is not read. */
static inline bool chaselev_take(void *deque, void *newest)
{
    uint64_t index;
    (void)newest;
    return filch_chaselev_take(deque, &index);
}

static inline bool chaselev_take_last(void *deque)
{
    return filch_chaselev_take_last(deque);
}

/* ---- BWoS ------------------------------------------------------------------------------------ */

FILCH_ADAPT_BLOCKS(bwos_lifo)
FILCH_ADAPT_WHOLE_CALLS(bwos_lifo)

FILCH_ADAPT_BLOCKS(bwos_fifo)
FILCH_ADAPT_WHOLE_CALLS(bwos_fifo)

static inline void bwos_lifo_show(void *deque)
{
    filch_bwos_lifo_ask(deque);
    filch_bwos_lifo_settle(deque);
}

static inline void bwos_fifo_show(void *deque)
{
    filch_bwos_fifo_ask(deque);
    filch_bwos_fifo_settle(deque);
}

/* Has the owner granted something at this position that is not taken yet? */
static inline bool is_granted(const filch_bwos_ring *ring, uint64_t position)
{
    filch_bwos_block *b = filch_bwos_block_at(ring, position);
    /* relaxed: hints. */
    uint64_t head = filch_load_relaxed(&b->head), granted = filch_load_relaxed(&b->granted);

    return filch_bwos_round(granted) == filch_bwos_round(position) &&
           filch_bwos_index(head) < filch_bwos_index(granted);
}

/* All blocks before the owner's are granted. */
static inline bool bwos_lifo_has_public(void *deque)
{
    filch_bwos_lifo *d = deque;
    /* relaxed: hints. */
    uint64_t top = filch_load_relaxed(&d->top), position = filch_load_relaxed(&d->position);
    bool is_found = filch_bwos_is_after(position, top) || is_granted(&d->ring, top);

    if (!is_found)
        filch_bwos_lifo_ask(d);
    return is_found;
}

/* All blocks between the owner's pops and its pushes are granted. */
static inline bool bwos_fifo_has_public(void *deque)
{
    filch_bwos_fifo *d = deque;
    /* relaxed: hints. */
    uint64_t get = filch_load_relaxed(&d->get), put = filch_load_relaxed(&d->put);
    uint64_t top = filch_load_relaxed(&d->top), next = filch_bwos_next(&d->ring, get);
    uint64_t first = filch_bwos_is_after(top, get) ? top : next;
    bool is_found = is_granted(&d->ring, get) || filch_bwos_is_after(put, first) ||
                    (first == put && is_granted(&d->ring, put));

    if (!is_found)
        filch_bwos_fifo_ask(d);
    return is_found;
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* The deque, its enumerator in filch/pool.h, and the members that not every kind has. */
#define FILCH_KIND_ROWS(X)                                                                         \
    X(locked, FILCH_DEQUE_LOCKED, .is_shared = false)                                              \
    X(global, FILCH_DEQUE_GLOBAL, .is_claimed = true, .is_shared = true)                           \
    X(abp, FILCH_DEQUE_ABP, .is_shared = false)                                                    \
    X(chaselev, FILCH_DEQUE_CHASELEV, .take_last = chaselev_take_last)                             \
    X(bwos_lifo, FILCH_DEQUE_BWOS_LIFO, .show = bwos_lifo_show)                                    \
    X(bwos_fifo, FILCH_DEQUE_BWOS_FIFO, .show = bwos_fifo_show, .is_claimed = true)

#define FILCH_KIND_ROW(d, enumerator, ...)                                                         \
    {                                                                                              \
        .name = #d, .which = enumerator, .bytes = sizeof(filch_##d), .init = d##_init,             \
        .push = d##_push, .push_fast = d##_push_fast, .pop = d##_pop, .take = d##_take,            \
        .steal = d##_steal, .has_public = d##_has_public, .size_hint = d##_size_hint,              \
        .fini = d##_fini, __VA_ARGS__,                                                             \
    }

#endif
