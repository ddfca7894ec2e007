/* SPDX-License-Identifier: MIT */
/*
 * pool: create and destroy a pool. first: create a pool and run its first task.
 * Both are means over `size` pools: the cost for short-lived programs and tests.
 */
#include "bench.h"

#include <errno.h>

#if BENCH_FILCH

FILCH_TASK(long, increment, (long, value))
{
    return value + 1;
}

static int create(filch_pool **pool, unsigned workers)
{
    return filch_pool_create(pool,
                             &(filch_options){.size = sizeof(filch_options), .workers = workers});
}

int bench_pool(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    for (long i = 0; i < run->size; i++) {
        filch_pool *pool;
        int err = create(&pool, run->workers);
        if (!err)
            err = filch_pool_destroy(pool);
        if (err)
            return err;
    }
    run->elapsed_ns = (probe_clock_ns() - start_ns) / (uint64_t)run->size;
    run->checksum = run->size;
    return 0;
}

int bench_first(bench_run *run)
{
    uint64_t total_ns = 0;
    long done = 0;
    for (long i = 0; i < run->size; i++) {
        filch_pool *pool;
        uint64_t start_ns = probe_clock_ns();
        int err = create(&pool, run->workers);
        if (err)
            return err;
        done = FILCH_RUN(pool, increment, done);
        total_ns += probe_clock_ns() - start_ns;
        err = filch_pool_destroy(pool);
        if (err)
            return err;
    }
    run->elapsed_ns = total_ns / (uint64_t)run->size;
    run->checksum = done;
    return 0;
}

#else

int bench_pool(bench_run *run)
{
    (void)run;
    return -ENOTSUP;
}

int bench_first(bench_run *run)
{
    (void)run;
    return -ENOTSUP;
}

#endif
