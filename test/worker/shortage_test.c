/* SPDX-License-Identifier: MIT */
/*
 * No memory for another stack, while waiting tasks hold all stacks: tasks that cannot start end
 * with an error, and the others continue.
 */
#include "shortage_support.h"

#include <filch/blocking.h>
#include <filch/channel.h>
#include <filch/future.h>
#include <filch/io.h>

static counter ran, refused;

static int wait_for_go(filch_frame *f, void *go)
{
    counter_add(&ran, 1);
    return filch_future_get(f, go, NULL);
}

#define TASKS 1000

/* The first tasks get the existing stacks; the others must not make the scope hang. */
static void spawn_into_shortage(filch_frame *f, void *arg)
{
    filch_future go = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    set(&has_no_memory, 1);
    counter_set(&ran, 0);
    for (int i = 0; i < TASKS; i++)
        CHECK(filch_scope_spawn(f, &scope, wait_for_go, &go) == 0);
    while (!has_error(&scope))
        CHECK(filch_sleep_ns(f, 100000) == 0);
    CHECK(filch_future_set(&go, NULL, 0));
    CHECK(filch_scope_close(f, &scope) == -ENOMEM);
    CHECK(counter_get(&ran) < TASKS);
    set(&has_no_memory, 0);

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < TASKS; i++)
        CHECK(filch_scope_spawn(f, &scope, wait_for_go, &go) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(tasks_that_cannot_have_a_stack_end_with_an_error_and_others_go_on)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, spawn_into_shortage, NULL), 0);
        watched_pool_destroy(pool);
    }
}

static int count_up(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    counter_add(&ran, 1);
    return 0;
}

/* A stack between two tasks does not belong to a waiting task. */
TEST(tasks_that_do_not_wait_are_never_refused)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        set(&has_no_memory, 1);
        for (int round = 0; round < 300; round++) {
            filch_scope scope;
            counter_set(&ran, 0);
            assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
            for (int i = 0; i < 50; i++)
                assert_int_equal(filch_scope_spawn(NULL, &scope, count_up, NULL), 0);
            assert_int_equal(filch_scope_close(NULL, &scope), 0);
            assert_int_equal(counter_get(&ran), 50);
            watchdog_kick();
        }
        set(&has_no_memory, 0);
        watched_pool_destroy(pool);
    }
}

static int seven(filch_frame *f, void *arg, void **value)
{
    (void)f, (void)arg;
    *value = (void *)7;
    return 0;
}

/* A task waits for a task that needs another stack. */
static void await_in_shortage(filch_frame *f, void *arg)
{
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope scope;
    void *value;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_future_spawn(f, &scope, &future, seven, NULL) == 0);
    int err = filch_future_get(f, &future, &value);
    CHECK((err == 0 && value == (void *)7) || err == -ENOMEM);
    counter_add(&refused, err == -ENOMEM);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(a_task_that_waits_for_one_without_a_stack_gets_an_error)
{
    counter_set(&refused, 0);
    for (int i = 0; i < 20; i++) {
        filch_pool *pool = watched_pool_of(1);
        set(&has_no_memory, 1);
        assert_int_equal(filch_run(pool, await_in_shortage, NULL), 0);
        set(&has_no_memory, 0);
        watched_pool_destroy(pool);
    }
    assert_int_equal(counter_get(&refused), 20);
}

/* ---- no thread but the first ----------------------------------------------------------------- */

static int nap(filch_frame *f, void *arg)
{
    (void)arg;
    counter_add(&ran, 1);
    return filch_sleep_ns(f, 200000);
}

static int five(void *arg)
{
    (void)arg;
    return 5;
}

static void nap_many(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    CHECK(filch_sleep_ns(f, 100000) == 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 50; i++)
        CHECK(filch_scope_spawn(f, &scope, nap, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_future_get_until(f, &never, NULL, filch_after_ns(100000)) == -ETIMEDOUT);
    CHECK(filch_blocking(f, FILCH_LANE_ANY, five, NULL) == 5);
}

TEST(with_one_thread_timers_fire_all_the_same)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        set(&has_no_threads, 1);
        counter_set(&ran, 0);
        assert_int_equal(filch_run(pool, nap_many, NULL), 0);
        assert_int_equal(counter_get(&ran), 50);
        watched_pool_destroy(pool);
        set(&has_no_threads, 0);
    }
}

