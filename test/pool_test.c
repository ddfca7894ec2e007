/* SPDX-License-Identifier: MIT */
/*
 * Pools: options, ways in from outside, pools inside of pools, waiting, the end, fork().
 */
#include "child.h"

#include <fcntl.h>

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

static void count_one(filch_slot *f TEST_UNUSED, void *arg)
{
    counter_add(arg, 1);
}

/* A tree of `2^(depth + 1) - 1` tasks that a counter sees. */
FILCH_TASK(void, tree, (counter *, c), (int, depth))
{
    counter_add(c, 1);
    if (depth == 0)
        return;
    FILCH_SPAWN(tree, c, depth - 1);
    FILCH_CALL(tree, c, depth - 1);
    FILCH_SYNC();
}

static void tree_of_depth_8(filch_slot *f, void *arg)
{
    tree_body(f, f, arg, 8);
}

#define TREE_8 ((1u << 9) - 1)

static const unsigned worker_counts[] = {1, 2, 4};

#define FOR_EACH_COUNT(workers)                                                                    \
    for (unsigned at = 0, workers;                                                                 \
         at < COUNT_OF(worker_counts) && (workers = worker_counts[at], 1); at++)

/* ---- options ----------------------------------------------------------------------------------- */

TEST(a_pool_may_be_created_and_destroyed_without_work)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_pool_workers(pool), workers);
        watched_pool_destroy(pool);
    }
}

TEST(a_pool_needs_no_options)
{
    filch_pool *pool = watched_pool_create(NULL);

    assert_true(filch_pool_workers(pool) >= 1);
    assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
    watched_pool_destroy(pool);
}

TEST(zero_workers_are_the_default_number)
{
    filch_pool *with_default = watched_pool_create(NULL), *with_zero = watched_pool_of(0);

    assert_int_equal(filch_pool_workers(with_zero), filch_pool_workers(with_default));
    watched_pool_destroy(with_zero);
    watched_pool_destroy(with_default);
}

/* Options of another size, followed by room that only looks like options to a newer header. */
typedef struct sized_options {
    union {
        filch_options options;
        unsigned char bytes[sizeof(filch_options) + 64];
    };
} sized_options;

static int create_with_size(size_t size, size_t non_zero_at)
{
    sized_options sized;
    filch_pool *pool = NULL;

    memset(&sized, 0, sizeof sized);
    sized.options.size = size;
    sized.options.workers = 3;
    if (non_zero_at)
        sized.bytes[non_zero_at] = 1;
    int err = filch_pool_create(&pool, &sized.options);
    if (err)
        return err;
    int workers = (int)filch_pool_workers(pool);
    assert_int_equal(filch_pool_destroy(pool), 0);
    return workers;
}

TEST(options_of_another_size_are_understood_if_they_can_be)
{
    size_t known = sizeof(filch_options);

    assert_int_equal(create_with_size(known, 0), 3);
    assert_int_equal(create_with_size(offsetof(filch_options, stack_bytes), 0), 3);
    assert_int_equal(create_with_size(known + 1, 0), 3);
    assert_int_equal(create_with_size(known + 64, 0), 3);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(create_with_size(known + 64, known + i), -E2BIG);
    assert_int_equal(create_with_size(known + 8, known + 8), 3);
    for (size_t size = 0; size < sizeof(size_t); size++)
        assert_int_equal(create_with_size(size, 0), -EINVAL);
}

TEST(options_that_end_before_a_member_leave_it_at_its_default)
{
    filch_options options = {.size = offsetof(filch_options, workers), .workers = 7};
    filch_pool *with_default = watched_pool_create(NULL), *pool = watched_pool_create(&options);

    assert_int_equal(filch_pool_workers(pool), filch_pool_workers(with_default));
    watched_pool_destroy(pool);
    watched_pool_destroy(with_default);
}

TEST(a_caller_with_another_layout_is_refused)
{
    filch_pool *pool = NULL;

    assert_int_equal(filch_pool_create_abi(&pool, NULL, FILCH_ABI + 1), -ENOEXEC);
    assert_int_equal(filch_pool_create_abi(&pool, NULL, 0), -ENOEXEC);
    assert_null(pool);
}

