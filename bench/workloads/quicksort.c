/* SPDX-License-Identifier: MIT */
/*
 * quicksort: 64-bit integers in place. The first partition runs alone over the whole array, which
 * limits the speed-up to (n + n log n) / n. After that, the workers share the memory bandwidth.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#if BENCH_FILCH

FILCH_TASK(void, sort, (int64_t *, values), (long, count))
{
    if (count <= QUICKSORT_CUTOFF) {
        quicksort_insertion(values, count);
        return;
    }
    long split = quicksort_partition(values, count);
    FILCH_FORK(left, sort, values, split);
    FILCH_CALL(sort, values + split, count - split);
    FILCH_JOIN(left);
}

static void compute(const bench_run *run, int64_t *values)
{
    FILCH_RUN(run->pool, sort, values, run->size);
}

#else

static void sort(int64_t *values, long count)
{
    if (count <= QUICKSORT_CUTOFF) {
        quicksort_insertion(values, count);
        return;
    }
    long split = quicksort_partition(values, count);
    sort(values, split);
    sort(values + split, count - split);
}

static void compute(const bench_run *run, int64_t *values)
{
    sort(values, run->size);
}

#endif

int bench_quicksort(bench_run *run)
{
    int64_t *values = malloc((size_t)run->size * sizeof *values);
    if (!values)
        return -ENOMEM;
    quicksort_fill(values, run->size);

    uint64_t start_ns = probe_clock_ns();
    compute(run, values);
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = quicksort_check(values, run->size);
    free(values);
    return 0;
}
