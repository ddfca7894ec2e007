/* SPDX-License-Identifier: MIT */
/*
 * Calls that block, on threads of their own.
 */
#include "pools.h"

#include <filch/blocking.h>
#include <filch/scope.h>

static int thread_differs(void *thread)
{
    return pthread_equal(*(pthread_t *)thread, pthread_self()) ? 0 : 7;
}

static void call_once(filch_frame *f, void *arg)
{
    pthread_t self = pthread_self();
    (void)arg;
    CHECK(filch_blocking(f, FILCH_LANE_FILES, thread_differs, &self) == 7);
}

TEST(a_call_is_made_on_another_thread)
{
    on_pools(call_once, NULL);
}

typedef struct thread_facts {
    char name[16];
    int cpu_count;
} thread_facts;

static int find_facts(void *arg)
{
    thread_facts *facts = arg;
    cpu_set_t set;

    CHECK(pthread_getname_np(pthread_self(), facts->name, sizeof facts->name) == 0);
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    facts->cpu_count = CPU_COUNT(&set);
    return 0;
}

static void call_for_facts(filch_frame *f, void *arg)
{
    CHECK(filch_blocking(f, FILCH_LANE_ANY, find_facts, arg) == 0);
}

TEST(a_call_inherits_neither_the_cpu_nor_the_name_of_the_worker_that_started_its_thread)
{
    filch_options options = {.size = sizeof options, .workers = 2, .pin = true, .name = "pinned"};
    filch_pool *pool = watched_pool_create(&options);
    thread_facts facts;
    cpu_set_t all;

    assert_int_equal(filch_submit(pool, call_for_facts, &facts), 0);
    assert_int_equal(filch_pool_wait(pool), 0);

    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof all, &all), 0);
    assert_int_equal(facts.cpu_count, CPU_COUNT(&all));
    assert_string_equal(facts.name, "pinned/call");
    watched_pool_destroy(pool);
}

TEST(without_a_task_a_call_is_made_here)
{
    pthread_t self = pthread_self();
    assert_int_equal(filch_blocking(NULL, FILCH_LANE_ANY, thread_differs, &self), 0);
}

TEST(wrong_calls_are_errors)
{
    assert_int_equal(filch_blocking(NULL, (filch_lane)(FILCH_LANE_NAMES + 1), thread_differs, NULL),
                     -EINVAL);
    assert_int_equal(filch_blocking(NULL, FILCH_LANE_ANY, NULL, NULL), -EINVAL);
}

/* All of them must run at once before any of them continues: more calls than workers. */
#define TOGETHER 16

static latch all_there;

static int meet(void *arg)
{
    (void)arg;
    latch_open(&all_there);
    latch_wait(&all_there);
    return 0;
}

static int call_meet(filch_frame *f, void *arg)
{
    return filch_blocking(f, FILCH_LANE_FILES, meet, arg);
}

static void meet_all(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    latch_init(&all_there, TOGETHER);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < TOGETHER; i++)
        CHECK(filch_scope_spawn(f, &scope, call_meet, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(calls_that_block_do_not_hold_up_workers_or_each_other)
{
    on_pools(meet_all, NULL);
}

/* The calls in a full lane wait for a call in another lane. */
static latch others_turn;

static int wait_for_other(void *arg)
{
    (void)arg;
    latch_wait(&others_turn);
    return 0;
}

static int open_turn(void *arg)
{
    (void)arg;
    latch_open(&others_turn);
    return 0;
}

static int call_wait(filch_frame *f, void *arg)
{
    return filch_blocking(f, FILCH_LANE_NAMES, wait_for_other, arg);
}

static void fill_lane(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    latch_init(&others_turn, 1);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 50; i++)
        CHECK(filch_scope_spawn(f, &scope, call_wait, NULL) == 0);
    for (int i = 0; i < 60; i++)
        filch_yield(f);
    CHECK(filch_blocking(f, FILCH_LANE_ANY, open_turn, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(a_full_lane_does_not_hold_up_another)
{
    on_pools(fill_lane, NULL);
}

/* A cancellation ends calls that wait for a thread; it waits for calls that have one. */
static counter made, answered;

static int count_made(void *arg)
{
    wait_for_other(arg);
    counter_add(&made, 1);
    return 0;
}

static int call_count(filch_frame *f, void *arg)
{
    int err = filch_blocking(f, FILCH_LANE_NAMES, count_made, arg);
    CHECK(err == 0 || err == -ECANCELED);
    counter_add(&answered, err == 0);
    return 0;
}

static void cancel_calls(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&made, 0);
    counter_set(&answered, 0);
    latch_init(&others_turn, 1);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 50; i++)
        CHECK(filch_scope_spawn(f, &scope, call_count, NULL) == 0);
    for (int i = 0; i < 100; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    latch_open(&others_turn);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(counter_get(&made) == counter_get(&answered));
}

TEST(a_call_that_has_not_begun_is_cancelled_and_others_are_waited_for)
{
    on_pools(cancel_calls, NULL);
}

static int add_one(void *arg)
{
    counter_add(arg, 1);
    return 0;
}

static int call_often(filch_frame *f, void *arg)
{
    for (int i = 0; i < 200 / TEST_SLOWNESS; i++) {
        CHECK(filch_blocking(f, (filch_lane)(i % (FILCH_LANE_NAMES + 1)), add_one, arg) == 0);
        watchdog_kick();
    }
    return 0;
}

static void call_many(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&made, 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 20; i++)
        CHECK(filch_scope_spawn(f, &scope, call_often, &made) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&made) == 20 * (200 / TEST_SLOWNESS));
}

TEST(every_call_is_made_once)
{
    on_pools(call_many, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_made_on_another_thread),
        cmocka_unit_test(
            a_call_inherits_neither_the_cpu_nor_the_name_of_the_worker_that_started_its_thread),
        cmocka_unit_test(without_a_task_a_call_is_made_here),
        cmocka_unit_test(wrong_calls_are_errors),
        cmocka_unit_test(calls_that_block_do_not_hold_up_workers_or_each_other),
        cmocka_unit_test(a_full_lane_does_not_hold_up_another),
        cmocka_unit_test(a_call_that_has_not_begun_is_cancelled_and_others_are_waited_for),
        cmocka_unit_test(every_call_is_made_once),
    };
    return cmocka_run_group_tests_name("blocking", tests, watchdog_start, watchdog_stop);
}
