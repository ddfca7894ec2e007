/* SPDX-License-Identifier: MIT */
/*
 * Futures of submitted tasks: filch_future_submit, and FILCH_FUTURE_SUBMIT for tasks with types.
 */
#include "pools.h"

#include "base/fault.h"

#include <filch/future.h>
#include <filch/task.h>

static filch_atomic_u32 has_no_memory, has_no_heap;

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: switches of the test. */
    return (kind == FILCH_FAULT_MAP && filch_load_relaxed(&has_no_memory)) ||
           (kind == FILCH_FAULT_MALLOC && filch_load_relaxed(&has_no_heap));
}

static void set(filch_atomic_u32 *fault, uint32_t value)
{
    /* relaxed: a switch of the test. */
    filch_store_relaxed(fault, value);
}

/* ---- without types --------------------------------------------------------------------------- */

static int give_back(filch_frame *f, void *arg, void **value)
{
    (void)f;
    *value = arg;
    return 0;
}

static int return_eio(filch_frame *f, void *arg, void **value)
{
    (void)f;
    (void)arg;
    (void)value;
    return -EIO;
}

TEST(a_submitted_task_completes_its_future_with_its_value_or_its_error)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);
        filch_future good = FILCH_FUTURE_INIT, bad = FILCH_FUTURE_INIT;
        void *value = NULL;

        assert_int_equal(filch_future_submit(pool, &good, give_back, &good), 0);
        assert_int_equal(filch_future_submit(pool, &bad, return_eio, NULL), 0);

        assert_int_equal(filch_future_get(NULL, &good, &value), 0);
        assert_ptr_equal(value, &good);
        assert_int_equal(filch_future_get(NULL, &bad, &value), -EIO);
        watched_pool_destroy(pool);
    }
}

TEST(a_future_is_not_submitted_without_a_pool_a_future_a_function_or_memory)
{
    filch_pool *pool = watched_pool_of(2);
    filch_future future = FILCH_FUTURE_INIT;

    assert_int_equal(filch_future_submit(NULL, &future, give_back, NULL), -EINVAL);
    assert_int_equal(filch_future_submit(pool, NULL, give_back, NULL), -EINVAL);
    assert_int_equal(filch_future_submit(pool, &future, NULL, NULL), -EINVAL);
    set(&has_no_heap, 1);
    assert_int_equal(filch_future_submit(pool, &future, give_back, NULL), -ENOMEM);
    set(&has_no_heap, 0);

    assert_int_equal(filch_future_try_get(&future, NULL), -EAGAIN);
    watched_pool_destroy(pool);
}

TEST(a_pool_is_not_destroyed_before_its_submitted_futures_are_complete)
{
    enum { COUNT = 100 };
    filch_future futures[COUNT];
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < COUNT; i++) {
        filch_future_init(&futures[i]);
        assert_int_equal(filch_future_submit(pool, &futures[i], give_back, &futures[i]), 0);
    }
    watched_pool_destroy(pool);

    for (int i = 0; i < COUNT; i++)
        assert_int_equal(filch_future_try_get(&futures[i], NULL), 0);
}

/* ---- no memory for a stack ------------------------------------------------------------------- */

static void wait_without_memory(filch_frame *f, void *arg)
{
    filch_future future = FILCH_FUTURE_INIT;

    /* This task has the only stack, and waits: the submitted task cannot begin. */
    set(&has_no_memory, 1);
    CHECK(filch_future_submit(*(filch_pool **)arg, &future, give_back, NULL) == 0);
    CHECK(filch_future_get(f, &future, NULL) == -ENOMEM);
    set(&has_no_memory, 0);
    CHECK(filch_future_try_get(&future, NULL) == -ENOMEM);
}

TEST(a_task_that_gets_no_stack_completes_its_future_with_enomem)
{
    filch_pool *pool = watched_pool_of(1);

    /* The pool is created with one stack, and the run takes it. */
    assert_int_equal(filch_run(pool, wait_without_memory, &pool), 0);

    watched_pool_destroy(pool);
}

