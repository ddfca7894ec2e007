/* SPDX-License-Identifier: MIT */
/*
 * Scopes: the tasks that they own, limits on their number, and pools that are destroyed.
 */
#include "scope_support.h"

#include <filch/future.h>

/* ---- tasks ----------------------------------------------------------------------------------- */

static void spawn_many(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 1000; i++)
        CHECK(filch_scope_spawn(f, &scope, count_one, NULL) == 0);
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
    assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, count_one, NULL), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(counter_get(&ran), 100);
    watched_pool_destroy(pool);
}

TEST(a_scope_without_tasks_closes_at_once)
{
    filch_pool *pool = watched_pool_of(1);
    filch_scope scope;

    assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    watched_pool_destroy(pool);
}

TEST(options_of_an_older_and_of_a_newer_header_are_understood)
{
    filch_pool *pool = watched_pool_of(1);
    filch_scope_options older = {.size = offsetof(filch_scope_options, task_limit)};
    struct {
        filch_scope_options options;
        uint64_t unknown;
    } newer = {.options = {.size = sizeof newer, .task_limit = 3}};
    filch_scope scope;

    assert_int_equal(filch_scope_open(NULL, &scope, pool, &older), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(filch_scope_open(NULL, &scope, pool, &newer.options), 0);
    assert_int_equal(scope.task_limit, 3);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);

    newer.unknown = 1;
    assert_int_equal(filch_scope_open(NULL, &scope, pool, &newer.options), -E2BIG);
    watched_pool_destroy(pool);
}

TEST(wrong_calls_are_errors)
{
    filch_pool *pool = watched_pool_of(1);
    filch_scope_options options = {.size = 3};
    filch_scope scope;
    filch_future future;

    assert_int_equal(filch_scope_open(NULL, &scope, NULL, NULL), -EINVAL);
    assert_int_equal(filch_scope_open(NULL, NULL, pool, NULL), -EINVAL);
    assert_int_equal(filch_scope_open(NULL, &scope, pool, &options), -EINVAL);
    assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
    assert_int_equal(filch_scope_spawn(NULL, &scope, NULL, NULL), -EINVAL);
    assert_int_equal(filch_scope_spawn(NULL, NULL, count_one, NULL), -EINVAL);
    assert_int_equal(filch_scope_spawn_copy(NULL, &scope, count_one, NULL, 8), -EINVAL);
    assert_int_equal(filch_scope_spawn_copy(NULL, &scope, count_one, &ran, SIZE_MAX - 64), -ENOMEM);
    assert_int_equal(filch_scope_spawn_copy(NULL, &scope, count_one, &ran, SIZE_MAX), -ENOMEM);
    assert_int_equal(filch_future_spawn(NULL, &scope, &future, NULL, NULL), -EINVAL);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(filch_scope_close(NULL, NULL), -EINVAL);
    watched_pool_destroy(pool);
}

static int close_own(filch_frame *f, void *scope)
{
    CHECK(filch_scope_close(f, scope) == -EDEADLK);
    counter_add(&ran, 1);
    return 0;
}

TEST(a_task_cannot_close_the_scope_that_it_belongs_to)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    counter_set(&ran, 0);
    open_scope(&scope, pool);
    for (int i = 0; i < 3; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, close_own, &scope), 0);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(counter_get(&ran), 3);
    watched_pool_destroy(pool);
}

typedef struct tree {
    filch_scope *scope;
    int depth;
} tree;

static int grow(filch_frame *f, void *arg)
{
    tree t = *(tree *)arg;

    counter_add(&ran, 1);
    for (int i = 0; t.depth > 0 && i < 3; i++)
        CHECK(filch_scope_spawn_copy(f, t.scope, grow, &(tree){t.scope, t.depth - 1}, sizeof t) ==
              0);
    return 0;
}

static void grow_tree(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&ran, 0);
    open_with(&scope, f, (filch_scope_options){0});
    CHECK(filch_scope_spawn_copy(f, &scope, grow, &(tree){&scope, 6}, sizeof(tree)) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&ran) == (3 * 3 * 3 * 3 * 3 * 3 * 3 - 1) / 2);
}

TEST(tasks_may_spawn_into_their_own_scope)
{
    on_pools(grow_tree, NULL);
}

static int nest(filch_frame *f, void *arg)
{
    uintptr_t depth = (uintptr_t)arg;
    filch_scope scope;

    counter_add(&ran, 1);
    if (depth == 0)
        return filch_sleep_ns(f, 100000);
    open_with(&scope, f, (filch_scope_options){0});
    for (int i = 0; i < 3; i++)
        CHECK(filch_scope_spawn(f, &scope, nest, (void *)(depth - 1)) == 0);
    return filch_scope_close(f, &scope);
}

static void nest_deep(filch_frame *f, void *arg)
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

/* ---- limit ----------------------------------------------------------------------------------- */

static counter running, most;

static int run_limited(filch_frame *f, void *arg)
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

static void spawn_limited(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    counter_set(&running, 0);
    open_with(&scope, f, (filch_scope_options){.task_limit = 3});
    for (int i = 0; i < 300; i++)
        CHECK(filch_scope_spawn(f, &scope, run_limited, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(counter_get(&running) == 0);
}

TEST(spawn_waits_while_there_are_as_many_tasks_as_the_limit)
{
    on_pools(spawn_limited, NULL);
    assert_true(counter_get(&most) >= 2);
}

static filch_scope *limited;

static int spawn_two(filch_frame *f, void *arg)
{
    uintptr_t depth = (uintptr_t)arg;

    for (int i = 0; depth > 0 && i < 2; i++)
        CHECK(filch_scope_spawn(f, limited, spawn_two, (void *)(depth - 1)) == 0);
    counter_add(&ran, 1);
    return 0;
}

/* If they waited, all of them might wait for each other to end. */
TEST(tasks_that_spawn_into_their_own_scope_do_not_wait_for_its_limit)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        filch_scope_options options = {.size = sizeof options, .task_limit = 2};
        filch_scope scope;

        limited = &scope;
        counter_set(&ran, 0);
        assert_int_equal(filch_scope_open(NULL, &scope, pool, &options), 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, spawn_two, (void *)6), 0);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(counter_get(&ran), 5 * 127);
        watched_pool_destroy(pool);
    }
}

/* ---- pools that are destroyed ---------------------------------------------------------------- */

static void wait_a_little(filch_frame *f, void *arg)
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

TEST(a_pool_is_not_destroyed_over_an_open_scope)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    open_scope(&scope, pool);
    assert_int_equal(filch_pool_destroy(pool), -EBUSY);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_is_not_destroyed_over_an_open_scope),
        cmocka_unit_test(close_waits_for_every_task),
        cmocka_unit_test(a_scope_may_be_a_plain_threads),
        cmocka_unit_test(a_scope_without_tasks_closes_at_once),
        cmocka_unit_test(options_of_an_older_and_of_a_newer_header_are_understood),
        cmocka_unit_test(wrong_calls_are_errors),
        cmocka_unit_test(a_task_cannot_close_the_scope_that_it_belongs_to),
        cmocka_unit_test(tasks_may_spawn_into_their_own_scope),
        cmocka_unit_test(scopes_nest),
        cmocka_unit_test(spawn_waits_while_there_are_as_many_tasks_as_the_limit),
        cmocka_unit_test(tasks_that_spawn_into_their_own_scope_do_not_wait_for_its_limit),
        cmocka_unit_test(destroy_waits_for_tasks_that_wait),
    };
    return cmocka_run_group_tests_name("scope", tests, watchdog_start, watchdog_stop);
}