static int receive_one(filch_frame *f, void *arg)
{
    char byte;
    ssize_t got = filch_recv(f, *(int *)arg, &byte, 1, 0);
    return got < 0 ? (int)got : 0;
}

/* An operation ends by a deadline, a cancellation, a close, or the event that it waits for, even if
 * another task causes it. */
static void receive_often(filch_frame *f, void *arg)
{
    int pair[2];
    char byte;
    filch_scope scope;
    (void)arg;

    open_pair(pair);
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_one, &pair[0]) == 0);
    filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_one, &pair[0]) == 0);
    filch_yield(f);
    CHECK(filch_send(f, pair[1], "a", 1, 0) == 1);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_send(f, pair[1], "b", 1, 0) == 1);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1 && byte == 'b');
    CHECK(filch_op_start(f, &op) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(filch_close(f, pair[1]) == 0);
}

TEST(with_one_thread_operations_end_all_the_same)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        set(&has_no_threads, 1);
        assert_int_equal(filch_run(pool, receive_often, NULL), 0);
        watched_pool_destroy(pool);
        set(&has_no_threads, 0);
    }
}

static void await_arg(filch_frame *f, void *future)
{
    CHECK(filch_future_get(f, future, NULL) == 0);
    counter_add(&ran, 1);
}

static void *set_future(void *future)
{
    CHECK(filch_future_set(future, NULL, 0));
    return NULL;
}

TEST(with_one_thread_completing_a_future_runs_its_waiters)
{
    filch_pool *pool = watched_pool_of(2);
    set(&has_no_threads, 1);
    for (int i = 0; i < 100; i++) {
        filch_future future = FILCH_FUTURE_INIT;
        pthread_t thread;
        counter_set(&ran, 0);
        pthread_create(&thread, NULL, set_future, &future);
        assert_int_equal(filch_run(pool, await_arg, &future), 0);
        assert_int_equal(counter_get(&ran), 1);
        pthread_join(thread, NULL);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
    set(&has_no_threads, 0);
}

static void sleep_and_count(filch_frame *f, void *arg)
{
    (void)arg;
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    counter_add(&ran, 1);
}

TEST(with_one_thread_a_wait_for_all_tasks_returns)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        set(&has_no_threads, 1);

        counter_set(&ran, 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(filch_submit(pool, sleep_and_count, NULL), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&ran), 3);

        assert_int_equal(filch_submit(pool, sleep_and_count, NULL), 0);
        watched_pool_destroy(pool);
        assert_int_equal(counter_get(&ran), 4);
        set(&has_no_threads, 0);
    }
}

/* ---- two pools, of which one waits for the other --------------------------------------------- */

typedef struct two_pools {
    filch_pool *a, *b;
    filch_channel *channel;
    filch_future future;
} two_pools;

static int sleep_shortly(filch_frame *f, void *arg)
{
    (void)arg;
    counter_add(&ran, 1);
    return filch_sleep_ns(f, 1000000);
}

static int nap_and_send(filch_frame *f, void *arg)
{
    two_pools *p = arg;
    int entry = 7;
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    return filch_channel_send(f, p->channel, &entry);
}

static void nap_and_set(filch_frame *f, void *arg)
{
    two_pools *p = arg;
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    CHECK(filch_future_set(&p->future, p, 0));
}

/* A task of pool a waits for pool b in each way, while tasks of b wait for a timer. */
static void wait_for_b(filch_frame *f, void *arg)
{
    two_pools *p = arg;
    filch_scope scope;
    int entry = 0;

    CHECK(filch_run(p->b, sleep_and_count, NULL) == 0);
    CHECK(filch_scope_open(f, &scope, p->b, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, sleep_shortly, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, nap_and_send, p) == 0);
    CHECK(filch_channel_receive(f, p->channel, &entry) == 0 && entry == 7);
    CHECK(filch_scope_close(f, &scope) == 0);
    p->future = (filch_future)FILCH_FUTURE_INIT;
    CHECK(filch_submit(p->b, nap_and_set, p) == 0);
    CHECK(filch_future_get(f, &p->future, NULL) == 0);
}