TEST(options_without_a_meaning_are_refused)
{
    const filch_options wrong[] = {
        {.size = sizeof wrong[0], .deque = (filch_deque_kind)77},
        {.size = sizeof wrong[0], .deque = (filch_deque_kind)-1},
        {.size = sizeof wrong[0], .victim = (filch_victim_policy)77},
        {.size = sizeof wrong[0], .victim = (filch_victim_policy)-1},
        {.size = sizeof wrong[0], .wait = (filch_wait_policy)77},
        {.size = sizeof wrong[0], .wait = (filch_wait_policy)-1},
        {.size = sizeof wrong[0], .stack_bytes = 1},
        {.size = sizeof wrong[0], .stack_bytes = SIZE_MAX},
    };
    filch_pool *pool = NULL;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(filch_pool_create(&pool, &wrong[i]), -EINVAL);
    assert_int_equal(filch_pool_create(NULL, NULL), -EINVAL);
    assert_null(pool);
}

TEST(a_stack_too_large_for_the_machine_is_a_lack_of_memory)
{
    filch_options options = {.size = sizeof options, .stack_bytes = PTRDIFF_MAX / 2};
    filch_pool *pool = NULL;

    assert_int_equal(filch_pool_create(&pool, &options), -ENOMEM);
}

TEST(every_policy_runs_every_task)
{
    for (int victim = FILCH_VICTIM_LAST; victim <= FILCH_VICTIM_FIRST; victim++)
        for (int wait = FILCH_WAIT_BALANCED; wait <= FILCH_WAIT_POWER; wait++)
            FOR_EACH_COUNT(workers)
            {
                filch_options options = {.size = sizeof options,
                                         .workers = workers,
                                         .victim = (filch_victim_policy)victim,
                                         .wait = (filch_wait_policy)wait};
                filch_pool *pool = watched_pool_create(&options);
                assert_int_equal(FILCH_RUN(pool, fib, 18), 2584);
                watched_pool_destroy(pool);
            }
}

TEST(small_stacks_are_enough_for_small_tasks)
{
    filch_options options = {.size = sizeof options, .workers = 2, .stack_bytes = 64 << 10};
    filch_pool *pool = watched_pool_create(&options);

    assert_int_equal(FILCH_RUN(pool, fib, 18), 2584);
    watched_pool_destroy(pool);
}

TEST(ten_thousand_workers_become_a_thousand_that_work)
{
    filch_pool *pool = watched_pool_of(10000);
    counter c = {0};

    assert_int_equal(filch_pool_workers(pool), 1000);
    FILCH_RUN(pool, tree, &c, 12);
    assert_int_equal(counter_get(&c), (1u << 13) - 1);
    watched_pool_destroy(pool);
}

TEST(without_a_pool_every_call_is_an_error)
{
    filch_counters counters;
    filch_pool *pool = watched_pool_of(2);
    counter c = {0};

    assert_int_equal(filch_pool_workers(NULL), 0);
    assert_int_equal(filch_run(NULL, count_one, &c), -EINVAL);
    assert_int_equal(filch_submit(NULL, count_one, &c), -EINVAL);
    assert_int_equal(filch_submit_copy(NULL, count_one, &c, sizeof c), -EINVAL);
    assert_int_equal(filch_submit_copy(pool, count_one, NULL, 1), -EINVAL);
    assert_int_equal(filch_submit_copy(pool, count_one, &c, SIZE_MAX), -ENOMEM);
    assert_int_equal(filch_pool_wait(NULL), -EINVAL);
    assert_int_equal(filch_pool_destroy(NULL), -EINVAL);
    assert_int_equal(filch_pool_counters(NULL, &counters), -EINVAL);
    assert_int_equal(filch_worker_counters(NULL, 0, &counters), -EINVAL);
    assert_int_equal(filch_run(pool, NULL, &c), -EINVAL);
    assert_int_equal(filch_submit(pool, NULL, &c), -EINVAL);
    assert_int_equal(filch_pool_counters(pool, NULL), -EINVAL);
    assert_int_equal(filch_worker_counters(pool, 2, &counters), -EINVAL);
    assert_int_equal(counter_get(&c), 0);
    watched_pool_destroy(pool);
}

/* ---- the environment --------------------------------------------------------------------------- */

