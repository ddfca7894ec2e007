/* SPDX-License-Identifier: MIT */
/*
 * for: the sum of sin(i / 1000) over a long range. The work is easy to divide, so any loss against
 * perfect speed-up is the loop splitter's.
 */
#include "bench.h"

#if BENCH_FILCH

static void add_range(filch_frame *f, void *sum, void *unused, size_t begin, size_t end)
{
    (void)f;
    (void)unused;
    *(double *)sum += for_range((long)begin, (long)end);
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
    filch_reduce(FILCH_HERE, 0, (size_t)size, &sum_of_sines, NULL, &sum);
    return sum;
}

static double compute(const bench_run *run)
{
    return FILCH_RUN(run->pool, sum_up, run->size);
}

#else

static double compute(const bench_run *run)
{
    return for_range(0, run->size);
}

#endif

int bench_for(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    double sum = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = for_check(sum);
    return 0;
}
