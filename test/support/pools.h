/* SPDX-License-Identifier: MIT */
/*
 * Pools of several sizes, and tasks on them.
 */
#ifndef FILCH_TEST_POOLS_H
#define FILCH_TEST_POOLS_H

#include "watchdog.h"

#include <filch/scope.h>

static const unsigned worker_counts[] = {1, 2, 4, 8};

#define FOR_EACH_COUNT(workers)                                                                    \
    for (unsigned at = 0, workers;                                                                 \
         at < COUNT_OF(worker_counts) && (workers = worker_counts[at], 1); at++)

/* Run fn as a task on a pool of each size. The task does the checks. */
static TEST_UNUSED void on_pools(filch_fn *fn, void *arg)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, fn, arg), 0);
        watched_pool_destroy(pool);
    }
}

/* For the test's own thread. */
static TEST_UNUSED void open_scope(filch_scope *scope, filch_pool *pool)
{
    assert_int_equal(filch_scope_open(NULL, scope, pool, NULL), 0);
}

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

#endif