static void create_one(void *workers)
{
    filch_options options = {
        .size = sizeof options, .workers = *(unsigned *)workers, .name = "verbose"};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    fprintf(stderr, "it has %u\n", filch_pool_workers(pool));
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(FILCH_WORKERS_replaces_the_default_but_not_the_programs_choice)
{
    setenv("FILCH_WORKERS", "5", 1);
    ended by_default = run_in_child(create_one, &(unsigned){0});
    ended by_choice = run_in_child(create_one, &(unsigned){2});
    unsetenv("FILCH_WORKERS");

    assert_exit_code(&by_default, 0);
    assert_string_equal(by_default.text, "it has 5\n");
    assert_exit_code(&by_choice, 0);
    assert_string_equal(by_choice.text, "it has 2\n");
}

TEST(FILCH_VERBOSE_tells_how_the_number_of_workers_was_found)
{
    setenv("FILCH_VERBOSE", "1", 1);
    ended verbose = run_in_child(create_one, &(unsigned){3});
    setenv("FILCH_VERBOSE", "0", 1);
    ended quiet = run_in_child(create_one, &(unsigned){3});
    unsetenv("FILCH_VERBOSE");

    assert_exit_code(&verbose, 0);
    assert_non_null(strstr(verbose.text, "filch: pool 'verbose': 3 workers"));
    assert_string_equal(quiet.text, "it has 3\n");
}

static void run_on_one_cpu(void *arg TEST_UNUSED)
{
    cpu_set_t set;
    filch_pool *pool;

    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    for (int i = 0, found = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set) && found++)
            CPU_CLR(i, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);

    CHECK(filch_pool_create(&pool, NULL) == 0);
    CHECK(filch_pool_workers(pool) == 1);
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    CHECK(filch_pool_destroy(pool) == 0);

    filch_options options = {.size = sizeof options, .workers = 4, .pin = true};
    counter c = {0};
    CHECK(filch_pool_create(&pool, &options) == 0);
    for (unsigned i = 0; i < 100; i++)
        CHECK(filch_submit(pool, tree_of_depth_8, &c) == 0);
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    CHECK(filch_pool_destroy(pool) == 0);
    CHECK(counter_get(&c) == 100 * TREE_8);
}

TEST(on_one_cpu_one_worker_is_the_default_and_more_work_too)
{
    ended c = run_in_child(run_on_one_cpu, NULL);
    assert_exit_code(&c, 0);
}

/* ---- in from everywhere ------------------------------------------------------------------------ */

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

