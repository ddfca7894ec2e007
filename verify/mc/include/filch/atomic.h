/* SPDX-License-Identifier: MIT */
/*
 * filch/atomic.h of the model checker: the same types, and each operation is an event.
 *
 * verify/mc/include comes before include/ in the include path of every checked program. Each
 * operation hands the checker the word's address and size, the memory order, and its own place in
 * the source, for the trace.
 */
#ifndef FILCH_ATOMIC_H
#define FILCH_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define FILCH_CACHE_LINE 64

/* clang-format off */
#define FILCH_ATOMIC(type) struct { type filch_value; }
/* clang-format on */

typedef FILCH_ATOMIC(uint32_t) filch_atomic_u32;
typedef FILCH_ATOMIC(uint64_t) filch_atomic_u64;

typedef enum mc_rmw { MC_EXCHANGE, MC_ADD, MC_SUB, MC_AND, MC_OR, MC_XOR } mc_rmw;

typedef struct mc_site {
    const char *text, *file;
    int line;
    const void *pc; /* instead of a file */
} mc_site;

#define MC_SITE(text) ((mc_site){(text), __FILE__, __LINE__, 0})

uint64_t mc_load(const volatile void *address, uint32_t size, int order, mc_site site);
void mc_store(volatile void *address, uint32_t size, uint64_t value, int order, mc_site site);
uint64_t mc_modify(volatile void *address, uint32_t size, mc_rmw how, uint64_t operand, int order,
                   mc_site site);
bool mc_cas(volatile void *address, uint32_t size, uint64_t *expected, uint64_t value, int order,
            int failure_order, mc_site site);
void mc_fence(int order, mc_site site);
void mc_pause(mc_site site);
int mc_futex(volatile void *address, long op, uint32_t value, const struct timespec *timeout);

/* The type of a word without its qualifiers. */
#define MC_TYPE(p) __typeof__(__atomic_load_n(&(p)->filch_value, __ATOMIC_RELAXED))
#define MC_VALUE(p, v)                                                                             \
    __extension__({                                                                                \
        MC_TYPE(p) mc_value = (v);                                                                 \
        (uint64_t) mc_value;                                                                       \
    })
#define MC_WORD(p) &(p)->filch_value, sizeof(p)->filch_value

#define MC_LOAD(p, order) ((MC_TYPE(p))mc_load(MC_WORD(p), order, MC_SITE(#p)))
#define MC_STORE(p, v, order) mc_store(MC_WORD(p), MC_VALUE(p, v), order, MC_SITE(#p))
#define MC_MODIFY(p, how, v, order)                                                                \
    __extension__({                                                                                \
        MC_TYPE(p)                                                                                 \
        mc_old = (MC_TYPE(p))mc_modify(MC_WORD(p), how, MC_VALUE(p, v), order, MC_SITE(#p));       \
        mc_old;                                                                                    \
    })
#define MC_CAS(p, expected, v, order, failure_order)                                               \
    __extension__({                                                                                \
        MC_TYPE(p) *mc_expected = (expected);                                                      \
        uint64_t mc_seen = (uint64_t)*mc_expected;                                                 \
        bool mc_done =                                                                             \
            mc_cas(MC_WORD(p), &mc_seen, MC_VALUE(p, v), order, failure_order, MC_SITE(#p));       \
        if (!mc_done)                                                                              \
            *mc_expected = (MC_TYPE(p))mc_seen;                                                    \
        mc_done;                                                                                   \
    })

#define filch_load_relaxed(p) MC_LOAD(p, __ATOMIC_RELAXED)
#define filch_load_acquire(p) MC_LOAD(p, __ATOMIC_ACQUIRE)
#define filch_load_seq_cst(p) MC_LOAD(p, __ATOMIC_SEQ_CST)

#define filch_store_relaxed(p, v) MC_STORE(p, v, __ATOMIC_RELAXED)
#define filch_store_release(p, v) MC_STORE(p, v, __ATOMIC_RELEASE)
#define filch_store_seq_cst(p, v) MC_STORE(p, v, __ATOMIC_SEQ_CST)

#define filch_exchange_acq_rel(p, v) MC_MODIFY(p, MC_EXCHANGE, v, __ATOMIC_ACQ_REL)

#define filch_fetch_add_relaxed(p, v) MC_MODIFY(p, MC_ADD, v, __ATOMIC_RELAXED)
#define filch_fetch_add_release(p, v) MC_MODIFY(p, MC_ADD, v, __ATOMIC_RELEASE)
#define filch_fetch_add_acq_rel(p, v) MC_MODIFY(p, MC_ADD, v, __ATOMIC_ACQ_REL)
#define filch_fetch_add_seq_cst(p, v) MC_MODIFY(p, MC_ADD, v, __ATOMIC_SEQ_CST)

#define filch_cas_acq_rel(p, expected, v) MC_CAS(p, expected, v, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define filch_cas_seq_cst(p, expected, v) MC_CAS(p, expected, v, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)

#define filch_pause() mc_pause(MC_SITE("pause"))

/*
 * Operations that include/filch/atomic.h lacks, for mutants (verify/mutate) and for the checker's
 * own tests:
 *
 *   - each order by itself;
 *   - a cas whose failure order is weaker;
 *   - fences;
 *   - mc_dropped, in place of a call that the mutant leaves out.
 */
#define filch_exchange_relaxed(p, v) MC_MODIFY(p, MC_EXCHANGE, v, __ATOMIC_RELAXED)
#define filch_exchange_acquire(p, v) MC_MODIFY(p, MC_EXCHANGE, v, __ATOMIC_ACQUIRE)
#define filch_exchange_release(p, v) MC_MODIFY(p, MC_EXCHANGE, v, __ATOMIC_RELEASE)
#define filch_fetch_add_acquire(p, v) MC_MODIFY(p, MC_ADD, v, __ATOMIC_ACQUIRE)

#define filch_cas_relaxed(p, expected, v) MC_CAS(p, expected, v, __ATOMIC_RELAXED, __ATOMIC_ACQUIRE)
#define filch_cas_acquire(p, expected, v) MC_CAS(p, expected, v, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define filch_cas_release(p, expected, v) MC_CAS(p, expected, v, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)
#define filch_cas_acq_rel_relaxed_failure(p, expected, v)                                          \
    MC_CAS(p, expected, v, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
#define filch_cas_seq_cst_relaxed_failure(p, expected, v)                                          \
    MC_CAS(p, expected, v, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

#define filch_fence_acquire() mc_fence(__ATOMIC_ACQUIRE, MC_SITE("fence"))
#define filch_fence_release() mc_fence(__ATOMIC_RELEASE, MC_SITE("fence"))
#define filch_fence_acq_rel() mc_fence(__ATOMIC_ACQ_REL, MC_SITE("fence"))
#define filch_fence_seq_cst() mc_fence(__ATOMIC_SEQ_CST, MC_SITE("fence"))

#define mc_dropped(...) ((void)0)

#endif
