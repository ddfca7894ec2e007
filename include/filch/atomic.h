/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations with the memory order in the name.
 *
 * Every word that two threads touch is declared with FILCH_ATOMIC and reached only through the
 * operations below; the wrapper struct makes a plain access a compile error. `grep _release`
 * therefore finds every release in the project. Builds that check filch put a header of the same
 * name first in the include path.
 *
 *     FILCH_ATOMIC(uint32_t) ready;
 *     filch_store_release(&ready, 1);
 *
 * There is no stand-alone fence. The operation that needs an order carries it, where the reader and
 * ThreadSanitizer see it.
 *
 *     load      relaxed  acquire  seq_cst
 *     store     relaxed  release  seq_cst
 *     exchange  acq_rel                              returns the old value
 *     fetch_add relaxed  release  acq_rel  seq_cst   returns the old value
 *     cas       acq_rel  seq_cst                     true: replaced. false: *expected is set to
 *                                                    the value found, read with acquire
 */
#ifndef FILCH_ATOMIC_H
#define FILCH_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define FILCH_CACHE_LINE 64

/* clang-format off */
#define FILCH_ATOMIC(type) struct { type filch_value; }
/* clang-format on */

typedef FILCH_ATOMIC(uint32_t) filch_atomic_u32;
typedef FILCH_ATOMIC(uint64_t) filch_atomic_u64;

#define filch_load_relaxed(p) (__atomic_load_n(&(p)->filch_value, __ATOMIC_RELAXED))
#define filch_load_acquire(p) (__atomic_load_n(&(p)->filch_value, __ATOMIC_ACQUIRE))
#define filch_load_seq_cst(p) (__atomic_load_n(&(p)->filch_value, __ATOMIC_SEQ_CST))

#define filch_store_relaxed(p, v) (__atomic_store_n(&(p)->filch_value, (v), __ATOMIC_RELAXED))
#define filch_store_release(p, v) (__atomic_store_n(&(p)->filch_value, (v), __ATOMIC_RELEASE))
#define filch_store_seq_cst(p, v) (__atomic_store_n(&(p)->filch_value, (v), __ATOMIC_SEQ_CST))

#define filch_exchange_acq_rel(p, v) (__atomic_exchange_n(&(p)->filch_value, (v), __ATOMIC_ACQ_REL))

#define filch_fetch_add_relaxed(p, v) (__atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_RELAXED))
#define filch_fetch_add_release(p, v) (__atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_RELEASE))
#define filch_fetch_add_acq_rel(p, v) (__atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_ACQ_REL))
#define filch_fetch_add_seq_cst(p, v) (__atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_SEQ_CST))

#define filch_cas_acq_rel(p, expected, v)                                                          \
    (__atomic_compare_exchange_n(&(p)->filch_value, (expected), (v), false, __ATOMIC_ACQ_REL,      \
                                 __ATOMIC_ACQUIRE))
#define filch_cas_seq_cst(p, expected, v)                                                          \
    (__atomic_compare_exchange_n(&(p)->filch_value, (expected), (v), false, __ATOMIC_SEQ_CST,      \
                                 __ATOMIC_ACQUIRE))

/* Tell the core that this is a spin loop. */
static inline void filch_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
