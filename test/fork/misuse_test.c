/* SPDX-License-Identifier: MIT */
/*
 * Wrong joins: a checked build stops the program and names the line.
 */
#ifndef FILCH_DEBUG
#define FILCH_DEBUG
#endif
#include "child.h"

FILCH_TASK(long, leaf, (long, value))
{
    return value;
}

/* The line that the message must name. */
static int wrong_line;
#define HERE_IT_IS_WRONG (*wrong_line_at = __LINE__)

FILCH_TASK(long, out_of_order, (int *, wrong_line_at))
{
    FILCH_FORK(first, leaf, 1);
    FILCH_FORK(second, leaf, 2);
    /* clang-format off */
    HERE_IT_IS_WRONG; long sum = FILCH_JOIN(first);
    /* clang-format on */
    return sum + FILCH_JOIN(second);
}

FILCH_TASK(long, twice, (int *, wrong_line_at))
{
    FILCH_FORK(child, leaf, 1);
    long sum = FILCH_JOIN(child);
    /* clang-format off */
    HERE_IT_IS_WRONG; sum += FILCH_JOIN(child);
    /* clang-format on */
    return sum;
}

static const int line_of_forgetful = __LINE__ + 1;
FILCH_TASK(long, forgetful, (long, value))
{
    FILCH_FORK(forgotten, leaf, value);
    (void)forgotten_join;
    return value;
}

FILCH_TASK(long, calls_forgetful, (int *, wrong_line_at))
{
    FILCH_FORK(child, leaf, 1);
    long sum = FILCH_CALL(forgetful, 2);
    /* clang-format off */
    HERE_IT_IS_WRONG; sum += FILCH_JOIN(child);
    /* clang-format on */
    return sum;
}

/* A join of the last fork, while a later spawn of this function is not complete. */
FILCH_TASK(long, over_a_spawn, (int *, wrong_line_at))
{
    FILCH_FORK(child, leaf, 1);
    FILCH_SPAWN(leaf, 2);
    /* clang-format off */
    HERE_IT_IS_WRONG; long sum = FILCH_JOIN(child);
    /* clang-format on */
    FILCH_SYNC();
    return sum;
}

FILCH_TASK(long, from_array_out_of_order, (int *, wrong_line_at))
{
    leaf_forked child[3];
    long sum = 0;

    for (int i = 0; i < 3; i++)
        FILCH_FORK_INTO(child[i], leaf, i);
    for (int i = 0; i < 3; i++) {
        /* clang-format off */
        HERE_IT_IS_WRONG; sum += FILCH_JOIN_FROM(child[i], leaf);
        /* clang-format on */
    }
    return sum;
}

typedef struct misuse {
    long (*run)(filch_pool *pool, int *wrong_line_at);
    unsigned workers; /* 0: no pool */
} misuse;

static void do_wrong(void *arg)
{
    misuse *m = arg;
    filch_options options = {.size = sizeof options, .workers = m->workers};
    filch_pool *pool = NULL;

    if (m->workers)
        CHECK(filch_pool_create(&pool, &options) == 0);
    fprintf(stderr, "result %ld\n", m->run(pool, &wrong_line));
}

/* Before it ends, the child prints the line that the message must name. */
static void say_line(int number TEST_UNUSED)
{
    fprintf(stderr, "line %d\n", wrong_line);
}

static void do_wrong_and_say_where(void *arg)
{
    signal(SIGABRT, say_line);
    do_wrong(arg);
}

static void assert_found(long (*run)(filch_pool *, int *), const char *name, const char *what)
{
    for (unsigned workers = 0; workers <= 2; workers++) {
        misuse m = {.run = run, .workers = workers};
        char expected[400];

        ended c = run_in_child(do_wrong_and_say_where, &m);

        if (!has_ended_by(&c, SIGABRT))
            fail_msg("not found: %s; it wrote: %s", name, c.text);
        const char *line = strstr(c.text, "line ");
        assert_non_null(line);
        snprintf(expected, sizeof expected, "%s:%d: '%s", __FILE__, atoi(line + 5), name);
        if (!strstr(c.text, expected) || !strstr(c.text, what))
            fail_msg("expected: %s ... %s; it wrote: %s", expected, what, c.text);
    }
}

TEST(a_join_out_of_order_is_found)
{
    assert_found(out_of_order_run, "first", "out of order");
    assert_found(from_array_out_of_order_run, "child[i]", "out of order");
}

TEST(a_second_join_is_found)
{
    assert_found(twice_run, "child", "second time");
}

TEST(a_forgotten_join_is_found_when_the_task_returns)
{
    char expected[400];

    snprintf(expected, sizeof expected, "filch: %s:%d: the task 'forgetful' returned with 1 forked",
             __FILE__, line_of_forgetful);
    for (unsigned workers = 0; workers <= 2; workers++) {
        misuse m = {.run = calls_forgetful_run, .workers = workers};

        ended c = run_in_child(do_wrong, &m);

        assert_true(has_ended_by(&c, SIGABRT));
        if (!strstr(c.text, expected))
            fail_msg("expected: %s; it wrote: %s", expected, c.text);
    }
}

TEST(a_join_over_a_spawn_is_found)
{
    assert_found(over_a_spawn_run, "child", "");
}

FILCH_TASK(long, right, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, right, n - 1);
    long value = FILCH_CALL(right, n - 2);
    return FILCH_JOIN(left) + value;
}

TEST(correct_joins_are_not_reported)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        for (int i = 0; i < 20; i++)
            assert_int_equal(FILCH_RUN(pool, right, 15), 610);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_out_of_order_is_found),
        cmocka_unit_test(a_second_join_is_found),
        cmocka_unit_test(a_forgotten_join_is_found_when_the_task_returns),
        cmocka_unit_test(a_join_over_a_spawn_is_found),
        cmocka_unit_test(correct_joins_are_not_reported),
    };
    return cmocka_run_group_tests_name("misuse", tests, watchdog_start, watchdog_stop);
}
