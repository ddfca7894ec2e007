/* SPDX-License-Identifier: MIT */
/*
 * Scopes that end early: by errors, cancellation, deadlines; and shields against cancellation.
 */
#include "scope_support.h"

#include <filch/future.h>

/* ---- errors ---------------------------------------------------------------------------------- */

static int wait_long(filch_frame *f, void *never)
{
    int err = filch_future_get(f, never, NULL);
    counter_add(&ran, err == -ECANCELED);
    return err;
}

static void fail_one(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    int error = -EIO;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){.cancel_on_error = true});
    for (int i = 0; i < 10; i++)
        CHECK(filch_scope_spawn(f, &scope, wait_long, &never) == 0);
    for (int i = 0; i < 30; i++)
        filch_yield(f);
    int err = filch_scope_spawn(f, &scope, count_one, &error);
    CHECK(err == 0 || err == -ECANCELED);
    CHECK(filch_scope_close(f, &scope) == -EIO);
}

TEST(the_first_error_cancels_the_others_and_is_kept)
{
    on_pools(fail_one, NULL);
}

static void fail_without_cancel(filch_frame *f, void *arg)
{
    filch_scope scope;
    int error = -EDOM;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 100; i++)
        CHECK(filch_scope_spawn(f, &scope, count_one, i == 50 ? &error : NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == -EDOM);
    CHECK(counter_get(&ran) == 100);
}

TEST(without_cancel_on_error_all_tasks_run)
{
    on_pools(fail_without_cancel, NULL);
}

static bool has_waiters(filch_future *future)
{
    filch_lock_acquire((filch_lock *)&future->lock);
    bool has_some = future->waiters.first;
    filch_lock_release((filch_lock *)&future->lock);
    return has_some;
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void cancel_all(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    for (int yields = 0; yields < 20; yields++) {
        open_with(&scope, f, (filch_scope_options){0});
        for (int i = 0; i < 10; i++)
            CHECK(filch_scope_spawn(f, &scope, wait_long, &never) == 0);
        for (int i = 0; i < yields; i++)
            filch_yield(f);
        filch_scope_cancel(&scope);
        filch_scope_cancel(&scope);
        CHECK(filch_scope_spawn(f, &scope, wait_long, &never) == -ECANCELED);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED);
        CHECK(!has_waiters(&never));
    }
}

TEST(a_cancelled_scope_ends_all_waits)
{
    on_pools(cancel_all, NULL);
}

static int wait_in_fork_body(filch_frame *f, void *never);
static void wait_in_fork(filch_frame *f, void *never)
{
    CHECK(filch_future_get(f, never, NULL) == -ECANCELED);
    counter_add(&ran, 1);
}

static int wait_in_fork_body(filch_frame *f, void *never)
{
    filch_frame *mark = f;

    for (int i = 0; i < 3; i++)
        f = filch_fork(f, wait_in_fork, never);
    CHECK(filch_future_get(f, never, NULL) == -ECANCELED);
    filch_join(f, mark);
    return 0;
}

static void cancel_forks(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){0});
    CHECK(filch_scope_spawn(f, &scope, wait_in_fork_body, &never) == 0);
    for (int i = 0; i < 10; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    /* The task may not have started. */
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(counter_get(&ran) == 0 || counter_get(&ran) == 3);
}

TEST(the_forks_of_a_task_are_cancelled_with_it)
{
    on_pools(cancel_forks, NULL);
}

static int close_inner(filch_frame *f, void *never)
{
    filch_scope scope;

    open_with(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 5; i++)
        filch_scope_spawn(f, &scope, wait_long, never);
    return filch_scope_close(f, &scope);
}

static void cancel_nested(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    open_with(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 5; i++)
        CHECK(filch_scope_spawn(f, &scope, close_inner, &never) == 0);
    for (int i = 0; i < 10; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
}

TEST(a_cancelled_task_cancels_the_scope_that_it_closes)
{
    on_pools(cancel_nested, NULL);
}

static int clean_up(filch_frame *f, void *never)
{
    CHECK(filch_future_get(f, never, NULL) == -ECANCELED);
    CHECK(filch_is_cancelled(f));
    CHECK(filch_sleep_ns(f, 1000) == -ECANCELED);

    filch_frame *shield = filch_shield(f);
    CHECK(!filch_is_cancelled(f));
    CHECK(filch_sleep_ns(f, 100000) == 0);
    filch_slot *inner = filch_shield(f);
    filch_unshield(f, inner);
    CHECK(filch_sleep_ns(f, 1000) == 0);
    filch_unshield(f, shield);

    CHECK(filch_yield(f) == -ECANCELED);
    counter_add(&ran, 1);
    return 0;
}

static void cancel_shielded(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){0});
    CHECK(filch_scope_spawn(f, &scope, clean_up, &never) == 0);
    while (!has_waiters(&never))
        filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(counter_get(&ran) == 1);
}

