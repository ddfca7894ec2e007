/* SPDX-License-Identifier: MIT */
/*
 * Wrong forks and joins without macros: a checked program stops and names the line.
 */
#ifndef FILCH_DEBUG
#define FILCH_DEBUG
#endif
#include "misuse_support.h"

static void leaf(filch_frame *f TEST_UNUSED, void *arg)
{
    if (arg)
        counter_add(arg, 1);
}

/* ---- wrong ----------------------------------------------------------------------------------- */

static void forget_all(filch_frame *f, void *pool TEST_UNUSED)
{
    for (int i = 0; i < 2000; i++) {
        /* clang-format off */
        HERE_IT_IS_WRONG; f = filch_fork(f, leaf, NULL);
        /* clang-format on */
    }
}

static __attribute__((noinline)) void forget_one(filch_frame *f)
{
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_fork(f, leaf, NULL);
    /* clang-format on */
}

static void fork_after_a_forgetful_call(filch_frame *f, void *pool TEST_UNUSED)
{
    filch_frame *mark = f;

    f = filch_fork(f, leaf, NULL);
    forget_one(f);
    f = filch_fork(f, leaf, NULL);
    filch_join(f, mark);
}

static void join_after_a_forgetful_call(filch_frame *f, void *pool TEST_UNUSED)
{
    filch_frame *mark = f;

    f = filch_fork(f, leaf, NULL);
    forget_one(f);
    filch_join(f, mark);
}

static void fork_with_an_old_frame(filch_frame *f, void *pool TEST_UNUSED)
{
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_fork(f, leaf, NULL);
    /* clang-format on */
    filch_fork(f, leaf, NULL);
}

FILCH_TASK(long, forgets_plain, (long, value))
{
    forget_one(FILCH_HERE);
    return value;
}

static void call_forgetful_task(filch_frame *f, void *pool TEST_UNUSED)
{
    filch_frame *mark = f;

    f = filch_fork(f, leaf, NULL);
    FILCH_CALL_ON(f, forgets_plain, 1);
    abort_without_message();
    filch_join(f, mark);
}

static void fork_without_frame(filch_frame *f TEST_UNUSED, void *pool TEST_UNUSED)
{
    /* clang-format off */
    HERE_IT_IS_WRONG; filch_fork(NULL, leaf, NULL);
    /* clang-format on */
}

TEST(forks_that_are_never_joined_are_found)
{
    assert_found_in_task(forget_all, "not joined");
}

TEST(forks_that_are_never_joined_are_found_with_every_deque)
{
    /* The last fork is named, or the first. */
    for (unsigned kind = FILCH_DEQUE_SPLIT; kind <= FILCH_DEQUE_BWOS_FIFO; kind++)
        assert_found_with((misuse){forget_all, 1, (filch_deque_kind)kind}, __FILE__, "not joined");
}

TEST(a_fork_that_a_called_function_has_forgotten_is_found_by_its_caller)
{
    assert_found_in_task(fork_after_a_forgetful_call, "not joined");
    assert_found_in_task(join_after_a_forgetful_call, "not joined");
    assert_found_in_task(call_forgetful_task, "the task 'forgets_plain' has returned");
}

TEST(a_fork_with_a_frame_from_before_another_fork_is_found)
{
    assert_found_in_task(fork_with_an_old_frame, "not joined");
}

TEST(a_fork_without_a_frame_is_found)
{
    assert_found_anywhere(fork_without_frame, "without a frame");
}

static void call_without_frame(void *arg TEST_UNUSED)
{
    FILCH_CALL_ON(NULL, forgets_plain, 1);
}

static void forget_serially(void *arg TEST_UNUSED)
{
    filch_run_always(NULL, forget_all, NULL);
}

TEST(without_a_pool_the_same_is_found)
{
    ended without_frame = run_in_child(call_without_frame, NULL);
    ended serially = run_in_child(forget_serially, NULL);

    assert_true(has_ended_by(&without_frame, SIGABRT));
    assert_non_null(strstr(without_frame.text, "'forgets_plain' is called without a frame"));
    assert_true(has_ended_by(&serially, SIGABRT));
    assert_non_null(strstr(serially.text, "not joined"));
}

/* ---- correct --------------------------------------------------------------------------------- */

typedef struct tree {
    counter *leaves;
    int depth;
} tree;

/* Each function name in brackets is that of the library: so code is called that is not checked. */
static void grow(filch_frame *f, void *arg)
{
    const tree *t = arg;
    filch_frame *mark = f;
    tree child = {t->leaves, t->depth - 1};

    if (t->depth == 0) {
        leaf(f, t->leaves);
        return;
    }
    f = filch_fork(f, grow, &child);
    f = (filch_fork)(f, grow, &child);
    f = filch_fork(f, grow, &child);
    f = t->depth % 2 ? (filch_join)(f, mark) : filch_join(f, mark);
    f = filch_fork(f, grow, &child);
    f = (filch_join)(f, mark);
}

static void fork_many(filch_frame *f, void *arg)
{
    filch_frame *mark = f;

    for (int i = 0; i < 20000; i++)
        f = filch_fork(f, leaf, arg);
    f = filch_join(f, mark);
    for (int i = 0; i < 20000; i++)
        f = filch_fork(f, leaf, arg);
    filch_join(f, mark);
}

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    filch_frame *mark = FILCH_HERE, *f = filch_fork(mark, leaf, NULL);
    filch_join(f, mark);
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

TEST(correct_forks_are_not_reported)
{
    for (unsigned kind = FILCH_DEQUE_SPLIT; kind <= FILCH_DEQUE_BWOS_FIFO; kind++)
        for (unsigned workers = 1; workers <= 4; workers++) {
            filch_options options = {
                .size = sizeof options, .workers = workers, .deque = (filch_deque_kind)kind};
            filch_pool *pool;
            counter leaves = {0};
            tree t = {&leaves, 6};

            assert_int_equal(filch_pool_create(&pool, &options), 0);
            for (int i = 0; i < 5; i++)
                assert_int_equal(filch_run(pool, grow, &t), 0);
            assert_int_equal(counter_get(&leaves), 5 * 4096);
            assert_int_equal(filch_run(pool, fork_many, &leaves), 0);
            assert_int_equal(counter_get(&leaves), 5 * 4096 + 40000);
            assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
            assert_int_equal(filch_pool_destroy(pool), 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_that_are_never_joined_are_found),
        cmocka_unit_test(forks_that_are_never_joined_are_found_with_every_deque),
        cmocka_unit_test(a_fork_that_a_called_function_has_forgotten_is_found_by_its_caller),
        cmocka_unit_test(a_fork_with_a_frame_from_before_another_fork_is_found),
        cmocka_unit_test(a_fork_without_a_frame_is_found),
        cmocka_unit_test(without_a_pool_the_same_is_found),
        cmocka_unit_test(correct_forks_are_not_reported),
    };
    return cmocka_run_group_tests_name("misuse_plain", tests, watchdog_start, watchdog_stop);
}
