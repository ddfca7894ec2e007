/* SPDX-License-Identifier: MIT */
/*
 * Scopes: tasks that they own, errors, cancellation, limits; and the values that travel with tasks.
 */
#include "watchdog.h"

#include <filch/future.h>

static const unsigned worker_counts[] = {1, 2, 8};

static void on_pools(filch_fn *fn, void *arg)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);
        assert_int_equal(filch_run(pool, fn, arg), 0);
        watched_pool_destroy(pool);
    }
}

static void open_scope(filch_scope *scope, filch_slot *f, filch_scope_options options)
{
    options.size = sizeof options;
    CHECK(filch_scope_open(scope, f, NULL, &options) == 0);
}

static counter ran;

static int count_one(filch_slot *f, void *arg)
{
    (void)f;
    counter_add(&ran, 1);
    return arg ? *(int *)arg : 0;
}

/* ---- tasks ------------------------------------------------------------------------------------- */

static void spawn_many(filch_slot *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 1000; i++)
        CHECK(filch_spawn(f, &scope, count_one, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&ran) == 1000);
}

TEST(close_waits_for_every_task)
{
    on_pools(spawn_many, NULL);
}

TEST(a_scope_may_be_a_plain_threads)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    counter_set(&ran, 0);
    assert_int_equal(filch_scope_open(&scope, NULL, pool, NULL), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(filch_spawn(NULL, &scope, count_one, NULL), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(counter_get(&ran), 100);
    watched_pool_destroy(pool);
}

TEST(a_scope_without_tasks_closes_at_once)
{
    filch_pool *pool = watched_pool_of(1);
    filch_scope scope;

    assert_int_equal(filch_scope_open(&scope, NULL, pool, NULL), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    watched_pool_destroy(pool);
}

TEST(wrong_calls_are_errors)
{
    filch_pool *pool = watched_pool_of(1);
    filch_scope_options options = {.size = 3};
    filch_scope scope;
    filch_future future;

    assert_int_equal(filch_scope_open(&scope, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(filch_scope_open(NULL, NULL, pool, NULL), -EINVAL);
    assert_int_equal(filch_scope_open(&scope, NULL, pool, &options), -EINVAL);
    assert_int_equal(filch_scope_open(&scope, NULL, pool, NULL), 0);
    assert_int_equal(filch_spawn(NULL, &scope, NULL, NULL), -EINVAL);
    assert_int_equal(filch_spawn(NULL, NULL, count_one, NULL), -EINVAL);
    assert_int_equal(filch_spawn_copy(NULL, &scope, count_one, NULL, 8), -EINVAL);
    assert_int_equal(filch_spawn_copy(NULL, &scope, count_one, &ran, SIZE_MAX - 64), -ENOMEM);
    assert_int_equal(filch_async(NULL, &scope, &future, NULL, NULL), -EINVAL);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(filch_scope_close(NULL, NULL), -EINVAL);
    watched_pool_destroy(pool);
}

typedef struct tree {
    filch_scope *scope;
    int depth;
} tree;

static int grow(filch_slot *f, void *arg)
{
    tree t = *(tree *)arg;

    counter_add(&ran, 1);
    for (int i = 0; t.depth > 0 && i < 3; i++)
        CHECK(filch_spawn_copy(f, t.scope, grow, &(tree){t.scope, t.depth - 1}, sizeof t) == 0);
    return 0;
}

static void grow_tree(filch_slot *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){0});
    CHECK(filch_spawn_copy(f, &scope, grow, &(tree){&scope, 6}, sizeof(tree)) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&ran) == (3 * 3 * 3 * 3 * 3 * 3 * 3 - 1) / 2);
}

TEST(tasks_may_spawn_into_their_own_scope)
{
    on_pools(grow_tree, NULL);
}

static int nest(filch_slot *f, void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    filch_scope scope;

    counter_add(&ran, 1);
    if (depth == 0)
        return filch_sleep_ns(f, 100000);
    open_scope(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 3; i++)
        CHECK(filch_spawn(f, &scope, nest, (void *)(depth - 1)) == 0);
    return filch_scope_close(f, &scope);
}

static void nest_deep(filch_slot *f, void *arg)
{
    (void)arg;
    counter_set(&ran, 0);
    CHECK(nest(f, (void *)4) == 0);
    CHECK(counter_get(&ran) == 121);
}

TEST(scopes_nest)
{
    on_pools(nest_deep, NULL);
}

/* ---- errors ------------------------------------------------------------------------------------ */

static int wait_long(filch_slot *f, void *never)
{
    int err = filch_await(f, never, NULL);
    counter_add(&ran, err == -ECANCELED);
    return err;
}

static void fail_one(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    int error = -EIO;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){.cancel_on_error = true});
    for (int i = 0; i < 10; i++)
        CHECK(filch_spawn(f, &scope, wait_long, &never) == 0);
    for (int i = 0; i < 30; i++)
        filch_yield(f);
    int err = filch_spawn(f, &scope, count_one, &error);
    CHECK(err == 0 || err == -ECANCELED);
    CHECK(filch_scope_close(f, &scope) == -EIO);
}

