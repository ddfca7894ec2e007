/* SPDX-License-Identifier: MIT */
/*
 * More forks than a strand has slots, deep and wide.
 */
#include "task_support.h"

/* More than the slots of a strand. */
#define MANY 20000

FILCH_TASK(long, in_arrays, (long, n), (long, depth))
{
    in_arrays_forked child[8];
    fib_forked other[4][2];
    long sum = 1;

    if (depth == 0)
        return FILCH_CALL(fib, n);
    for (int i = 0; i < 8; i++) {
        FILCH_FORK_INTO(child[i], in_arrays, n, depth - 1);
        FILCH_FORK_INTO(other[i / 2][i % 2], fib, i);
    }
    for (int i = 8; i-- > 0;) {
        sum += FILCH_JOIN_FROM(other[i / 2][i % 2], fib);
        sum += FILCH_JOIN_FROM(child[i], in_arrays);
    }
    return sum;
}

TEST(handles_may_be_kept_in_arrays)
{
    long expected = 8;
    for (int i = 0; i < 3; i++)
        expected = 8 * expected + (0 + 1 + 1 + 2 + 3 + 5 + 8 + 13) + 1;

    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_arrays, 6, 3), expected);
}

FILCH_TASK(void, spawn_many, (counter *, c), (long, count))
{
    for (long i = 0; i < count; i++)
        FILCH_SPAWN(count_one, c);
    FILCH_SYNC();
}

TEST(a_million_tasks_may_be_spawned_before_the_first_sync)
{
    long count = 1000000 / TEST_SLOWNESS;

    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        FILCH_RUN(pool, spawn_many, &c, count);
        assert_int_equal(counter_get(&c), count);
    }
}

FILCH_TASK(long, deep, (long, n))
{
    if (n == 0)
        return 0;
    FILCH_FORK(child, deep, n - 1);
    return FILCH_JOIN(child) + 1;
}

/* Every level has an open fork during the call. */
FILCH_TASK(long, deep_and_open, (long, n))
{
    if (n == 0)
        return 0;
    FILCH_FORK(child, fib, 2);
    long below = FILCH_CALL(deep_and_open, n - 1);
    return FILCH_JOIN(child) + below;
}

TEST(ten_thousand_levels_of_forks_fit_on_a_stack)
{
    FOR_EACH_POOL(pool)
    {
        assert_int_equal(FILCH_RUN(pool, deep, 10000), 10000);
        assert_int_equal(FILCH_RUN(pool, deep_and_open, 10000), 10000);
    }
}

TEST(a_recursion_may_leave_more_forks_open_than_a_strand_has_slots)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, deep_and_open, MANY), MANY);
}

static counter *runs; /* per task below: how often it ran */

FILCH_TASK(long, mark_run, (long, i))
{
    counter_add(&runs[i], 1);
    return i * 3;
}

FILCH_TASK(long, mark_run_large, (long, i), (large, ballast))
{
    counter_add(&runs[i], 1);
    return is_right_large(ballast, 2) ? i * 3 : -1;
}

FILCH_TASK(bool, fork_many, (mark_run_forked *, child), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run, i);
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run) == i * 3;
    return is_right;
}

FILCH_TASK(bool, fork_many_large, (mark_run_large_forked *, child), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run_large, i, large_of(2));
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run_large) == i * 3;
    return is_right;
}

static bool all_ran_once(long count)
{
    bool once = true;
    for (long i = 0; i < count; i++)
        once &= counter_get(&runs[i]) == 1;
    return once;
}

static void start_counting(long count)
{
    runs = calloc((size_t)count, sizeof runs[0]);
    assert_non_null(runs);
}

TEST(a_million_tasks_may_be_forked_before_the_first_join)
{
    long count = 1000000 / TEST_SLOWNESS;
    mark_run_forked *child = calloc((size_t)count, sizeof child[0]);
    assert_non_null(child);

    FOR_EACH_POOL(pool)
    {
        start_counting(count);
        assert_true(FILCH_RUN(pool, fork_many, child, count));
        assert_true(all_ran_once(count));
        free(runs);
    }
    free(child);
}

