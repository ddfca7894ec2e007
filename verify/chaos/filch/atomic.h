/* SPDX-License-Identifier: MIT */
/*
 * filch/atomic.h of the build with FILCH_CHAOS: any operation may be late.
 *
 * This folder comes before include/ in that build's include path. The types and the operations
 * are those of include/filch/atomic.h, but each operation first calls filch_chaos_delay
 * (src/base/chaos.c).
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

#ifdef __cplusplus
extern "C" {
#endif
__attribute__((visibility("default"))) void filch_chaos_delay(void);
#ifdef __cplusplus
}
#endif

#define filch_load_relaxed(p)                                                                      \
    (filch_chaos_delay(), __atomic_load_n(&(p)->filch_value, __ATOMIC_RELAXED))
#define filch_load_acquire(p)                                                                      \
    (filch_chaos_delay(), __atomic_load_n(&(p)->filch_value, __ATOMIC_ACQUIRE))
#define filch_load_seq_cst(p)                                                                      \
    (filch_chaos_delay(), __atomic_load_n(&(p)->filch_value, __ATOMIC_SEQ_CST))

#define filch_store_relaxed(p, v)                                                                  \
    (filch_chaos_delay(), __atomic_store_n(&(p)->filch_value, (v), __ATOMIC_RELAXED))
#define filch_store_release(p, v)                                                                  \
    (filch_chaos_delay(), __atomic_store_n(&(p)->filch_value, (v), __ATOMIC_RELEASE))
#define filch_store_seq_cst(p, v)                                                                  \
    (filch_chaos_delay(), __atomic_store_n(&(p)->filch_value, (v), __ATOMIC_SEQ_CST))

#define filch_exchange_acq_rel(p, v)                                                               \
    (filch_chaos_delay(), __atomic_exchange_n(&(p)->filch_value, (v), __ATOMIC_ACQ_REL))

#define filch_fetch_add_relaxed(p, v)                                                              \
    (filch_chaos_delay(), __atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_RELAXED))
#define filch_fetch_add_release(p, v)                                                              \
    (filch_chaos_delay(), __atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_RELEASE))
#define filch_fetch_add_acq_rel(p, v)                                                              \
    (filch_chaos_delay(), __atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_ACQ_REL))
#define filch_fetch_add_seq_cst(p, v)                                                              \
    (filch_chaos_delay(), __atomic_fetch_add(&(p)->filch_value, (v), __ATOMIC_SEQ_CST))

#define filch_cas_acq_rel(p, expected, v)                                                          \
    (filch_chaos_delay(), __atomic_compare_exchange_n(&(p)->filch_value, (expected), (v), false,   \
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
#define filch_cas_seq_cst(p, expected, v)                                                          \
    (filch_chaos_delay(), __atomic_compare_exchange_n(&(p)->filch_value, (expected), (v), false,   \
                                                      __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))

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