TEST(the_first_error_cancels_the_others_and_is_kept)
{
    on_pools(fail_one, NULL);
}

static void fail_without_cancel(filch_slot *f, void *arg)
{
    filch_scope scope;
    int error = -EDOM;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 100; i++)
        CHECK(filch_spawn(f, &scope, count_one, i == 50 ? &error : NULL) == 0);
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

/* ---- cancellation ------------------------------------------------------------------------------ */

static void cancel_all(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    for (int yields = 0; yields < 20; yields++) {
        open_scope(&scope, f, (filch_scope_options){0});
        for (int i = 0; i < 10; i++)
            CHECK(filch_spawn(f, &scope, wait_long, &never) == 0);
        for (int i = 0; i < yields; i++)
            filch_yield(f);
        filch_scope_cancel(&scope);
        filch_scope_cancel(&scope);
        CHECK(filch_spawn(f, &scope, wait_long, &never) == -ECANCELED);
        CHECK(filch_scope_close(f, &scope) == -ECANCELED);
        CHECK(!has_waiters(&never));
    }
}

TEST(a_cancelled_scope_ends_all_waits)
{
    on_pools(cancel_all, NULL);
}

static int wait_in_fork_body(filch_slot *f, void *never);
static void wait_in_fork(filch_slot *f, void *never)
{
    CHECK(filch_await(f, never, NULL) == -ECANCELED);
    counter_add(&ran, 1);
}

static int wait_in_fork_body(filch_slot *f, void *never)
{
    filch_slot *mark = f;

    for (int i = 0; i < 3; i++)
        f = filch_fork(f, wait_in_fork, never);
    CHECK(filch_await(f, never, NULL) == -ECANCELED);
    filch_join(f, mark);
    return 0;
}

static void cancel_forks(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){0});
    CHECK(filch_spawn(f, &scope, wait_in_fork_body, &never) == 0);
    for (int i = 0; i < 10; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    /* It may not have begun. */
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
    CHECK(counter_get(&ran) == 0 || counter_get(&ran) == 3);
}

TEST(what_a_task_forked_is_cancelled_with_it)
{
    on_pools(cancel_forks, NULL);
}

static int close_inner(filch_slot *f, void *never)
{
    filch_scope scope;

    open_scope(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 5; i++)
        filch_spawn(f, &scope, wait_long, never);
    return filch_scope_close(f, &scope);
}

