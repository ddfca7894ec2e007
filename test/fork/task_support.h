/* SPDX-License-Identifier: MIT */
/*
 * Where the tests of tasks run: without a pool, and with pools of several sizes.
 */
#ifndef FILCH_TEST_TASK_SUPPORT_H
#define FILCH_TEST_TASK_SUPPORT_H

#include "pools.h"

static filch_pool *pools[4]; /* no pool, then 1, 2 and 4 workers */

#define FOR_EACH_POOL(pool)                                                                        \
    for (filch_pool **at = pools, *pool; at < pools + COUNT_OF(pools) && (pool = *at, true);       \
         at++, watchdog_kick())

typedef struct large {
    long values[40];
} large;

static TEST_UNUSED bool is_right_large(large value, long factor)
{
    bool is_right = true;
    for (int i = 0; i < 40; i++)
        is_right &= value.values[i] == factor * i;
    return is_right;
}

static TEST_UNUSED large large_of(long factor)
{
    large result;
    for (int i = 0; i < 40; i++)
        result.values[i] = factor * i;
    return result;
}

FILCH_TASK(void, count_one, (counter *, c))
{
    counter_add(c, 1);
}

static TEST_UNUSED int create_pools(void **state)
{
    static const unsigned workers[] = {0, 1, 2, 4};
    if (watchdog_start(state))
        return -1;
    for (size_t i = 1; i < COUNT_OF(pools); i++) {
        /* Sanitizers make stack frames large. */
        filch_options options = {
            .size = sizeof options, .workers = workers[i], .stack_bytes = (size_t)64 << 20};
        pools[i] = watched_pool_create(&options);
    }
    return 0;
}

static TEST_UNUSED int destroy_pools(void **state)
{
    for (size_t i = 1; i < COUNT_OF(pools); i++)
        watched_pool_destroy(pools[i]);
    return watchdog_stop(state);
}

#endif
