/* SPDX-License-Identifier: MIT */
/*
 * lumps: the sum of sin over 20,020 iterations, of which 20 in a row take milliseconds. A runtime
 * that gives a worker many iterations at once gives it several of the long ones.
 */
#include "bench.h"

#if BENCH_FILCH

static void add_range(filch_frame *f, void *sum, void *size, size_t begin, size_t end)
{
    (void)f;
    *(double *)sum += lumps_range(*(long *)size, (long)begin, (long)end);
}

static void merge(void *left, const void *right, void *unused)
{
    (void)unused;
    *(double *)left += *(const double *)right;
}

static const filch_reducer sum_of_sines = {
    .size = sizeof(double),
    .add = add_range,
    .merge = merge,
};

FILCH_TASK(double, sum_up, (long, size))
{
    double sum;
    filch_reduce(FILCH_HERE, 0, LUMPS_COUNT, &sum_of_sines, &size, &sum);
    return sum;
}

static double compute(const bench_run *run)
{
    return FILCH_RUN(run->pool, sum_up, run->size);
}

#else

static double compute(const bench_run *run)
{
    return lumps_range(run->size, 0, LUMPS_COUNT);
}

#endif

int bench_lumps(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    double sum = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = for_check(sum);
    return 0;
}