static void cancel_nested(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    open_scope(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 5; i++)
        CHECK(filch_spawn(f, &scope, close_inner, &never) == 0);
    for (int i = 0; i < 10; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    CHECK(filch_scope_close(f, &scope) == -ECANCELED);
}

TEST(a_cancelled_task_cancels_the_scope_that_it_closes)
{
    on_pools(cancel_nested, NULL);
}

static int clean_up(filch_slot *f, void *never)
{
    CHECK(filch_await(f, never, NULL) == -ECANCELED);
    CHECK(filch_is_cancelled(f));
    CHECK(filch_sleep_ns(f, 1000) == -ECANCELED);

    filch_slot *shield = filch_shield(f);
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

static void cancel_shielded(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_scope(&scope, f, (filch_scope_options){0});
    CHECK(filch_spawn(f, &scope, clean_up, &never) == 0);
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

static void cancel_from_outside(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    pthread_t thread;
    (void)arg;

    for (int i = 0; i < 30; i++) {
        open_scope(&scope, f, (filch_scope_options){0});
        for (int k = 0; k < 5; k++)
            CHECK(filch_spawn(f, &scope, wait_long, &never) == 0);
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

/* ---- deadlines --------------------------------------------------------------------------------- */

static void pass_deadline(filch_slot *f, void *arg)
{
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope scope;
    (void)arg;

    for (int i = 0; i < 10; i++) {
        open_scope(&scope, f, (filch_scope_options){.deadline_ns = filch_after_ns(1 + (uint64_t)i * 100000)});
        for (int k = 0; k < 5; k++)
            filch_spawn(f, &scope, wait_long, &never);
        CHECK(filch_scope_close(f, &scope) == -ETIMEDOUT);
    }
    open_scope(&scope, f, (filch_scope_options){.deadline_ns = filch_after_ms(100000)});
    CHECK(filch_spawn(f, &scope, count_one, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(a_deadline_cancels_what_has_not_ended)
{
    on_pools(pass_deadline, NULL);
}

TEST(a_deadline_passes_though_every_worker_sleeps)
{
    filch_pool *pool = watched_pool_of(2);
    filch_future never = FILCH_FUTURE_INIT;
    filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(3)};
    filch_scope scope;

    assert_int_equal(filch_scope_open(&scope, NULL, pool, &options), 0);
    assert_int_equal(filch_spawn(NULL, &scope, wait_long, &never), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    watched_pool_destroy(pool);
}

/* ---- limit ------------------------------------------------------------------------------------- */

static counter running, most;

static int run_limited(filch_slot *f, void *arg)
{
    (void)arg;
    counter_add(&running, 1);
    uint64_t now = counter_get(&running);
    CHECK(now <= 3);
    if (now > counter_get(&most))
        counter_set(&most, now);
    filch_yield(f);
    counter_add(&running, -1ull);
    return 0;
}

static void spawn_limited(filch_slot *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&running, 0);
    open_scope(&scope, f, (filch_scope_options){.task_limit = 3});
    for (int i = 0; i < 300; i++)
        CHECK(filch_spawn(f, &scope, run_limited, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&running) == 0);
}

TEST(spawn_waits_while_there_are_as_many_tasks_as_the_limit)
{
    on_pools(spawn_limited, NULL);
    assert_true(counter_get(&most) >= 2);
}

/* ---- values that travel ------------------------------------------------------------------------ */

static const filch_key user = {"user"}, request = {"request"};

static void expect_in_fork(filch_slot *f, void *arg)
{
    uintptr_t *values = arg;
    spin(300);
    CHECK(filch_local(f, &user) == (void *)values[0]);
    CHECK(filch_local(f, &request) == (void *)values[1]);
}

static int expect_in_task(filch_slot *f, void *arg)
{
    expect_in_fork(f, arg);
    filch_yield(f);
    expect_in_fork(f, arg);
    return 0;
}

static void bind_and_fork(filch_slot *f, void *arg)
{
    uintptr_t none[] = {0, 0}, one[] = {7, 0}, both[] = {7, 9};
    filch_binding first, second;
    filch_scope scope;
    (void)arg;

    open_scope(&scope, f, (filch_scope_options){0});
    for (int round = 0; round < 300 / TEST_SLOWNESS; round++) {
        filch_slot *outer = f;
        f = filch_fork(f, expect_in_fork, none);
        filch_bind(f, &first, &user, (void *)7);
        filch_slot *mark = f;
        f = filch_fork(f, expect_in_fork, one);
        filch_bind(f, &second, &request, (void *)9);
        filch_slot *inner = f;
        f = filch_fork(f, expect_in_fork, both);
        f = filch_fork(f, expect_in_fork, both);
        CHECK(filch_spawn_copy(f, &scope, expect_in_task, both, sizeof both) == 0);
        f = filch_join(f, inner);
        filch_unbind(f, &second);
        expect_in_fork(f, one);
        CHECK(filch_spawn_copy(f, &scope, expect_in_task, one, sizeof one) == 0);
        f = filch_join(f, mark);
        filch_unbind(f, &first);
        f = filch_join(f, outer);
        expect_in_fork(f, none);
    }
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_local(NULL, &user) == NULL);
}

TEST(a_task_sees_the_values_that_were_bound_when_it_was_forked)
{
    on_pools(bind_and_fork, NULL);
}

/* ---- pools that are destroyed ------------------------------------------------------------------ */

static void wait_a_little(filch_slot *f, void *arg)
{
    (void)arg;
    CHECK(filch_sleep_ns(f, 3000000) == 0);
    counter_add(&ran, 1);
}

TEST(destroy_waits_for_tasks_that_wait)
{
    for (size_t i = 0; i < COUNT_OF(worker_counts); i++) {
        filch_pool *pool = watched_pool_of(worker_counts[i]);
        counter_set(&ran, 0);
        for (int k = 0; k < 20; k++)
            assert_int_equal(filch_submit(pool, wait_a_little, NULL), 0);
        watched_pool_destroy(pool);
        assert_int_equal(counter_get(&ran), 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_waits_for_every_task),
        cmocka_unit_test(a_scope_may_be_a_plain_threads),
        cmocka_unit_test(a_scope_without_tasks_closes_at_once),
        cmocka_unit_test(wrong_calls_are_errors),
        cmocka_unit_test(tasks_may_spawn_into_their_own_scope),
        cmocka_unit_test(scopes_nest),
        cmocka_unit_test(the_first_error_cancels_the_others_and_is_kept),
        cmocka_unit_test(without_cancel_on_error_all_tasks_run),
        cmocka_unit_test(a_cancelled_scope_ends_all_waits),
        cmocka_unit_test(what_a_task_forked_is_cancelled_with_it),
        cmocka_unit_test(a_cancelled_task_cancels_the_scope_that_it_closes),
        cmocka_unit_test(a_shield_lets_clean_up_wait),
        cmocka_unit_test(a_plain_thread_may_cancel),
        cmocka_unit_test(a_deadline_cancels_what_has_not_ended),
        cmocka_unit_test(a_deadline_passes_though_every_worker_sleeps),
        cmocka_unit_test(spawn_waits_while_there_are_as_many_tasks_as_the_limit),
        cmocka_unit_test(a_task_sees_the_values_that_were_bound_when_it_was_forked),
        cmocka_unit_test(destroy_waits_for_tasks_that_wait),
    };
    return cmocka_run_group_tests_name("scope", tests, watchdog_start, watchdog_stop);
}
