/* SPDX-License-Identifier: MIT */
/*
 * Pools inside of pools: a task of one pool runs a task in another, as a guest.
 */
#include "pool_support.h"

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

/* A task that runs itself in the next pool, in turn, `levels` deep. */
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

/* The same with two children on every level. One of them is forked and may be stolen. */
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
    const unsigned *numbers = arg; /* pools, workers per pool, levels, 1: bush, 0: chain */
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

/* In a child process, so that a hang does not keep the other tests from running. */
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

/* A worker of one pool may just be resuming the task of the other. */
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

static void do_nothing(filch_frame *f TEST_UNUSED, void *arg TEST_UNUSED)
{
}

static void visit_inner(filch_frame *f TEST_UNUSED, void *arg)
{
    CHECK(filch_run(((visit *)arg)->inner, do_nothing, NULL) == 0);
}

static void wait_for_outer(filch_frame *f TEST_UNUSED, void *arg)
{
    visit *v = arg;
    v->result = filch_pool_wait(v->outer);
}

TEST(a_thread_of_a_pool_does_not_inherit_the_seats_of_its_guest)
{
    filch_pool *outer = watched_pool_of(1), *inner = watched_pool_of(1);
    visit v = {outer, inner, -1};

    /* The inner pool has a thread. A task of the outer pool takes its seat as a guest. */
    assert_int_equal(filch_submit(inner, do_nothing, NULL), 0);
    assert_int_equal(filch_pool_wait(inner), 0);
    assert_int_equal(filch_run(outer, visit_inner, &v), 0);

    /* The thread is back on its seat, and does not count as a task of the outer pool. */
    assert_int_equal(filch_submit(inner, wait_for_outer, &v), 0);
    assert_int_equal(filch_pool_wait(inner), 0);

    assert_int_equal(v.result, 0);
    watched_pool_destroy(inner);
    watched_pool_destroy(outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_pools_work_side_by_side),
        cmocka_unit_test(a_task_may_run_another_in_its_own_pool),
        cmocka_unit_test(a_thread_of_a_pool_does_not_inherit_the_seats_of_its_guest),
        cmocka_unit_test(a_run_may_go_ten_times_through_two_pools_of_one_worker),
        cmocka_unit_test(a_run_may_go_ten_times_through_two_pools_of_two_workers),
        cmocka_unit_test(a_run_may_go_nine_times_through_three_pools),
        cmocka_unit_test(runs_through_two_pools_may_branch),
        cmocka_unit_test(two_pools_may_be_destroyed_right_after_a_run_through_both),
    };
    return cmocka_run_group_tests_name("pool_guest", tests, watchdog_start, watchdog_stop);
}