TEST(with_one_thread_a_task_of_another_pool_may_wait_for_it)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        two_pools p = {.a = watched_pool_of(workers), .b = watched_pool_of(workers)};

        assert_int_equal(filch_channel_create(&p.channel, sizeof(int), 0), 0);
        set(&has_no_threads, 1);
        counter_set(&ran, 0);
        assert_int_equal(filch_run(p.a, wait_for_b, &p), 0);
        assert_int_equal(filch_submit(p.a, wait_for_b, &p), 0);
        assert_int_equal(filch_pool_wait(p.a), 0);
        assert_int_equal(counter_get(&ran), 4);
        set(&has_no_threads, 0);
        filch_channel_destroy(p.channel);
        watched_pool_destroy(p.b);
        watched_pool_destroy(p.a);
    }
}

/* The plain thread passes no pool to the calls that wait. */
TEST(with_one_thread_a_plain_thread_may_wait_for_it_in_any_way)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        two_pools p = {.b = watched_pool_of(workers), .future = FILCH_FUTURE_INIT};
        filch_scope scope;
        int entry = 0;

        assert_int_equal(filch_channel_create(&p.channel, sizeof(int), 0), 0);
        set(&has_no_threads, 1);
        assert_int_equal(filch_submit(p.b, nap_and_set, &p), 0);
        assert_int_equal(filch_future_get(NULL, &p.future, NULL), 0);
        assert_int_equal(filch_scope_open(NULL, &scope, p.b, NULL), 0);
        assert_int_equal(filch_scope_spawn(NULL, &scope, nap_and_send, &p), 0);
        assert_int_equal(filch_channel_receive(NULL, p.channel, &entry), 0);
        assert_int_equal(entry, 7);
        assert_int_equal(filch_scope_spawn(NULL, &scope, nap_and_send, &p), 0);
        filch_case cases[] = {filch_case_receive(p.channel, &entry)};
        assert_int_equal(filch_select(NULL, cases, 1), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        set(&has_no_threads, 0);
        filch_channel_destroy(p.channel);
        watched_pool_destroy(p.b);
    }
}

/* ---- blocking calls -------------------------------------------------------------------------- */

static latch is_called, may_return;

static int block_until_called(void *arg)
{
    (void)arg;
    latch_open(&is_called);
    latch_wait(&may_return);
    return 0;
}

static int let_return(void *arg)
{
    (void)arg;
    latch_open(&may_return);
    return 0;
}

static int make_first_call(filch_frame *f, void *arg)
{
    (void)arg;
    return filch_blocking(f, FILCH_LANE_ANY, block_until_called, NULL);
}

/* The thread for the second call cannot be started at first. The first call waits for the
 * second. */
static void call_twice(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, make_first_call, NULL) == 0);
    while (!latch_is_open(&is_called))
        CHECK(filch_sleep_ns(f, 100000) == 0);
    set(&failures_left, 1);
    CHECK(filch_blocking(f, FILCH_LANE_ANY, let_return, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(a_thread_for_blocking_calls_is_tried_again)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        latch_init(&is_called, 1);
        latch_init(&may_return, 1);
        assert_int_equal(filch_run(pool, call_twice, NULL), 0);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_that_cannot_have_a_stack_end_with_an_error_and_others_go_on),
        cmocka_unit_test(tasks_that_do_not_wait_are_never_refused),
        cmocka_unit_test(a_task_that_waits_for_one_without_a_stack_gets_an_error),
        cmocka_unit_test(with_one_thread_timers_fire_all_the_same),
        cmocka_unit_test(with_one_thread_operations_end_all_the_same),
        cmocka_unit_test(with_one_thread_completing_a_future_runs_its_waiters),
        cmocka_unit_test(with_one_thread_a_wait_for_all_tasks_returns),
        cmocka_unit_test(with_one_thread_a_task_of_another_pool_may_wait_for_it),
        cmocka_unit_test(with_one_thread_a_plain_thread_may_wait_for_it_in_any_way),
        cmocka_unit_test(a_thread_for_blocking_calls_is_tried_again),
    };
    return cmocka_run_group_tests_name("shortage", tests, watchdog_start, watchdog_stop);
}
