/* SPDX-License-Identifier: MIT */
/*
 * Futures, sleep and yield: waits of tasks, which suspend the strand, and of plain threads.
 */
#include "pools.h"

#include <filch/future.h>

/* ---- values ---------------------------------------------------------------------------------- */

TEST(a_complete_future_has_its_value_again_and_again)
{
    filch_future future = FILCH_FUTURE_INIT;
    void *value = NULL;

    assert_int_equal(filch_future_try_get(&future, &value), -EAGAIN);
    assert_true(filch_future_set(&future, &future, 0));

    assert_int_equal(filch_future_get(NULL, &future, &value), 0);
    assert_ptr_equal(value, &future);
    assert_int_equal(filch_future_get(NULL, &future, NULL), 0);
    assert_int_equal(filch_future_try_get(&future, &value), 0);
}

TEST(a_future_is_completed_once)
{
    filch_future future = FILCH_FUTURE_INIT;
    void *value;

    assert_true(filch_future_set(&future, NULL, -EIO));

    assert_false(filch_future_set(&future, &future, 0));
    assert_int_equal(filch_future_get(NULL, &future, &value), -EIO);
    assert_null(value);
}

static void *set_late(void *arg)
{
    filch_future **both = arg;
    void *value;
    /* When the first future is complete, the other side waits, or is about to. */
    CHECK(filch_future_get(NULL, both[0], &value) == 0);
    CHECK(filch_future_set(both[1], value, 0));
    return NULL;
}

static void await_from_thread(filch_frame *f, void *arg)
{
    filch_future here = FILCH_FUTURE_INIT, there = FILCH_FUTURE_INIT;
    filch_future *both[] = {&here, &there};
    pthread_t thread;
    void *value;

    CHECK(pthread_create(&thread, NULL, set_late, both) == 0);
    CHECK(filch_future_set(&here, arg, 0));
    CHECK(filch_future_get(f, &there, &value) == 0);
    CHECK(value == arg);
    CHECK(pthread_join(thread, NULL) == 0);
}

TEST(a_plain_thread_completes_the_future_of_a_task)
{
    on_pools(await_from_thread, &watchdog);
}

TEST(a_plain_thread_waits_for_a_future)
{
    await_from_thread(NULL, &watchdog);
}

/* ---- a task's own fork completes it ---------------------------------------------------------- */

static void set_one(filch_frame *f, void *future)
{
    (void)f;
    CHECK(filch_future_set(future, future, 0));
}

static void await_own_child(filch_frame *f, void *arg)
{
    filch_future futures[3];
    filch_frame *mark = f;
    (void)arg;

    for (int i = 0; i < 3; i++) {
        filch_future_init(&futures[i]);
        f = filch_fork(f, set_one, &futures[i]);
    }
    for (int i = 0; i < 3; i++)
        CHECK(filch_future_get(f, &futures[i], NULL) == 0);
    filch_join(f, mark);
}

TEST(a_task_may_wait_for_a_future_that_its_fork_completes)
{
    on_pools(await_own_child, NULL);
}

/* ---- many waiters ---------------------------------------------------------------------------- */

#define WAITERS 200

static counter woken;

static int await_shared(filch_frame *f, void *future)
{
    void *value;
    CHECK(filch_future_get(f, future, &value) == 0 && value == future);
    counter_add(&woken, 1);
    return 0;
}

static void *await_shared_thread(void *future)
{
    await_shared(NULL, future);
    return NULL;
}

static void wake_many(filch_frame *f, void *arg)
{
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope scope;
    pthread_t threads[4];
    (void)arg;

    counter_set(&woken, 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < WAITERS; i++)
        CHECK(filch_scope_spawn(f, &scope, await_shared, &future) == 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, await_shared_thread, &future) == 0);
    for (int i = 0; i < 20; i++)
        filch_yield(f);
    CHECK(filch_future_set(&future, &future, 0));
    CHECK(filch_scope_close(f, &scope) == 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    CHECK(counter_get(&woken) == WAITERS + COUNT_OF(threads));
}

TEST(a_future_wakes_all_its_waiters)
{
    on_pools(wake_many, NULL);
}

/* ---- async ----------------------------------------------------------------------------------- */

static int half_of(filch_frame *f, void *arg, void **value)
{
    uintptr_t n = (uintptr_t)arg;

    if (n % 2)
        return -EDOM;
    CHECK(filch_yield(f) == 0);
    *value = (void *)(n / 2);
    return 0;
}