TEST(destroy_waits_for_what_was_submitted)
{
    FOR_EACH_COUNT(workers)
    for (int i = 0; i < 50; i++) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        for (unsigned k = 0; k < 10; k++)
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        assert_int_equal(filch_pool_destroy(pool), 0);
        /* It was destroyed behind the watchdog's back. */
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

static void submit_some(filch_slot *f TEST_UNUSED, void *arg)
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

/* ---- pools inside of pools --------------------------------------------------------------------- */

TEST(several_pools_work_side_by_side)
{
    filch_pool *pool[6];
    counter c = {0};

    for (unsigned i = 0; i < COUNT_OF(pool); i++)
        pool[i] = watched_pool_of(i % 3 + 1);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(filch_submit(pool[i % COUNT_OF(pool)], tree_of_depth_8, &c), 0);
    for (unsigned i = 0; i < COUNT_OF(pool); i++)
        assert_int_equal(FILCH_RUN(pool[i], fib, 15), 610);
    for (unsigned i = 0; i < COUNT_OF(pool); i++)
        watched_pool_destroy(pool[i]);

    assert_int_equal(counter_get(&c), 60 * TREE_8);
}

/* Runs itself in the next pool, round and round, `levels` deep. */
typedef struct pools {
    filch_pool *pool[3];
    unsigned count;
} pools;

FILCH_TASK(long, chain, (const pools *, p), (unsigned, levels))
{
    if (levels == 0)
        return FILCH_CALL(fib, 10);
    FILCH_FORK(child, fib, 10);
    long below = FILCH_RUN(p->pool[levels % p->count], chain, p, levels - 1);
    return FILCH_JOIN(child) + below;
}

/* The same, twice on every level, of which one may be stolen. */
FILCH_TASK(long, bush, (const pools *, p), (unsigned, levels))
{
    if (levels == 0) {
        spin(3000);
        return 1;
    }
    FILCH_FORK(child, bush, p, levels - 1);
    long below = FILCH_RUN(p->pool[levels % p->count], bush, p, levels - 1);
    return FILCH_JOIN(child) + below;
}

static void nest(void *arg)
{
    const unsigned *numbers = arg; /* pools, workers of each, levels, is it a bush */
    pools p = {.count = numbers[0]};
    filch_options options = {.size = sizeof options, .workers = numbers[1]};

    for (unsigned i = 0; i < p.count; i++)
        CHECK(filch_pool_create(&p.pool[i], &options) == 0);
    for (int i = 0; i < 500 / TEST_SLOWNESS; i++)
        if (numbers[3])
            CHECK(FILCH_RUN(p.pool[0], bush, &p, numbers[2]) == 1l << numbers[2]);
        else
            CHECK(FILCH_RUN(p.pool[0], chain, &p, numbers[2]) == 55l * (numbers[2] + 1));
    for (unsigned i = 0; i < p.count; i++)
        CHECK(filch_pool_destroy(p.pool[i]) == 0);
}

/* In a child, so that a hang does not keep the other tests from running. */
static void assert_nests(unsigned pool_count, unsigned workers, unsigned levels, bool is_bush)
{
    unsigned numbers[] = {pool_count, workers, levels, is_bush};
    ended c = run_in_child(nest, numbers);

    watchdog_kick();
    if (has_ended_by(&c, SIGALRM))
        fail_msg("hangs: %u pools of %u workers, %u levels, %s", pool_count, workers, levels,
                 is_bush ? "a bush" : "a chain");
    assert_exit_code(&c, 0);
}

TEST(a_task_may_run_another_in_its_own_pool)
{
    FOR_EACH_COUNT(workers)
    {
        assert_nests(1, workers, 10, false);
        assert_nests(1, workers, 6, true);
    }
}

TEST(a_run_may_go_ten_times_through_two_pools_of_one_worker)
{
    assert_nests(2, 1, 10, false);
}

TEST(a_run_may_go_ten_times_through_two_pools_of_two_workers)
{
    assert_nests(2, 2, 10, false);
}

TEST(a_run_may_go_nine_times_through_three_pools)
{
    assert_nests(3, 1, 9, false);
    assert_nests(3, 2, 9, false);
}

static void nest_and_destroy(void *arg TEST_UNUSED)
{
    for (int i = 0; i < 60; i++) {
        filch_options options = {.size = sizeof options, .workers = 2};
        pools p = {.count = 2};

        CHECK(filch_pool_create(&p.pool[0], &options) == 0);
        CHECK(filch_pool_create(&p.pool[1], &options) == 0);
        for (int k = 0; k < 5; k++)
            CHECK(FILCH_RUN(p.pool[0], bush, &p, 6) == 1l << 6);
        CHECK(filch_pool_destroy(p.pool[0]) == 0);
        CHECK(filch_pool_destroy(p.pool[1]) == 0);
    }
}

/* A worker of one pool may just have told the other that its task goes on. */
TEST(two_pools_may_be_destroyed_right_after_a_run_through_both)
{
    for (int i = 0; i < 5; i++) {
        ended c = run_in_child(nest_and_destroy, NULL);
        assert_exit_code(&c, 0);
    }
}

TEST(runs_through_two_pools_may_branch)
{
    assert_nests(2, 1, 6, true);
    assert_nests(2, 2, 6, true);
    assert_nests(2, 3, 6, true);
    assert_nests(2, 4, 6, true);
}

typedef struct visit {
    filch_pool *outer, *inner;
    int result;
} visit;

static void do_nothing(filch_slot *f TEST_UNUSED, void *arg TEST_UNUSED)
{
}

static void visit_inner(filch_slot *f TEST_UNUSED, void *arg)
{
    CHECK(filch_run(((visit *)arg)->inner, do_nothing, NULL) == 0);
}

static void wait_for_outer(filch_slot *f TEST_UNUSED, void *arg)
{
    visit *v = arg;
    v->result = filch_pool_wait(v->outer);
}

TEST(a_thread_of_a_pool_does_not_inherit_what_its_guest_held)
{
    filch_pool *outer = watched_pool_of(1), *inner = watched_pool_of(1);
    visit v = {outer, inner, -1};

    /* The inner pool has a thread, whose seat a task of the outer pool then takes as a guest. */
    assert_int_equal(filch_submit(inner, do_nothing, NULL), 0);
    assert_int_equal(filch_pool_wait(inner), 0);
    assert_int_equal(filch_run(outer, visit_inner, &v), 0);

    /* Back on its seat, it is no task of the outer pool. */
    assert_int_equal(filch_submit(inner, wait_for_outer, &v), 0);
    assert_int_equal(filch_pool_wait(inner), 0);

    assert_int_equal(v.result, 0);
    watched_pool_destroy(inner);
    watched_pool_destroy(outer);
}

/* ---- what a task may not ----------------------------------------------------------------------- */

static void wait_inside(filch_slot *f TEST_UNUSED, void *pool)
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
    if (filch_pool_workers(pool) > 1)
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

static void create_and_destroy(filch_slot *f TEST_UNUSED, void *arg)
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
/* A thread that ends the program on a strand has a stack of its own, which nobody searches for pointers. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_leaving_from_a_task;
}
#endif

static void exit_inside(filch_slot *f TEST_UNUSED, void *arg)
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

/* ---- threads ----------------------------------------------------------------------------------- */

typedef struct hooks {
    counter started, stopped, index_sum;
} hooks;

static void on_start(void *context, unsigned worker_index)
{
    hooks *h = context;
    counter_add(&h->started, 1);
    counter_add(&h->index_sum, worker_index);
}

static void on_stop(void *context, unsigned worker_index)
{
    hooks *h = context;
    counter_add(&h->stopped, 1);
    counter_add(&h->index_sum, -(uint64_t)worker_index);
}

TEST(each_thread_calls_its_hooks_once)
{
    FOR_EACH_COUNT(workers)
    {
        hooks h;
        memset(&h, 0, sizeof h);
        filch_options options = {.size = sizeof options,
                                 .workers = workers,
                                 .on_start = on_start,
                                 .on_stop = on_stop,
                                 .hook_context = &h};
        filch_pool *pool = watched_pool_create(&options);
        counter c = {0};

        for (int i = 0; i < 20; i++)
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &c), 0);
        watched_pool_destroy(pool);

        assert_in_range(counter_get(&h.started), 1, workers);
        assert_int_equal(counter_get(&h.stopped), counter_get(&h.started));
        assert_int_equal(counter_get(&h.index_sum), 0);
    }
}

