/* SPDX-License-Identifier: MIT */
/*
 * hidden: the sum of `for`, by tasks whose forker then computes for long. One task keeps the other
 * worker busy while the root forks ten more. Then the root computes half of the sum, without a fork
 * or a join. If idle workers cannot reach the ten tasks meanwhile, two workers are at best 1.38
 * times as fast as one.
 */
#include "bench.h"

#if BENCH_FILCH

FILCH_TASK(double, add_part, (long, size), (int, part))
{
    return hidden_part(size, part);
}

FILCH_TASK(double, sum_up, (long, size), (int, workers))
{
    add_part_forked child[HIDDEN_TASKS];

    FILCH_FORK(first, add_part, size, 0);
    hidden_await_first(workers);
    for (int i = 0; i < HIDDEN_TASKS; i++)
        FILCH_FORK_INTO(child[i], add_part, size, i + 1);
    double sum = hidden_part(size, HIDDEN_TASKS + 1);
    for (int i = HIDDEN_TASKS; i-- > 0;)
        sum += FILCH_JOIN_FROM(child[i], add_part);
    return sum + FILCH_JOIN(first);
}

static double compute(const bench_run *run)
{
    return FILCH_RUN(run->pool, sum_up, run->size, (int)run->workers);
}

#else

static double compute(const bench_run *run)
{
    double sum = 0;
    for (int part = 0; part < HIDDEN_PARTS; part++)
        sum += hidden_part(run->size, part);
    return sum;
}

#endif

int bench_hidden(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    double sum = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;

    run->checksum = for_check(sum);
    return 0;
}
