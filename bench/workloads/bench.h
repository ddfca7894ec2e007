/* SPDX-License-Identifier: MIT */
/*
 * The interface between main.c and the workloads.
 *
 * Each file named after a workload is compiled twice: with BENCH_FILCH = 1 into filch-bench-filch,
 * with BENCH_FILCH = 0 into filch-bench-serial. The serial twin is plain C without tasks, the base
 * of all ratios. Another compiler, or other flags, make another such pair. BENCH_VARIANT is the
 * last part of the program's name.
 */
#ifndef BENCH_H
#define BENCH_H

#include "kernels.h"
#include "probe.h"

#if BENCH_FILCH
#include <filch/filch.h>
#else
typedef struct filch_pool filch_pool;
#endif

typedef struct bench_run {
    unsigned workers;
    long size;
    filch_pool *pool; /* its threads have started; NULL in the serial twin */

    /* Filled in by the workload. */
    uint64_t elapsed_ns;
    int64_t checksum;
    probe_wake_figures wake; /* only for wake, instead of the two above */
} bench_run;

/* Run once; the time includes only the work itself. Returns 0 or -errno: -EINVAL for an impossible
 * size, -ENOTSUP if the workload has no serial twin. */
int bench_fib(bench_run *run);
int bench_nqueens(bench_run *run);
int bench_quicksort(bench_run *run);
int bench_matmul(bench_run *run);
int bench_uts(bench_run *run);
int bench_for(bench_run *run);
int bench_small_for(bench_run *run);
int bench_lumps(bench_run *run);
int bench_hidden(bench_run *run);
int bench_flat(bench_run *run);
int bench_idle(bench_run *run);
int bench_wake(bench_run *run);
int bench_pool(bench_run *run);
int bench_first(bench_run *run);

/* Run fib for PROBE_WARM_UP_NS. Returns 0 or -errno. */
int bench_warm_up(filch_pool *pool);

#endif