typedef struct hook_work {
    filch_pool *pool;
    counter trees, runs;
} hook_work;

static void run_in_hook(void *context, unsigned worker_index TEST_UNUSED)
{
    hook_work *w = context;
    CHECK(filch_run(w->pool, tree_of_depth_8, &w->trees) == 0);
    counter_add(&w->runs, 1);
}

TEST(a_hook_that_starts_a_thread_may_run_tasks_of_the_pool)
{
    FOR_EACH_COUNT(workers)
    {
        hook_work w;
        memset(&w, 0, sizeof w);
        filch_options options = {.size = sizeof options,
                                 .workers = workers,
                                 .on_start = run_in_hook,
                                 .hook_context = &w};
        w.pool = watched_pool_create(&options);
        counter one_tree = {0}, c = {0};
        assert_int_equal(filch_run(w.pool, tree_of_depth_8, &one_tree), 0);

        for (int i = 0; i < 20; i++)
            assert_int_equal(filch_submit(w.pool, tree_of_depth_8, &c), 0);
        watched_pool_destroy(w.pool);

        assert_in_range(counter_get(&w.runs), 1, workers);
        assert_int_equal(counter_get(&w.trees), counter_get(&w.runs) * counter_get(&one_tree));
        assert_int_equal(counter_get(&c), 20 * counter_get(&one_tree));
    }
}

typedef struct thread_facts {
    char name[16];
    int cpu_count;
    latch is_done;
} thread_facts;

static void find_facts(filch_slot *f TEST_UNUSED, void *arg)
{
    thread_facts *facts = arg;
    cpu_set_t set;

    CHECK(pthread_getname_np(pthread_self(), facts->name, sizeof facts->name) == 0);
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    facts->cpu_count = CPU_COUNT(&set);
    latch_open(&facts->is_done);
}

