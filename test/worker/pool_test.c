/* SPDX-License-Identifier: MIT */
/*
 * Pools: runs and submits from outside, the calls that a task may make, counters, destruction.
 */
#include "pool_support.h"

#include <fcntl.h>

/* ---- in from everywhere ---------------------------------------------------------------------- */

TEST(a_run_is_complete_when_it_returns)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (unsigned i = 1; i <= 200; i++) {
            assert_int_equal(filch_run(pool, tree_of_depth_8, &c), 0);
            assert_int_equal(counter_get(&c), i * TREE_8);
        }
        watched_pool_destroy(pool);
    }
}

TEST(a_wait_returns_when_all_that_was_submitted_is_complete)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (unsigned i = 1; i <= 20; i++) {
            for (unsigned k = 0; k < 20; k++)
                assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
            assert_int_equal(filch_pool_wait(pool), 0);
            assert_int_equal(counter_get(&c), i * 20 * TREE_8);
        }
        assert_int_equal(filch_pool_wait(pool), 0);
        watched_pool_destroy(pool);
    }
}

TEST(destroy_waits_for_submitted_tasks)
{
    FOR_EACH_COUNT(workers)
    for (int i = 0; i < 50; i++) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (unsigned k = 0; k < 10; k++)
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        assert_int_equal(filch_pool_destroy(pool), 0);
        /* filch_pool_destroy did not tell the watchdog. */
        for (int p = 0; p < WATCHED_POOLS; p++)
            /* relaxed: only this thread writes it. */
            filch_store_relaxed(&watchdog.pools[p], NULL);
        assert_int_equal(counter_get(&c), 10 * TREE_8);
    }
}

typedef struct submission {
    filch_pool *to;
    filch_fn *fn;
    counter *c;
    unsigned count;
} submission;

static void submit_some(filch_frame *f TEST_UNUSED, void *arg)
{
    submission *s = arg;
    for (unsigned i = 0; i < s->count; i++)
        CHECK(filch_submit(s->to, s->fn, s->c) == 0);
}

TEST(a_task_may_submit_to_its_own_pool)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};
        submission s = {pool, tree_of_depth_8, &c, 30};

        assert_int_equal(filch_run(pool, submit_some, &s), 0);
        assert_int_equal(filch_submit(pool, submit_some, &s), 0);
        assert_int_equal(filch_pool_wait(pool), 0);

        assert_int_equal(counter_get(&c), 60 * TREE_8);
        watched_pool_destroy(pool);
    }
}

TEST(a_task_may_submit_to_another_pool)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers), *other = watched_pool_of(workers);
        counter c = {0};
        submission s = {other, tree_of_depth_8, &c, 30};

        assert_int_equal(filch_run(pool, submit_some, &s), 0);
        assert_int_equal(filch_submit(pool, submit_some, &s), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(filch_pool_wait(other), 0);

        assert_int_equal(counter_get(&c), 60 * TREE_8);
        watched_pool_destroy(pool);
        watched_pool_destroy(other);
    }
}

typedef struct user {
    filch_pool *pool;
    pthread_barrier_t *start;
    counter *c;
    unsigned rounds;
} user;

static void *use(void *arg)
{
    user *u = arg;

    if (u->start)
        pthread_barrier_wait(u->start);
    for (unsigned i = 0; i < u->rounds; i++) {
        counter own = {0};
        CHECK(filch_run(u->pool, tree_of_depth_8, &own) == 0);
        CHECK(counter_get(&own) == TREE_8);
        counter_add(u->c, TREE_8);
        CHECK(filch_submit(u->pool, tree_of_depth_8, u->c) == 0);
    }
    return NULL;
}

TEST(many_threads_may_use_one_pool_at_once)
{
    static const unsigned thread_counts[] = {2, 8};

    for (unsigned t = 0; t < COUNT_OF(thread_counts); t++)
        FOR_EACH_COUNT(workers)
        {
            filch_pool *pool = watched_pool_of(workers);
            pthread_t threads[8];
            pthread_barrier_t start;
            counter c = {0};
            user u = {pool, &start, &c, 50};

            pthread_barrier_init(&start, NULL, thread_counts[t]);
            for (unsigned i = 0; i < thread_counts[t]; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, use, &u), 0);
            for (unsigned i = 0; i < thread_counts[t]; i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(filch_pool_wait(pool), 0);

            assert_int_equal(counter_get(&c), thread_counts[t] * 50 * 2 * TREE_8);
            pthread_barrier_destroy(&start);
            watched_pool_destroy(pool);
        }
}