static void async_both(filch_frame *f, void *arg)
{
    filch_future even = FILCH_FUTURE_INIT, odd = FILCH_FUTURE_INIT;
    filch_scope scope;
    void *value;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_future_spawn(f, &scope, &even, half_of, (void *)84) == 0);
    CHECK(filch_future_spawn(f, &scope, &odd, half_of, (void *)85) == 0);
    CHECK(filch_future_get(f, &even, &value) == 0 && value == (void *)42);
    CHECK(filch_future_get(f, &odd, &value) == -EDOM);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(async_brings_back_the_value_or_the_error_of_its_task)
{
    on_pools(async_both, NULL);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void sleep_and_look(filch_frame *f, void *arg)
{
    uint64_t start_ns = filch_now_ns();
    (void)arg;

    CHECK(filch_sleep_ns(f, 2000000) == 0);
    CHECK(filch_now_ns() - start_ns >= 2000000);
    CHECK(filch_sleep_until(f, 0) == 0);
}

TEST(a_sleep_is_not_too_short)
{
    on_pools(sleep_and_look, NULL);
    sleep_and_look(NULL, NULL);
}

static void await_never(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    (void)arg;

    for (int i = 0; i < 5; i++) {
        uint64_t deadline_ns = filch_after_ns(300000);
        CHECK(filch_future_get_until(f, &never, NULL, deadline_ns) == -ETIMEDOUT);
        CHECK(filch_now_ns() >= deadline_ns);
    }
    CHECK(filch_future_get_until(f, &never, NULL, 1) == -ETIMEDOUT);
    CHECK(filch_future_set(&never, NULL, 0));
    CHECK(filch_future_get_until(f, &never, NULL, 1) == 0);
}

TEST(a_wait_ends_at_its_deadline)
{
    on_pools(await_never, NULL);
    await_never(NULL, NULL);
}

typedef struct race {
    filch_future future;
    latch ready;
    uint64_t deadline_ns;
} race;

static void *set_at_deadline(void *arg)
{
    race *r = arg;

    latch_wait(&r->ready);
    while (filch_now_ns() < r->deadline_ns)
        filch_pause();
    filch_future_set(&r->future, r, 0);
    return NULL;
}

static void race_deadline(filch_frame *f, void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++) {
        race *r = calloc(1, sizeof *r);
        pthread_t thread;
        void *value = NULL;

        latch_init(&r->ready, 1);
        CHECK(pthread_create(&thread, NULL, set_at_deadline, r) == 0);
        r->deadline_ns = filch_after_ns(100000 + (uint64_t)i * 1000);
        latch_open(&r->ready);
        int err = filch_future_get_until(f, &r->future, &value, r->deadline_ns);
        CHECK((err == 0 && value == r) || err == -ETIMEDOUT);
        pthread_join(thread, NULL);
        free(r);
        watchdog_kick();
    }
}

TEST(a_deadline_and_a_completion_at_once_end_one_wait)
{
    on_pools(race_deadline, NULL);
}

/* ---- the last worker sleeps ------------------------------------------------------------------ */

static void *complete_in_turns(void *arg)
{
    filch_future *futures = arg;

    for (int i = 0; i < 1000; i++) {
        CHECK(filch_future_get(NULL, &futures[2 * i], NULL) == 0);
        CHECK(filch_future_set(&futures[2 * i + 1], NULL, 0));
    }
    return NULL;
}

static void wait_in_turns(filch_frame *f, void *arg)
{
    filch_future *futures = arg;

    for (int i = 0; i < 1000; i++) {
        CHECK(filch_future_set(&futures[2 * i], NULL, 0));
        CHECK(filch_future_get(f, &futures[2 * i + 1], NULL) == 0);
    }
}

TEST(a_completion_from_outside_finds_a_worker_though_all_sleep)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_options options = {
            .size = sizeof options, .workers = worker_counts[i], .spin = FILCH_SPIN_POWER};
        filch_pool *pool = watched_pool_create(&options);
        filch_future *futures = calloc(2000, sizeof *futures);
        pthread_t thread;

        pthread_create(&thread, NULL, complete_in_turns, futures);
        assert_int_equal(filch_run(pool, wait_in_turns, futures), 0);
        pthread_join(thread, NULL);
        watched_pool_destroy(pool);
        free(futures);
    }
}

/* ---- fairness -------------------------------------------------------------------------------- */

static filch_atomic_u32 stop;

static int yield_until_stopped(filch_frame *f, void *arg)
{
    (void)arg;
    /* relaxed: a sign to stop, which orders nothing. */
    while (!filch_load_relaxed(&stop))
        filch_yield(f);
    return 0;
}

static void stop_all(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    /* relaxed: as above. */
    filch_store_relaxed(&stop, 1);
}

static int stop_later(filch_frame *f, void *arg)
{
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    stop_all(f, arg);
    return 0;
}

static void yield_and_submit(filch_frame *f, void *arg)
{
    filch_scope scope;

    for (int by_timer = 0; by_timer < 2; by_timer++) {
        /* relaxed: as above. */
        filch_store_relaxed(&stop, 0);
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        for (int i = 0; i < 20; i++)
            CHECK(filch_scope_spawn(f, &scope, yield_until_stopped, NULL) == 0);
        if (by_timer)
            CHECK(filch_scope_spawn(f, &scope, stop_later, NULL) == 0);
        else
            CHECK(filch_submit(*(filch_pool **)arg, stop_all, NULL) == 0);
        CHECK(filch_scope_close(f, &scope) == 0);
    }
}

TEST(tasks_that_yield_for_ever_let_other_tasks_run)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);
        assert_int_equal(filch_run(pool, yield_and_submit, &pool), 0);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_complete_future_has_its_value_again_and_again),
        cmocka_unit_test(a_future_is_completed_once),
        cmocka_unit_test(a_plain_thread_completes_the_future_of_a_task),
        cmocka_unit_test(a_plain_thread_waits_for_a_future),
        cmocka_unit_test(a_task_may_wait_for_a_future_that_its_fork_completes),
        cmocka_unit_test(a_future_wakes_all_its_waiters),
        cmocka_unit_test(async_brings_back_the_value_or_the_error_of_its_task),
        cmocka_unit_test(a_sleep_is_not_too_short),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(a_deadline_and_a_completion_at_once_end_one_wait),
        cmocka_unit_test(a_completion_from_outside_finds_a_worker_though_all_sleep),
        cmocka_unit_test(tasks_that_yield_for_ever_let_other_tasks_run),
    };
    return cmocka_run_group_tests_name("future", tests, watchdog_start, watchdog_stop);
}
