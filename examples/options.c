/* SPDX-License-Identifier: MIT */
/* Create a pool with explicit options, and read its counters afterwards. */
#include <filch/filch.h>
#include <stdio.h>

FILCH_TASK(long, count_leaves, (int, depth))
{
    if (depth == 0)
        return 1;
    FILCH_FORK(left, count_leaves, depth - 1);
    long right = FILCH_CALL(count_leaves, depth - 1);
    return FILCH_JOIN(left) + right;
}

int main(void)
{
    const filch_options options = {
        .size = sizeof options,
        .workers = 4,
        .stack_bytes = 256 << 10,
        .victim = FILCH_VICTIM_RANDOM,
        .spin = FILCH_SPIN_POWER,
        .report_overflow = true,
        .name = "leaves",
    };
    filch_pool *pool;
    int err = filch_pool_create(&pool, &options);
    if (err) {
        fprintf(stderr, "no pool: %s\n", filch_strerror(err));
        return 1;
    }
    printf("%u workers, %ld leaves\n", filch_pool_worker_count(pool),
           FILCH_RUN(pool, count_leaves, 20));

    filch_counters counters = {.size = sizeof counters};
    filch_pool_counters(pool, &counters);
#define PRINT(name) fprintf(stderr, "%-12s %llu\n", #name, (unsigned long long)counters.name);
    FILCH_COUNTERS(PRINT)
    return filch_pool_destroy(pool);
}