static thread_facts facts_of(const char *name, bool pin, unsigned workers)
{
    filch_options options = {.size = sizeof options, .workers = workers, .name = name, .pin = pin};
    filch_pool *pool = watched_pool_create(&options);
    thread_facts facts;

    latch_init(&facts.is_done, 1);
    assert_int_equal(filch_submit(pool, find_facts, &facts), 0);
    latch_wait(&facts.is_done);
    watched_pool_destroy(pool);
    return facts;
}

TEST(threads_bear_the_name_of_the_pool_and_their_number)
{
    assert_string_equal(facts_of(NULL, false, 1).name, "filch/0");
    assert_string_equal(facts_of("named", false, 1).name, "named/0");
    assert_string_equal(facts_of("a name of more than 15 characters", false, 1).name,
                        "a name of mor/0");
    assert_string_equal(facts_of("", false, 1).name, "/0");
}

TEST(the_name_is_copied)
{
    char name[] = "before";
    filch_options options = {.size = sizeof options, .workers = 1, .name = name};
    filch_pool *pool = watched_pool_create(&options);
    thread_facts facts;

    strcpy(name, "after");
    latch_init(&facts.is_done, 1);
    assert_int_equal(filch_submit(pool, find_facts, &facts), 0);
    latch_wait(&facts.is_done);

    assert_string_equal(facts.name, "before/0");
    watched_pool_destroy(pool);
}

TEST(a_pinned_thread_has_one_cpu_and_the_callers_keeps_its_own)
{
    cpu_set_t before, after;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof before, &before), 0);

    assert_int_equal(facts_of(NULL, true, 1).cpu_count, 1);
    assert_int_equal(facts_of(NULL, true, 64).cpu_count, 1);

    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

/* ---- counters ---------------------------------------------------------------------------------- */

static uintptr_t strand_of(const filch_slot *f)
{
    return (uintptr_t)f & ~(FILCH_REGION_BYTES - 1);
}

/* Counts the tasks that run on another strand than they were forked on. */
FILCH_TASK(void, moving_tree, (counter *, moved), (uintptr_t, home), (int, depth))
{
    uintptr_t here = strand_of(FILCH_HERE);

    counter_add(moved, here != home);
    for (int i = 0; depth > 0 && i < 4; i++)
        FILCH_SPAWN(moving_tree, moved, here, depth - 1);
    FILCH_SYNC();
}

static void moving_root(filch_slot *f, void *arg)
{
    moving_tree_body(f, f, arg, strand_of(f), 6);
}

TEST(every_task_from_outside_and_every_stolen_task_is_counted)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        filch_counters counters;
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