TEST(a_shield_lets_clean_up_wait)
{
    on_pools(cancel_shielded, NULL);
}

static void *cancel_from_thread(void *scope)
{
    filch_scope_cancel(scope);
    return NULL;
}

static void cancel_from_outside(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    pthread_t thread;
    (void)arg;

    for (int i = 0; i < 30; i++) {
        open_with(&scope, f, (filch_scope_options){0});
        for (int k = 0; k < 5; k++)
            CHECK(filch_scope_spawn(f, &scope, wait_long, &never) == 0);
        pthread_create(&thread, NULL, cancel_from_thread, &scope);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED);
        pthread_join(thread, NULL);
        watchdog_kick();
    }
}

TEST(a_plain_thread_may_cancel)
{
    on_pools(cancel_from_outside, NULL);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void pass_deadline(filch_frame *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    for (int i = 0; i < 10; i++) {
        open_with(&scope, f,
                  (filch_scope_options){.deadline_ns = filch_after_ns(1 + (uint64_t)i * 100000)});
        for (int k = 0; k < 5; k++)
            filch_scope_spawn(f, &scope, wait_long, &never);
        CHECK(filch_scope_close(f, &scope) == -ETIMEDOUT);
    }
    open_with(&scope, f, (filch_scope_options){.deadline_ns = filch_after_ms(3600000)});
    CHECK(filch_scope_spawn(f, &scope, count_one, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(a_deadline_cancels_tasks_that_have_not_ended)
{
    on_pools(pass_deadline, NULL);
}

TEST(a_deadline_passes_though_every_worker_sleeps)
{
    filch_pool *pool = watched_pool_of(2);
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(3)};
    filch_scope scope;

    assert_int_equal(filch_scope_open(NULL, &scope, pool, &options), 0);
    int err = filch_scope_spawn(NULL, &scope, wait_long, &never);
    assert_true(err == 0 || err == -ECANCELED); /* the deadline may have passed already */
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    watched_pool_destroy(pool);
}

static int compute_until_cancelled(filch_frame *f, void *arg)
{
    (void)arg;
    while (!filch_is_cancelled(f))
        spin(100);
    return 0;
}

/* No idle worker watches the timers. */
TEST(a_deadline_reaches_tasks_that_compute_on_all_workers)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(5)};
        filch_scope scope;

        assert_int_equal(filch_scope_open(NULL, &scope, pool, &options), 0);
        for (unsigned i = 0; i < workers; i++) {
            int err = filch_scope_spawn(NULL, &scope, compute_until_cancelled, NULL);
            assert_true(err == 0 || err == -ECANCELED); /* it may have passed already */
        }

        assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
        watched_pool_destroy(pool);
    }
}

static int close_computing(filch_frame *f, void *depth)
{
    filch_scope scope;

    open_with(&scope, f, (filch_scope_options){0});
    int err = depth ? filch_scope_spawn(f, &scope, close_computing, (void *)((uintptr_t)depth - 1))
                    : filch_scope_spawn(f, &scope, compute_until_cancelled, NULL);
    CHECK(err == 0 || err == -ECANCELED); /* the deadline may have passed already */
    return filch_scope_close(f, &scope);
}

/* The tasks that close the inner scopes have no worker to run on. */
TEST(a_deadline_reaches_tasks_that_compute_in_scopes_inside_of_scopes)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(5)};
        filch_scope scope;

        assert_int_equal(filch_scope_open(NULL, &scope, pool, &options), 0);
        for (unsigned i = 0; i < 2 * workers; i++) {
            int err = filch_scope_spawn(NULL, &scope, close_computing, (void *)3);
            assert_true(err == 0 || err == -ECANCELED); /* it may have passed already */
        }

        assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_error_cancels_the_others_and_is_kept),
        cmocka_unit_test(without_cancel_on_error_all_tasks_run),
        cmocka_unit_test(a_cancelled_scope_ends_all_waits),
        cmocka_unit_test(the_forks_of_a_task_are_cancelled_with_it),
        cmocka_unit_test(a_cancelled_task_cancels_the_scope_that_it_closes),
        cmocka_unit_test(a_shield_lets_clean_up_wait),
        cmocka_unit_test(a_plain_thread_may_cancel),
        cmocka_unit_test(a_deadline_cancels_tasks_that_have_not_ended),
        cmocka_unit_test(a_deadline_passes_though_every_worker_sleeps),
        cmocka_unit_test(a_deadline_reaches_tasks_that_compute_on_all_workers),
        cmocka_unit_test(a_deadline_reaches_tasks_that_compute_in_scopes_inside_of_scopes),
    };
    return cmocka_run_group_tests_name("cancel", tests, watchdog_start, watchdog_stop);
}