TEST(a_thread_may_use_a_pool_and_end)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};
        user u = {pool, NULL, &c, 1};

        for (int i = 0; i < 100; i++) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, use, &u), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);
        }
        assert_int_equal(filch_pool_wait(pool), 0);

        assert_int_equal(counter_get(&c), 100 * 2 * TREE_8);
        watched_pool_destroy(pool);
    }
}

/* ---- calls that a task must not make --------------------------------------------------------- */

static void wait_inside(filch_frame *f TEST_UNUSED, void *pool)
{
    CHECK(filch_pool_wait(pool) == -EDEADLK);
    CHECK(filch_pool_destroy(pool) == -EDEADLK);
}

FILCH_TASK(void, wait_inside_stolen, (filch_pool *, pool), (latch *, is_started))
{
    latch_open(is_started);
    wait_inside(FILCH_HERE, pool);
}

FILCH_TASK(void, fork_a_waiter, (filch_pool *, pool))
{
    latch is_started;
    latch_init(&is_started, 1);
    FILCH_FORK(child, wait_inside_stolen, pool, &is_started);
    if (filch_pool_worker_count(pool) > 1)
        latch_wait(&is_started);
    FILCH_JOIN(child);
}

TEST(a_task_cannot_wait_for_its_own_pool_or_destroy_it)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);

        assert_int_equal(filch_run(pool, wait_inside, pool), 0);
        assert_int_equal(filch_submit(pool, wait_inside, pool), 0);
        FILCH_RUN(pool, fork_a_waiter, pool);

        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void create_and_destroy(filch_frame *f TEST_UNUSED, void *arg)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_submit(pool, tree_of_depth_8, arg) == 0);
    CHECK(filch_pool_wait(pool) == 0);
    CHECK(filch_run(pool, tree_of_depth_8, arg) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_task_may_create_use_and_destroy_another_pool)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (int i = 0; i < 10; i++)
            assert_int_equal(filch_run(pool, create_and_destroy, &c), 0);

        assert_int_equal(counter_get(&c), 20 * TREE_8);
        watched_pool_destroy(pool);
    }
}

static filch_pool *pool_of_the_child;
static int is_leaving_from_a_task;

#ifdef TEST_ASAN
/* LeakSanitizer does not search the stack of a strand for pointers: no check if a task calls
 * exit(). */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_leaving_from_a_task;
}
#endif

static void exit_inside(filch_frame *f TEST_UNUSED, void *arg)
{
    is_leaving_from_a_task = 1;
    exit(*(int *)arg);
}

static void exit_in_task(void *workers)
{
    filch_options options = {.size = sizeof options, .workers = *(unsigned *)workers};
    static int code = 42;

    CHECK(filch_pool_create(&pool_of_the_child, &options) == 0);
    CHECK(FILCH_RUN(pool_of_the_child, fib, 15) == 610);
    filch_run(pool_of_the_child, exit_inside, &code);
}

static void exit_in_submitted_task(void *workers)
{
    filch_options options = {.size = sizeof options, .workers = *(unsigned *)workers};
    static int code = 43;

    CHECK(filch_pool_create(&pool_of_the_child, &options) == 0);
    CHECK(filch_submit(pool_of_the_child, exit_inside, &code) == 0);
    filch_pool_wait(pool_of_the_child);
}

TEST(a_task_may_call_exit)
{
    FOR_EACH_COUNT(workers)
    {
        ended run = run_in_child(exit_in_task, &workers);
        ended submitted = run_in_child(exit_in_submitted_task, &workers);
        watchdog_kick();

        assert_exit_code(&run, 42);
        assert_exit_code(&submitted, 43);
    }
}

/* ---- counters -------------------------------------------------------------------------------- */

