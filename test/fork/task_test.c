/* SPDX-License-Identifier: MIT */
/*
 * Tasks: forks wherever C allows them, spawn and sync, and the same without macros.
 */
#include "task_support.h"

/* ---- where a fork may stand ------------------------------------------------------------------ */

static long serial_fib(long n)
{
    return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2);
}

TEST(a_recursive_task_gives_the_result_of_the_recursive_function)
{
    long n = TEST_SLOWNESS > 1 ? 20 : 27, expected = serial_fib(n);

    FOR_EACH_POOL(pool)
    for (int i = 0; i < 10; i++)
        assert_int_equal(FILCH_RUN(pool, fib, n), expected);
}

FILCH_TASK(long, in_branches, (long, n))
{
    if (n <= 0)
        return 1;
    if (n % 2) {
        FILCH_FORK(child, in_branches, n - 1);
        return FILCH_JOIN(child) + 1;
    } else {
        FILCH_FORK(first, in_branches, n - 1);
        FILCH_FORK(second, in_branches, n - 2);
        long sum = FILCH_JOIN(second);
        return sum + FILCH_JOIN(first);
    }
}

static long serial_in_branches(long n)
{
    if (n <= 0)
        return 1;
    return n % 2 ? serial_in_branches(n - 1) + 1
                 : serial_in_branches(n - 1) + serial_in_branches(n - 2);
}

TEST(a_fork_may_stand_in_a_branch)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_branches, 20), serial_in_branches(20));
}

FILCH_TASK(long, in_switch, (long, n))
{
    long sum = 0;
    switch (n % 4) {
    case 0: {
        FILCH_FORK(child, fib, 10);
        sum += FILCH_JOIN(child);
        break;
    }
    case 1:
    case 2: {
        FILCH_FORK(child, fib, 8);
        sum += FILCH_JOIN(child);
    }
        /* fall through */
    default: {
        FILCH_FORK(child, fib, 5);
        sum += FILCH_JOIN(child);
    }
    }
    return sum;
}

TEST(a_fork_may_stand_in_a_switch)
{
    FOR_EACH_POOL(pool)
    {
        assert_int_equal(FILCH_RUN(pool, in_switch, 0), 55);
        assert_int_equal(FILCH_RUN(pool, in_switch, 1), 21 + 5);
        assert_int_equal(FILCH_RUN(pool, in_switch, 2), 21 + 5);
        assert_int_equal(FILCH_RUN(pool, in_switch, 3), 5);
    }
}

FILCH_TASK(long, in_blocks, (long, n))
{
    long sum = 0;
    FILCH_FORK(outer, fib, n);
    {
        FILCH_FORK(inner, fib, n - 1);
        for (long i = 0; i < 3; i++) {
            FILCH_FORK(in_loop, fib, i);
            do {
                FILCH_FORK(innermost, fib, n - 2);
                sum += FILCH_JOIN(innermost);
            } while (0);
            sum += FILCH_JOIN(in_loop);
        }
        sum += FILCH_JOIN(inner);
    }
    return sum + FILCH_JOIN(outer);
}

TEST(a_fork_may_stand_in_nested_blocks)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_blocks, 12), 144 + 89 + 3 * 55 + 2);
}

/* The operands of && and of the comma have an order; those of + do not. */
FILCH_TASK(long, in_expressions, (long, n))
{
    FILCH_FORK(a, fib, n);
    FILCH_FORK(b, fib, n - 1);
    FILCH_FORK(c, fib, n - 2);
    return FILCH_JOIN(c) == serial_fib(n - 2) && FILCH_JOIN(b) == serial_fib(n - 1)
               ? FILCH_JOIN(a) * 2
               : -1;
}

TEST(a_join_may_stand_in_an_expression)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_expressions, 12), 288);
}

FILCH_DECLARE(bool, is_even, (unsigned, n));

FILCH_TASK(bool, is_odd, (unsigned, n))
{
    if (n == 0)
        return false;
    FILCH_FORK(child, is_even, n - 1);
    return FILCH_JOIN(child);
}

FILCH_BODY(bool, is_even, (unsigned, n))
{
    if (n == 0)
        return true;
    FILCH_FORK(child, is_odd, n - 1);
    return FILCH_JOIN(child);
}

TEST(two_tasks_may_fork_each_other)
{
    FOR_EACH_POOL(pool)
    {
        assert_true(FILCH_RUN(pool, is_even, 1000));
        assert_false(FILCH_RUN(pool, is_even, 1001));
        assert_true(FILCH_RUN(pool, is_odd, 1001));
    }
}

/* ---- spawn and sync -------------------------------------------------------------------------- */

FILCH_TASK(void, count_tree, (counter *, c), (int, depth))
{
    counter_add(c, 1);
    for (int i = 0; depth > 0 && i < 5; i++)
        FILCH_SPAWN(count_tree, c, depth - 1);
    FILCH_SYNC();
}

