/* SPDX-License-Identifier: MIT */
/*
 * A billion forks, in trees of random size and shape, on 1 to 16 workers: every leaf is counted
 * exactly once.
 *
 * FILCH_TEST_FORKS sets their number; with ThreadSanitizer and in an emulator it is a twentieth.
 * Compiled like a release: optimised, and without the checks of a debug build, which misuse_test.c
 * tests.
 */
#define FILCH_CHECKED 0
#include "watchdog.h"

#include <filch/task.h>

#if defined TEST_TSAN || defined TEST_EMULATED
#define IS_SLOW true
#else
#define IS_SLOW false
#endif

#define MOST_WORKERS 16
#define LARGEST_TREE 20000000

static uint64_t fork_count(void)
{
    const char *text = getenv("FILCH_TEST_FORKS");
    return text ? strtoull(text, NULL, 0) : UINT64_C(1000000000) / (IS_SLOW ? 20 : 1);
}

/* A tree of `leaves` leaves has one fork less. The seed determines its shape: mostly halves,
 * sometimes very uneven parts. */
FILCH_TASK(uint64_t, count_leaves, (uint64_t, leaves), (uint64_t, seed))
{
    if (leaves < 2)
        return leaves;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t left = seed >> 60 == 0 ? 1 : 1 + (leaves - 1) * ((seed >> 40) & 0xffff) / 0x10000;

    FILCH_FORK(first, count_leaves, left, seed);
    uint64_t right = FILCH_CALL(count_leaves, leaves - left, seed ^ left);
    return FILCH_JOIN(first) + right;
}

TEST(a_billion_forks_add_up)
{
    const uint64_t forks_per_pool = fork_count() / MOST_WORKERS;
    uint64_t seed = test_seed(), forks = 0;

    for (unsigned workers = 1; workers <= MOST_WORKERS; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        for (uint64_t done = 0; done < forks_per_pool;) {
            seed = seed * UINT64_C(6364136223846793005) + 1;
            uint64_t leaves = 2 + (seed >> 32) % LARGEST_TREE;
            if (leaves > forks_per_pool - done + 1)
                leaves = forks_per_pool - done + 1;

            CHECK(FILCH_RUN(pool, count_leaves, leaves, seed) == leaves);

            done += leaves - 1;
            forks += leaves - 1;
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    }
    printf("%llu forks\n", (unsigned long long)forks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_billion_forks_add_up)};
    return cmocka_run_group_tests_name("billion", tests, watchdog_start, watchdog_stop);
}