static uintptr_t strand_of(const filch_frame *f)
{
    return (uintptr_t)f & ~(FILCH_REGION_BYTES - 1);
}

/* Counts the tasks that run on another strand than the one they were forked on. */
FILCH_TASK(void, moving_tree, (counter *, moved), (uintptr_t, home), (int, depth))
{
    uintptr_t here = strand_of(FILCH_HERE);

    counter_add(moved, here != home);
    for (int i = 0; depth > 0 && i < 4; i++)
        FILCH_SPAWN(moving_tree, moved, here, depth - 1);
    FILCH_SYNC();
}

static void moving_root(filch_frame *f, void *arg)
{
    moving_tree_body(f, f, arg, strand_of(f), 6);
}

TEST(every_task_from_outside_and_every_stolen_task_is_counted)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        filch_counters counters = {.size = sizeof counters};
        counter moved = {0};

        for (int i = 0; i < 20; i++) {
            assert_int_equal(filch_run(pool, moving_root, &moved), 0);
            assert_int_equal(filch_submit(pool, moving_root, &moved), 0);
        }
        assert_int_equal(filch_pool_wait(pool), 0);

        assert_int_equal(filch_pool_counters(pool, &counters), 0);
        assert_int_equal(counters.injected, 40);
        assert_int_equal(counters.stolen, counter_get(&moved));
        assert_true(counters.suspensions <= counters.stolen);
        watched_pool_destroy(pool);
    }
}

#define SPAWNED 930

static int count_me(filch_frame *f, void *arg)
{
    (void)f;
    counter_add(arg, 1);
    return 0;
}

/* Spawns tasks, and keeps its worker until they have run: other workers must take all of them. */
static void spawn_for_others(filch_frame *f, void *arg)
{
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < SPAWNED; i++)
        CHECK(filch_scope_spawn(f, &scope, count_me, arg) == 0);
    while (counter_get(arg) < SPAWNED)
        sched_yield();
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(every_spawned_task_is_counted_and_also_when_it_is_stolen)
{
    filch_pool *pool = watched_pool_of(2);
    filch_counters counters = {.size = sizeof counters};
    counter ran = {0};

    assert_int_equal(filch_run(pool, spawn_for_others, &ran), 0);

    assert_int_equal(filch_pool_counters(pool, &counters), 0);
    assert_int_equal(counters.injected, 1);
    assert_int_equal(counters.spawned, SPAWNED);
    assert_int_equal(counters.stolen, SPAWNED);
    watched_pool_destroy(pool);
}

static void spawn_from_outside(filch_pool *pool, counter *ran)
{
    filch_scope scope;

    assert_int_equal(filch_scope_open(NULL, &scope, pool, NULL), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, count_me, ran), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
}

TEST(a_task_spawned_from_outside_counts_as_injected)
{
    filch_pool *pool = watched_pool_of(2);
    filch_counters counters = {.size = sizeof counters};
    counter ran = {0};

    spawn_from_outside(pool, &ran);

    assert_int_equal(filch_pool_counters(pool, &counters), 0);
    assert_int_equal(counters.injected, 10);
    assert_int_equal(counters.spawned, 0);
    assert_int_equal(counters.stolen, 0);
    watched_pool_destroy(pool);
}

TEST(counters_may_be_read_while_the_pool_works_and_only_grow)
{
    filch_pool *pool = watched_pool_of(4);
    filch_counters sum = {.size = sizeof sum}, last = {.size = sizeof last}, one = sum;
    counter c = {0};

    for (int i = 0; i < 50; i++) {
        assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        for (int k = 0; k < 20; k++) {
            assert_int_equal(filch_pool_counters(pool, &sum), 0);
#define ASSERT_GREW(name) assert_true(sum.name >= last.name);
            FILCH_COUNTERS(ASSERT_GREW)
            last = sum;
        }
    }
    assert_int_equal(filch_pool_wait(pool), 0);

    uint64_t injected = 0;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(filch_worker_counters(pool, i, &one), 0);
        injected += one.injected;
    }
    assert_int_equal(injected, 50);
    watched_pool_destroy(pool);
}