TEST(tasks_without_a_slot_may_have_large_arguments)
{
    mark_run_large_forked *child = calloc(MANY, sizeof child[0]);
    assert_non_null(child);

    FOR_EACH_POOL(pool)
    {
        start_counting(MANY);
        assert_true(FILCH_RUN(pool, fork_many_large, child, MANY));
        assert_true(all_ran_once(MANY));
        free(runs);
    }
    free(child);
}

/* Without a free slot, tasks run as usual: fork, call, spawn and sync, and forks without macros. */
static void mark_plain(filch_frame *f TEST_UNUSED, void *arg)
{
    counter_add(arg, 1);
}

static void fork_plain(filch_frame *f, counter *c, long count)
{
    filch_slot *const mark = f;
    for (long i = 0; i < count; i++)
        f = filch_fork(f, mark_plain, c);
    f = filch_join(f, mark);
    CHECK(f == mark);
}

FILCH_TASK(bool, all_kinds, (counter *, c))
{
    FILCH_FORK(child, fib, 10);
    FILCH_CALL(spawn_many, c, 100);
    fork_plain(FILCH_HERE, c, 100);
    bool is_right = FILCH_CALL(in_arrays, 6, 1) == 8 * 8 + 33 + 1;
    return FILCH_JOIN(child) == 55 && is_right;
}

FILCH_TASK(bool, all_kinds_when_full, (counter *, c), (mark_run_forked *, child), (long, count))
{
    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run, i);
    bool is_right = FILCH_CALL(all_kinds, c);
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run) == i * 3;
    return is_right;
}

FILCH_TASK(long, count_slots)
{
    return filch_strand_of(FILCH_HERE)->split.end - FILCH_HERE;
}

TEST(a_full_strand_goes_on_with_all_kinds_of_forks)
{
    mark_run_forked *child = calloc(MANY, sizeof child[0]);
    assert_non_null(child);

    /* Shortly before the last slot, at it, and after it. */
    for (long more = -40; more <= 30; more += 7) {
        FOR_EACH_POOL(pool)
        {
            long count = more <= 20 ? FILCH_RUN(pool, count_slots) + more : MANY - 1;
            counter c = {0};
            start_counting(count);
            assert_true(FILCH_RUN(pool, all_kinds_when_full, &c, child, count));
            assert_int_equal(counter_get(&c), 200);
            assert_true(all_ran_once(count));
            free(runs);
        }
    }
    free(child);
}

FILCH_TASK(bool, spawn_and_fork_many, (counter *, c), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++) {
        FILCH_SPAWN(count_one, c);
        FILCH_FORK(child, fib, 3);
        is_right &= FILCH_JOIN(child) == 2;
    }
    FILCH_SYNC();
    return is_right;
}

TEST(a_fork_above_spawns_that_fill_the_strand_is_run_once)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, spawn_and_fork_many, &c, MANY));
        assert_int_equal(counter_get(&c), MANY);
    }
}

static void fork_plain_many(filch_frame *f, void *arg)
{
    fork_plain(f, arg, 100000);
}

TEST(without_macros_more_may_be_forked_than_a_strand_has_slots)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        filch_run_always(pool, fork_plain_many, &c);
        assert_int_equal(counter_get(&c), 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_may_be_kept_in_arrays),
        cmocka_unit_test(a_million_tasks_may_be_spawned_before_the_first_sync),
        cmocka_unit_test(ten_thousand_levels_of_forks_fit_on_a_stack),
        cmocka_unit_test(a_recursion_may_leave_more_forks_open_than_a_strand_has_slots),
        cmocka_unit_test(a_million_tasks_may_be_forked_before_the_first_join),
        cmocka_unit_test(tasks_without_a_slot_may_have_large_arguments),
        cmocka_unit_test(a_full_strand_goes_on_with_all_kinds_of_forks),
        cmocka_unit_test(a_fork_above_spawns_that_fill_the_strand_is_run_once),
        cmocka_unit_test(without_macros_more_may_be_forked_than_a_strand_has_slots),
    };
    return cmocka_run_group_tests_name("task_many", tests, create_pools, destroy_pools);
}