TEST(counters_may_be_read_while_the_pool_works_and_only_grow)
{
    filch_pool *pool = watched_pool_of(4);
    filch_counters sum, last, one;
    counter c = {0};

    memset(&last, 0, sizeof last);
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

/* ---- fork() ------------------------------------------------------------------------------------ */

/* ThreadSanitizer takes the threads that the child starts for those it did not inherit; the emulator stops with an
 * assertion of its own. */
static void skip_with_tsan(void)
{
#if defined(TEST_TSAN) || defined(TEST_EMULATED)
    print_message("here, no threads in the child of a process with threads\n");
    skip();
#endif
}

/* AddressSanitizer's malloc, in gcc 12, may be locked for ever in the child of a busy process. */
static void skip_with_asan(void)
{
#ifdef TEST_ASAN
    print_message("AddressSanitizer: no malloc in the child of a busy process\n");
    skip();
#endif
}

static void use_inherited(void *arg)
{
    filch_pool *pool = arg;
    counter c = {0};

    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    for (int i = 0; i < 20; i++)
        CHECK(filch_submit(pool, tree_of_depth_8, &c) == 0);
    CHECK(filch_pool_wait(pool) == 0);
    CHECK(counter_get(&c) == 20 * TREE_8);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_child_of_a_fork_may_use_the_pool_it_inherited)
{
    skip_with_tsan();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        ended c = run_in_child(use_inherited, pool);

        assert_exit_code(&c, 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void destroy_inherited(void *pool)
{
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_child_of_a_fork_may_destroy_the_pool_it_inherited)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        ended c = run_in_child(destroy_inherited, pool);

        assert_exit_code(&c, 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

static void grandchild(void *pool)
{
    CHECK(FILCH_RUN(pool, fib, 15) == 610);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(CHILD_SECONDS);
        use_inherited(pool);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    use_inherited(pool);
}

TEST(the_child_of_a_child_may_use_the_pool_too)
{
    skip_with_tsan();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);

        ended c = run_in_child(grandchild, pool);

        assert_exit_code(&c, 0);
        watched_pool_destroy(pool);
    }
}

typedef struct forking {
    filch_pool *pool;
    int status;
} forking;

static void fork_inside(filch_slot *f TEST_UNUSED, void *arg)
{
    forking *work = arg;
    pid_t pid = fork();

    if (pid == 0) {
        counter c = {0};
        alarm(CHILD_SECONDS);
        bool is_refused = filch_run(work->pool, count_one, &c) == -EOWNERDEAD &&
                          filch_submit(work->pool, count_one, &c) == -EOWNERDEAD &&
                          counter_get(&c) == 0;
        /* Without the pool, it runs serially. */
        bool is_serial = FILCH_RUN(work->pool, fib, 15) == 610;
        _exit(!is_refused + 2 * !is_serial);
    }
    CHECK(waitpid(pid, &work->status, 0) == pid);
}

TEST(the_child_of_a_task_that_forked_is_told_that_its_pool_is_gone)
{
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        forking work = {pool, -1};
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);

        assert_int_equal(filch_run(pool, fork_inside, &work), 0);

        assert_true(WIFEXITED(work.status));
        assert_int_equal(WEXITSTATUS(work.status), 0);
        assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
        watched_pool_destroy(pool);
    }
}

typedef struct standing {
    latch is_there, may_go;
} standing;

/* Stands on a strand, deep enough for others to come across what it has there. */
__attribute__((noinline)) static int stand(standing *s, int depth)
{
    volatile char local[100];

    local[depth] = 1;
    if (depth > 0)
        return local[depth] + stand(s, depth - 1);
    latch_open(&s->is_there);
    latch_wait(&s->may_go);
    return local[depth];
}

static void stand_there(filch_slot *f TEST_UNUSED, void *arg)
{
    CHECK(stand(arg, 50) == 51);
}

TEST(the_child_of_a_fork_may_use_strands_that_were_in_use)
{
    skip_with_tsan();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        standing s;
        latch_init(&s.is_there, workers);
        latch_init(&s.may_go, 1);
        for (unsigned i = 0; i < workers; i++)
            assert_int_equal(filch_submit(pool, stand_there, &s), 0);
        latch_wait(&s.is_there);

        ended c = run_in_child(use_inherited, pool);

        latch_open(&s.may_go);
        assert_int_equal(filch_pool_wait(pool), 0);
        watched_pool_destroy(pool);
        assert_exit_code(&c, 0);
    }
}

static void *keep_busy(void *arg)
{
    user *u = arg;
    while (counter_get(u->c) == 0)
        CHECK(FILCH_RUN(u->pool, fib, 12) == 144);
    return NULL;
}