TEST(counters_of_an_older_and_of_a_newer_header_are_filled_as_far_as_they_go)
{
    filch_pool *pool = watched_pool_of(1);
    filch_counters older = {.size = offsetof(filch_counters, stolen), .stolen = 77};
    struct {
        filch_counters counters;
        uint64_t unknown;
    } newer = {.counters = {.size = sizeof newer}, .unknown = 77};
    counter c = {0};

    assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
    assert_int_equal(filch_pool_wait(pool), 0);
    assert_int_equal(filch_pool_counters(pool, &older), 0);
    assert_int_equal(filch_pool_counters(pool, &newer.counters), 0);

    assert_int_equal(older.injected, 1);
    assert_int_equal(older.stolen, 77);
    assert_int_equal(newer.counters.injected, 1);
    assert_int_equal(newer.unknown, 0);
    watched_pool_destroy(pool);
}

typedef struct dumping {
    filch_pool *pool;
    counter stop;
} dumping;

static void *dump_all_the_time(void *arg)
{
    dumping *d = arg;
    FILE *out = fopen("/dev/null", "w");

    CHECK(out);
    while (!counter_get(&d->stop))
        CHECK(filch_pool_dump(d->pool, out) == 0);
    fclose(out);
    return NULL;
}

TEST(a_pool_may_be_dumped_while_it_works)
{
    FOR_EACH_COUNT(workers)
    {
        dumping d = {watched_pool_of(workers), {0}};
        counter c = {0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, dump_all_the_time, &d), 0);

        for (unsigned i = 0; i < 100; i++)
            assert_int_equal(filch_submit(d.pool, tree_of_depth_8, &c), 0);
        assert_int_equal(filch_pool_wait(d.pool), 0);

        counter_set(&d.stop, 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(counter_get(&c), 100 * TREE_8);
        watched_pool_destroy(d.pool);
    }
}

/* ---- over and over --------------------------------------------------------------------------- */

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

TEST(pools_come_and_go_ten_thousand_times)
{
    unsigned descriptors = open_descriptors(), cycles = 10000 / TEST_SLOWNESS;

    for (unsigned i = 0; i < cycles; i++) {
        filch_options options = {.size = sizeof options, .workers = 1 + i % 4};
        filch_pool *pool;
        counter c = {0};

        assert_int_equal(filch_pool_create(&pool, &options), 0);
        if (i % 3 == 0)
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        assert_int_equal(FILCH_RUN(pool, fib, 8), 21);
        assert_int_equal(filch_pool_destroy(pool), 0);
        assert_int_equal(counter_get(&c), i % 3 == 0 ? TREE_8 : 0);
        watchdog_kick();
    }

    assert_int_equal(open_descriptors(), descriptors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_complete_when_it_returns),
        cmocka_unit_test(a_wait_returns_when_all_that_was_submitted_is_complete),
        cmocka_unit_test(destroy_waits_for_submitted_tasks),
        cmocka_unit_test(a_task_may_submit_to_its_own_pool),
        cmocka_unit_test(a_task_may_submit_to_another_pool),
        cmocka_unit_test(many_threads_may_use_one_pool_at_once),
        cmocka_unit_test(a_thread_may_use_a_pool_and_end),
        cmocka_unit_test(a_task_cannot_wait_for_its_own_pool_or_destroy_it),
        cmocka_unit_test(a_task_may_create_use_and_destroy_another_pool),
        cmocka_unit_test(a_task_may_call_exit),
        cmocka_unit_test(every_task_from_outside_and_every_stolen_task_is_counted),
        cmocka_unit_test(counters_of_an_older_and_of_a_newer_header_are_filled_as_far_as_they_go),
        cmocka_unit_test(every_spawned_task_is_counted_and_also_when_it_is_stolen),
        cmocka_unit_test(a_task_spawned_from_outside_counts_as_injected),
        cmocka_unit_test(counters_may_be_read_while_the_pool_works_and_only_grow),
        cmocka_unit_test(a_pool_may_be_dumped_while_it_works),
        cmocka_unit_test(pools_come_and_go_ten_thousand_times),
    };
    return cmocka_run_group_tests_name("pool", tests, watchdog_start, watchdog_stop);
}