TEST(a_sync_joins_all_that_was_spawned)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        FILCH_RUN(pool, count_tree, &c, 6);
        assert_int_equal(counter_get(&c), 1 + 5 + 25 + 125 + 625 + 3125 + 15625);
    }
}

FILCH_TASK(bool, sync_in_parts, (counter *, c))
{
    FILCH_SYNC(); /* without a spawn */
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < i; k++)
            FILCH_SPAWN(count_one, c);
        FILCH_SYNC();
        if (counter_get(c) != i * (i + 1) / 2)
            return false;
    }
    FILCH_SYNC();
    return true;
}

TEST(after_each_sync_all_that_was_spawned_so_far_is_complete)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, sync_in_parts, &c));
    }
}

/* A fork with a name, between two spawns, is joined before the next spawn. */
FILCH_TASK(bool, forks_between_spawns, (counter *, c))
{
    bool is_right = true;

    for (long i = 0; i < 20; i++) {
        FILCH_SPAWN(count_one, c);
        FILCH_FORK(child, fib, i);
        long expected = FILCH_CALL(fib, i);
        is_right &= FILCH_JOIN(child) == expected;
    }
    FILCH_SYNC();
    return is_right && counter_get(c) == 20;
}

TEST(forks_that_are_joined_may_stand_between_spawns)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, forks_between_spawns, &c));
    }
}

/* ---- without macros -------------------------------------------------------------------------- */

typedef struct range {
    long first, end, sum;
} range;

static void sum_plain(filch_frame *f, void *arg)
{
    filch_slot *const mark = f;
    range *r = arg;

    if (r->end - r->first == 1) {
        r->sum = r->first;
        return;
    }
    range left = {r->first, (r->first + r->end) / 2, 0}, right = {left.end, r->end, 0};
    f = filch_fork(f, sum_plain, &left);
    sum_plain(f, &right);
    f = filch_join(f, mark);
    r->sum = left.sum + right.sum;
}

TEST(tasks_need_no_macros)
{
    FOR_EACH_POOL(pool)
    {
        range r = {0, 10000, 0};
        filch_run_always(pool, sum_plain, &r);
        assert_int_equal(r.sum, 9999 * 5000);
    }
}

FILCH_TASK(bool, is_on_this_stack, (const char *, address))
{
    char here;
    ptrdiff_t distance = address - (const char *)&here;
    return distance > -100000 && distance < 100000;
}

typedef struct wide_argument {
    uint64_t value[20];
} wide_argument;

FILCH_TASK(uint64_t, add_to, (counter *, sum), (wide_argument, values), (uint64_t, scale))
{
    for (size_t i = 0; i < COUNT_OF(values.value); i++)
        counter_add(sum, values.value[i] * scale);
    return scale;
}

TEST(a_task_may_be_submitted_with_its_arguments)
{
    filch_pool *pool = watched_pool_of(2);
    counter sum = {0};

    for (uint64_t scale = 1; scale <= 1000; scale++) {
        wide_argument values = {{1, 2, [19] = 3}};
        assert_int_equal(FILCH_SUBMIT(pool, add_to, &sum, values, scale), 0);
        memset(&values, 0xff, sizeof values);
    }
    assert_int_equal(filch_pool_wait(pool), 0);

    assert_int_equal(counter_get(&sum), 6 * 500500);
    assert_int_equal(FILCH_SUBMIT(NULL, add_to, &sum, (wide_argument){{0}}, 1), -EINVAL);
    watched_pool_destroy(pool);
}

TEST(without_a_pool_tasks_run_serially_on_the_callers_stack)
{
    char here = 0;
#ifndef TEST_ASAN /* which keeps locals outside of the stack */
    assert_true(FILCH_RUN(NULL, is_on_this_stack, &here));
#endif
    assert_int_equal(FILCH_RUN(NULL, fib, 20), 6765);
    (void)here;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recursive_task_gives_the_result_of_the_recursive_function),
        cmocka_unit_test(a_fork_may_stand_in_a_branch),
        cmocka_unit_test(a_fork_may_stand_in_a_switch),
        cmocka_unit_test(a_fork_may_stand_in_nested_blocks),
        cmocka_unit_test(a_join_may_stand_in_an_expression),
        cmocka_unit_test(two_tasks_may_fork_each_other),
        cmocka_unit_test(a_sync_joins_all_that_was_spawned),
        cmocka_unit_test(after_each_sync_all_that_was_spawned_so_far_is_complete),
        cmocka_unit_test(forks_that_are_joined_may_stand_between_spawns),
        cmocka_unit_test(tasks_need_no_macros),
        cmocka_unit_test(a_task_may_be_submitted_with_its_arguments),
        cmocka_unit_test(without_a_pool_tasks_run_serially_on_the_callers_stack),
    };
    return cmocka_run_group_tests_name("task", tests, create_pools, destroy_pools);
}