/* ---- with types ------------------------------------------------------------------------------ */

typedef struct large {
    long values[20];
} large;

FILCH_TASK(large, twice, (large, in), (int, factor))
{
    for (int i = 0; i < 20; i++)
        in.values[i] *= factor;
    return in;
}

FILCH_TASK(void, add_one, (counter *, c))
{
    counter_add(c, 1);
}

FILCH_TASK(int, seven)
{
    return 7;
}

/* The names that a task declares do not collide with those of a task that is named so. */
FILCH_TASK(int, seven_future)
{
    return FILCH_CALL(seven);
}

TEST(a_typed_future_has_the_result_of_its_task)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);
        fib_future number;
        twice_future doubled;
        add_one_future nothing;
        seven_future without_arguments;
        counter c = {0};
        void *value = NULL;

        assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &number, fib, 15), 0);
        assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &doubled, twice, ((large){.values = {3, 4}}), 2),
                         0);
        assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &nothing, add_one, &c), 0);
        assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &without_arguments, seven), 0);

        assert_int_equal(filch_future_get(NULL, &number.future, &value), 0);
        assert_int_equal(number.result, 610);
        assert_ptr_equal(value, &number.result);
        assert_int_equal(filch_future_get(NULL, &doubled.future, NULL), 0);
        assert_int_equal(doubled.result.values[1], 8);
        assert_int_equal(filch_future_get(NULL, &nothing.future, NULL), 0);
        assert_int_equal(counter_get(&c), 1);
        assert_int_equal(filch_future_get(NULL, &without_arguments.future, NULL), 0);
        assert_int_equal(without_arguments.result, 7);
        watched_pool_destroy(pool);
    }
}

TEST(a_task_may_be_named_like_the_future_of_another)
{
    filch_pool *pool = watched_pool_of(2);
    seven_future one;
    seven_future_future other;

    assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &one, seven), 0);
    assert_int_equal(FILCH_FUTURE_SUBMIT(pool, &other, seven_future), 0);
    assert_int_equal(FILCH_SUBMIT(pool, seven_future), 0);

    assert_int_equal(filch_future_get(NULL, &one.future, NULL), 0);
    assert_int_equal(filch_future_get(NULL, &other.future, NULL), 0);
    assert_int_equal(one.result + other.result, 14);
    watched_pool_destroy(pool);
}

static void submit_inside(filch_frame *f, void *arg)
{
    fib_future answer;

    CHECK(FILCH_FUTURE_SUBMIT(*(filch_pool **)arg, &answer, fib, 10) == 0);
    CHECK(filch_future_get(f, &answer.future, NULL) == 0 && answer.result == 55);
}

TEST(a_task_may_submit_to_its_own_pool_and_wait)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);

        assert_int_equal(filch_run(pool, submit_inside, &pool), 0);

        watched_pool_destroy(pool);
    }
}

TEST(a_typed_future_needs_a_pool)
{
    fib_future answer;

    assert_int_equal(FILCH_FUTURE_SUBMIT(NULL, &answer, fib, 10), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submitted_task_completes_its_future_with_its_value_or_its_error),
        cmocka_unit_test(a_future_is_not_submitted_without_a_pool_a_future_a_function_or_memory),
        cmocka_unit_test(a_pool_is_not_destroyed_before_its_submitted_futures_are_complete),
        cmocka_unit_test(a_task_that_gets_no_stack_completes_its_future_with_enomem),
        cmocka_unit_test(a_typed_future_has_the_result_of_its_task),
        cmocka_unit_test(a_task_may_be_named_like_the_future_of_another),
        cmocka_unit_test(a_task_may_submit_to_its_own_pool_and_wait),
        cmocka_unit_test(a_typed_future_needs_a_pool),
    };
    return cmocka_run_group_tests_name("future_submit", tests, watchdog_start, watchdog_stop);
}
