/* SPDX-License-Identifier: MIT */
/* One of each. Not this: filch_load_acquire(word). */
#include "base/orders.h"

static __attribute__((noinline)) uint32_t loads(filch_atomic_u32 *word)
{
    /* nor filch_load_seq_cst(word) */
    const char *text = "nor filch_load_seq_cst(word)";
    return text ? filch_load_relaxed(word) : filch_load_acquire(word) + filch_load_seq_cst(word);
}

void stores(filch_atomic_u32 *word,
            uint32_t value)
{
    filch_store_relaxed(word, value);
    filch_store_release(word, value);
    filch_store_seq_cst(word, value);
    filch_store_release(word, value); // the second
}

bool read_modify_writes(filch_atomic_u32 *word, uint32_t *expected)
{
    filch_exchange_acq_rel(word, 1);
    filch_fetch_add_relaxed(word, 1);
    filch_fetch_add_release(word, 1);
    filch_fetch_add_acq_rel(word, 1);
    filch_fetch_add_seq_cst(word, 1);
    return filch_cas_acq_rel(word, expected, 1) || filch_cas_seq_cst(word, expected, 1);
}

void fences_and_wakes(filch_atomic_u32 *word)
{
    filch_fence_seq_cst();
    filch_fence_release();
    filch_futex_wake(word, 1);
}

void waits(filch_atomic_u32 *word)
{
    filch_lock_acquire(word);
    while (filch_load_acquire(word))
        filch_futex_wait(word, 1, NULL);
}
