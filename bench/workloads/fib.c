/* SPDX-License-Identifier: MIT */
/*
 * fib: the cost of a fork and a join. There is no other work and no cut-off, so no program can have
 * a worse ratio to plain recursion.
 */
#include "bench.h"

#include <errno.h>

/* fib(27) = 196418 takes half a millisecond. */
enum { WARM_UP_SIZE = 27, WARM_UP_RESULT = 196418 };

#if BENCH_FILCH

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

static long compute(const bench_run *run)
{
    return FILCH_RUN(run->pool, fib, run->size);
}

static long warm_up_once(filch_pool *pool)
{
    return FILCH_RUN(pool, fib, WARM_UP_SIZE);
}

#else

static long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

/* volatile: the compiler may transform the recursion as it does for any user, but it must not know
 * the caller and the argument. */
static long (*volatile fib_entry)(long n) = fib;

static long compute(const bench_run *run)
{
    return fib_entry(run->size);
}

static long warm_up_once(filch_pool *unused)
{
    (void)unused;
    return fib_entry(WARM_UP_SIZE);
}

#endif

int bench_fib(bench_run *run)
{
    uint64_t start_ns = probe_clock_ns();
    run->checksum = compute(run);
    run->elapsed_ns = probe_clock_ns() - start_ns;
    return 0;
}

int bench_warm_up(filch_pool *pool)
{
    uint64_t start_ns = probe_clock_ns();
    do {
        if (warm_up_once(pool) != WARM_UP_RESULT)
            return -EBADMSG;
    } while (probe_clock_ns() - start_ns < PROBE_WARM_UP_NS);
    return 0;
}