TEST(children_of_a_busy_process_neither_hang_nor_disturb_it)
{
    skip_with_tsan();
    skip_with_asan();
    FOR_EACH_COUNT(workers)
    {
        filch_pool *pool = watched_pool_of(workers);
        counter stop = {0}, done = {0};
        user u = {pool, NULL, &stop, 0};
        pthread_t threads[2];
        ended last = {.status = 0};
        unsigned submitted = 0, forks = (TEST_SLOWNESS > 1 ? 50 : 200) / COUNT_OF(worker_counts);

        for (unsigned i = 0; i < COUNT_OF(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &u), 0);
        for (unsigned i = 0; i < forks && last.status == 0; i++) {
            assert_int_equal(filch_submit(pool, tree_of_depth_8, &done), 0);
            submitted++;
            last = run_in_child(use_inherited, pool);
            watchdog_kick();
        }
        counter_set(&stop, 1);
        for (unsigned i = 0; i < COUNT_OF(threads); i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);

        assert_exit_code(&last, 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(counter_get(&done), submitted * TREE_8);
        watched_pool_destroy(pool);
    }
}

/* ---- over and over ----------------------------------------------------------------------------- */

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
        cmocka_unit_test(a_pool_may_be_created_and_destroyed_without_work),
        cmocka_unit_test(a_pool_needs_no_options),
        cmocka_unit_test(zero_workers_are_the_default_number),
        cmocka_unit_test(options_of_another_size_are_understood_if_they_can_be),
        cmocka_unit_test(options_that_end_before_a_member_leave_it_at_its_default),
        cmocka_unit_test(a_caller_with_another_layout_is_refused),
        cmocka_unit_test(options_without_a_meaning_are_refused),
        cmocka_unit_test(a_stack_too_large_for_the_machine_is_a_lack_of_memory),
        cmocka_unit_test(every_policy_runs_every_task),
        cmocka_unit_test(small_stacks_are_enough_for_small_tasks),
        cmocka_unit_test(ten_thousand_workers_become_a_thousand_that_work),
        cmocka_unit_test(without_a_pool_every_call_is_an_error),
        cmocka_unit_test(FILCH_WORKERS_replaces_the_default_but_not_the_programs_choice),
        cmocka_unit_test(FILCH_VERBOSE_tells_how_the_number_of_workers_was_found),
        cmocka_unit_test(on_one_cpu_one_worker_is_the_default_and_more_work_too),
        cmocka_unit_test(a_run_is_complete_when_it_returns),
        cmocka_unit_test(a_wait_returns_when_all_that_was_submitted_is_complete),
        cmocka_unit_test(destroy_waits_for_what_was_submitted),
        cmocka_unit_test(a_task_may_submit_to_its_own_pool),
        cmocka_unit_test(a_task_may_submit_to_another_pool),
        cmocka_unit_test(many_threads_may_use_one_pool_at_once),
        cmocka_unit_test(a_thread_may_use_a_pool_and_end),
        cmocka_unit_test(several_pools_work_side_by_side),
        cmocka_unit_test(a_task_may_run_another_in_its_own_pool),
        cmocka_unit_test(a_thread_of_a_pool_does_not_inherit_what_its_guest_held),
        cmocka_unit_test(a_run_may_go_ten_times_through_two_pools_of_one_worker),
        cmocka_unit_test(a_run_may_go_ten_times_through_two_pools_of_two_workers),
        cmocka_unit_test(a_run_may_go_nine_times_through_three_pools),
        cmocka_unit_test(runs_through_two_pools_may_branch),
        cmocka_unit_test(two_pools_may_be_destroyed_right_after_a_run_through_both),
        cmocka_unit_test(a_task_cannot_wait_for_its_own_pool_or_destroy_it),
        cmocka_unit_test(a_task_may_create_use_and_destroy_another_pool),
        cmocka_unit_test(a_task_may_call_exit),
        cmocka_unit_test(each_thread_calls_its_hooks_once),
        cmocka_unit_test(a_hook_that_starts_a_thread_may_run_tasks_of_the_pool),
        cmocka_unit_test(threads_bear_the_name_of_the_pool_and_their_number),
        cmocka_unit_test(the_name_is_copied),
        cmocka_unit_test(a_pinned_thread_has_one_cpu_and_the_callers_keeps_its_own),
        cmocka_unit_test(every_task_from_outside_and_every_stolen_task_is_counted),
        cmocka_unit_test(counters_may_be_read_while_the_pool_works_and_only_grow),
        cmocka_unit_test(the_child_of_a_fork_may_use_the_pool_it_inherited),
        cmocka_unit_test(the_child_of_a_fork_may_destroy_the_pool_it_inherited),
        cmocka_unit_test(the_child_of_a_child_may_use_the_pool_too),
        cmocka_unit_test(the_child_of_a_task_that_forked_is_told_that_its_pool_is_gone),
        cmocka_unit_test(the_child_of_a_fork_may_use_strands_that_were_in_use),
        cmocka_unit_test(children_of_a_busy_process_neither_hang_nor_disturb_it),
        cmocka_unit_test(pools_come_and_go_ten_thousand_times),
    };
    return cmocka_run_group_tests_name("pool", tests, watchdog_start, watchdog_stop);
}
