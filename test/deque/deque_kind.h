/* SPDX-License-Identifier: MIT */
/*
 * One kind of deque, TEST_DEQUE, under names that are the same for all kinds; and its properties
 * beyond the contract.
 */
#ifndef FILCH_TEST_DEQUE_KIND_H
#define FILCH_TEST_DEQUE_KIND_H

#include "support.h"

/* Every allocation fails: deques can neither start nor grow. */
static TEST_UNUSED bool is_memory_out;
#define calloc(count, bytes) (is_memory_out ? NULL : calloc(count, bytes))
#define aligned_alloc(alignment, bytes) (is_memory_out ? NULL : aligned_alloc(alignment, bytes))

#include TEST_DEQUE_HEADER

#define PASTE(kind, name) filch_##kind##_##name
#define NAME(kind, name) PASTE(kind, name)
#define TYPE_OF(kind) filch_##kind
#define TYPE(kind) TYPE_OF(kind)

typedef TYPE(TEST_DEQUE) deque;
#define deque_init NAME(TEST_DEQUE, init)
#define deque_init_at NAME(TEST_DEQUE, init_at)
#define deque_push NAME(TEST_DEQUE, push)
#define deque_pop NAME(TEST_DEQUE, pop)
#define deque_steal NAME(TEST_DEQUE, steal)
#define deque_size_hint NAME(TEST_DEQUE, size_hint)
#define deque_fini NAME(TEST_DEQUE, fini)

/* For a kind without steal_batch: batches of one. */
static TEST_UNUSED filch_steal_result steal_one(deque *d, filch_entry *entries, size_t max,
                                                size_t *count)
{
    filch_steal_result result = max > 0 ? deque_steal(d, entries) : FILCH_STEAL_EMPTY;

    if (result == FILCH_STEAL_WON)
        *count = 1;
    return result;
}

/* clang-format off */
#define BATCH_locked    filch_locked_steal_batch
#define BATCH_global    filch_global_steal_batch
#define BATCH_abp       steal_one
#define BATCH_chaselev  steal_one
#define BATCH_bwos_lifo filch_bwos_lifo_steal_batch
#define BATCH_bwos_fifo filch_bwos_fifo_steal_batch
/* clang-format on */
#define BATCH_OF(kind) BATCH_##kind
#define BATCH(kind) BATCH_OF(kind)
#define deque_steal_batch BATCH(TEST_DEQUE)

typedef struct deque_kind {
    bool has_owner;   /* only one thread may push and pop, and debug builds check it */
    bool is_open;     /* thieves get all entries, even if the owner makes no more calls */
    bool is_in_order; /* a thief gets newer entries with every steal */
    bool crosses;     /* a pop is a seq_cst store, then a load of the word that steals store to */
} deque_kind;

/* clang-format off */
#define KIND_locked     {.is_open = true, .is_in_order = true}
#define KIND_global     {.is_open = true, .is_in_order = true}
#define KIND_abp        {.has_owner = true, .is_open = true, .is_in_order = true, .crosses = true}
#define KIND_chaselev   {.has_owner = true, .is_open = true, .is_in_order = true, .crosses = true}
#define KIND_bwos_lifo  {.has_owner = true}
#define KIND_bwos_fifo  {.has_owner = true}
/* clang-format on */
#define KIND_OF(kind) KIND_##kind
#define KIND(kind) KIND_OF(kind)
static const TEST_UNUSED deque_kind kind = KIND(TEST_DEQUE);

#endif
