/* SPDX-License-Identifier: MIT */
/*
 * Fairness: tasks that yield, or sleep for a moment, again and again do not keep other tasks from
 * starting or resuming.
 */
#include "watchdog.h"

#include <filch/future.h>
#include <filch/sync.h>
#include <filch/task.h>

static filch_event event;
static filch_atomic_u32 is_over;

static bool goes_on(void)
{
    /* relaxed: a sign to stop. */
    return !filch_load_relaxed(&is_over);
}

static void stop_all(void)
{
    /* relaxed: as above. */
    filch_store_relaxed(&is_over, 1);
}

static void reset(void)
{
    event = (filch_event){.state = {0}};
    /* relaxed: there is no other thread. */
    filch_store_relaxed(&is_over, 0);
}

static int yield_on(filch_frame *f, void *arg)
{
    (void)arg;
    while (goes_on())
        filch_yield(f);
    return 0;
}

static int sleep_on(filch_frame *f, void *arg)
{
    (void)arg;
    while (goes_on())
        CHECK(filch_sleep_ns(f, 1) == 0);
    return 0;
}

static void set_event(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    filch_event_set(&event);
}

static void stop(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    stop_all();
}

static void fork_and_yield(filch_frame *f, void *arg)
{
    filch_frame *mark = f;
    (void)arg;

    f = filch_fork(f, stop, NULL);
    while (goes_on())
        filch_yield(f);
    filch_join(f, mark);
}

TEST(a_task_that_yields_gives_way_to_its_own_forks)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        reset();
        assert_int_equal(filch_submit(pool, fork_and_yield, NULL), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        watched_pool_destroy(pool);
    }
}

static int fork_and_wait(filch_frame *f, void *arg)
{
    filch_frame *mark = f;
    (void)arg;

    f = filch_fork(f, set_event, NULL);
    CHECK(filch_event_wait(f, &event) == 0);
    filch_join(f, mark);
    stop_all();
    return 0;
}

/* Tasks that yield are spawned before and after the task that forks. */
TEST(the_forks_of_a_task_that_waits_are_run_beside_tasks_that_yield)
{
    for (unsigned workers = 1; workers <= 2; workers++)
        for (int count = 1; count <= 100; count *= 10) {
            filch_pool *pool = watched_pool_of(workers);
            filch_scope scope;

            reset();
            assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
            for (int i = 0; i < count; i++)
                assert_int_equal(filch_scope_spawn(NULL, &scope, yield_on, NULL), 0);
            assert_int_equal(filch_scope_spawn(NULL, &scope, fork_and_wait, NULL), 0);
            for (int i = 0; i < count; i++)
                assert_int_equal(filch_scope_spawn(NULL, &scope, yield_on, NULL), 0);
            assert_int_equal(filch_scope_close(NULL, &scope), 0);
            watched_pool_destroy(pool);
        }
}

static int spawn_all(filch_frame *f, void *scope)
{
    for (int i = 0; i < 500; i++)
        CHECK(filch_scope_spawn(f, scope, sleep_on, NULL) == 0);
    return filch_scope_spawn(f, scope, fork_and_wait, NULL);
}

/* There are so many sleepers that some are always due. */
TEST(submitted_tasks_start_beside_tasks_that_sleep_for_a_moment)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        filch_scope scope;

        reset();
        assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
        for (int i = 0; i < 500; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, sleep_on, NULL), 0);
        assert_int_equal(filch_submit(pool, stop, NULL), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);

        /* Tasks that a task spawns start, too. */
        reset();
        assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
        assert_int_equal(filch_scope_spawn(NULL, &scope, spawn_all, &scope), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_yields_gives_way_to_its_own_forks),
        cmocka_unit_test(the_forks_of_a_task_that_waits_are_run_beside_tasks_that_yield),
        cmocka_unit_test(submitted_tasks_start_beside_tasks_that_sleep_for_a_moment),
    };
    return cmocka_run_group_tests_name("fair", tests, watchdog_start, watchdog_stop);
}
