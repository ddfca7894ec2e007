/* SPDX-License-Identifier: MIT */
/*
 * What a pool has done so far, and what it does now: counters, always on, readable at any time, and a list of all that waits.
 *
 * Each worker counts for itself. A reading is not a snapshot: the workers go on while it is taken.
 * Forks and joins that nobody stole are not counted; they cost a few instructions and a counter would double
 * that.
 */
#ifndef FILCH_TRACE_H
#define FILCH_TRACE_H

#include <filch/pool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FILCH_COUNTERS(X)                                                                          \
    X(injected)    /* tasks from outside that it ran */                                            \
    X(stolen)      /* tasks that it stole and ran */                                               \
    X(lost)        /* attempts to steal that another thief won */                                  \
    X(empty)       /* attempts that found nothing public */                                        \
    X(published)   /* times it let thieves at its tasks */                                         \
    X(taken_back)  /* times it took them back, unstolen */                                         \
    X(mugged)      /* strands that could go on, and that it took over from another worker */       \
    X(suspensions) /* times a strand left its stack to wait */                                     \
    X(sleeps)      /* times it went to sleep in the kernel */                                      \
    X(wakes)       /* times it woke another worker */

/* `size` is sizeof(filch_counters), set by the caller: a newer library fills in what fits. */
typedef struct filch_counters {
    size_t size;
#define FILCH_COUNTER_FIELD(name) uint64_t name;
    FILCH_COUNTERS(FILCH_COUNTER_FIELD)
#undef FILCH_COUNTER_FIELD
} filch_counters;

/*
 *     filch_counters counters = {.size = sizeof counters};
 *     filch_pool_counters(pool, &counters);
 *
 * The counters of one worker, or the sum over all workers. Returns 0, or -EINVAL: there is no such
 * pool or worker, or `size` was not set. A counter that this library does not have is 0.
 */
FILCH_API int filch_worker_counters(const filch_pool *pool, unsigned worker_index,
                                    filch_counters *counters);

FILCH_API int filch_pool_counters(const filch_pool *pool, filch_counters *counters);

/* Print all strands of the pool, and what each waits for. From any thread; the pool goes on meanwhile. Returns 0, -EINVAL, or -EIO. In gdb,
 * scripts/gdb/filch.py does the same, with backtraces. */
FILCH_API int filch_pool_dump(filch_pool *pool, FILE *out);

#ifdef __cplusplus
}
#endif

#endif
