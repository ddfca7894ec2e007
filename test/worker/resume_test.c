/* SPDX-License-Identifier: MIT */
/* Strands that wait for a job of another pool, and other cases in which a worker must wake up. */
#include "worker/worker.h"

#include "watchdog.h"

#include <filch/loop.h>

static void use_cpu(filch_frame *f TEST_UNUSED, void *arg)
{
    spin((unsigned)(uintptr_t)arg);
}

typedef struct crossing {
    filch_pool *pool;
    uintptr_t rounds;
    counter *ended;
} crossing;

static void cross(filch_frame *f TEST_UNUSED, void *arg)
{
    crossing *c = arg;
    CHECK(filch_run(c->pool, use_cpu, (void *)c->rounds) == 0);
    counter_add(c->ended, 1);
}

/* The strand of the only worker waits, so the worker has none. It must still look before it
 * sleeps. */
static void cross_often(filch_spin_policy wait)
{
    const filch_options options = {.size = sizeof options, .workers = 1, .spin = wait};
    filch_pool *a = watched_pool_create(&options), *b = watched_pool_create(&options);
    filch_rng rng;
    counter ended = {0};
    const unsigned rounds = 3000 / TEST_SLOWNESS;
    filch_rng_seed(&rng, 1);

    for (unsigned i = 0; i < rounds; i++) {
        crossing c = {b, filch_rng_below(&rng, 3000), &ended};
        CHECK(filch_submit(b, use_cpu, (void *)(uintptr_t)filch_rng_below(&rng, 20000)) == 0);
        CHECK(filch_submit(a, cross, &c) == 0);
        CHECK(filch_pool_wait(a) == 0 && filch_pool_wait(b) == 0);
        watchdog_kick();
    }

    assert_int_equal(counter_get(&ended), rounds);
    assert_in_range(filch_slabs_count(&a->strands.slabs), 1, 3);
    watched_pool_destroy(a);
    watched_pool_destroy(b);
}

TEST(a_pool_of_one_worker_goes_on_when_another_has_done_its_job)
{
    cross_often(FILCH_SPIN_POWER);
    cross_often(FILCH_SPIN_BALANCED);
}

/* Each of the two iterations waits for the other. */
static void meet(filch_frame *f TEST_UNUSED, void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        latch_open(context);
        latch_wait(context);
    }
}

FILCH_TASK(void, meet_in_a_loop, (latch *, both))
{
    filch_for(FILCH_HERE, 0, 2, meet, both);
}

TEST(a_loop_of_two_long_iterations_is_run_by_two_workers)
{
    const filch_options options = {.size = sizeof options, .workers = 2};

    for (int i = 0; i < 20; i++) {
        /* A new pool has not yet measured how long the body takes. */
        filch_pool *pool = watched_pool_create(&options);
        latch both;
        latch_init(&both, 2);

        FILCH_RUN(pool, meet_in_a_loop, &both);

        assert_true(latch_is_open(&both));
        watched_pool_destroy(pool);
    }
}

static void count_cpus(filch_frame *f TEST_UNUSED, void *arg)
{
    cpu_set_t set;
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    *(int *)arg = CPU_COUNT(&set);
}

static void *submit_from_one_cpu(void *arg)
{
    void **args = arg;
    cpu_set_t all, one;
    int cpu = 0;

    CHECK(pthread_getaffinity_np(pthread_self(), sizeof all, &all) == 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0);
    CHECK(filch_submit(args[0], count_cpus, args[1]) == 0);
    CHECK(filch_pool_wait(args[0]) == 0);
    return NULL;
}

TEST(a_thread_does_not_inherit_the_cpu_of_the_submitter)
{
    const filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool = watched_pool_create(&options);
    cpu_set_t all;
    int cpu_count = 0;
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, submit_from_one_cpu, (void *[]){pool, &cpu_count}) == 0);
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(pthread_getaffinity_np(pthread_self(), sizeof all, &all) == 0);
    assert_int_equal(cpu_count, CPU_COUNT(&all));
    watched_pool_destroy(pool);
}

TEST(a_guest_and_a_thread_may_take_turns_on_a_seat_that_reports_overflows)
{
    const filch_options options = {.size = sizeof options, .workers = 1, .report_overflow = true};
    filch_pool *pool = watched_pool_create(&options);

    for (int i = 0; i < 10; i++) {
        assert_int_equal(filch_submit(pool, use_cpu, NULL), 0);
        assert_int_equal(filch_pool_wait(pool), 0);
        assert_int_equal(filch_run(pool, use_cpu, NULL), 0);
    }
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_of_one_worker_goes_on_when_another_has_done_its_job),
        cmocka_unit_test(a_loop_of_two_long_iterations_is_run_by_two_workers),
        cmocka_unit_test(a_thread_does_not_inherit_the_cpu_of_the_submitter),
        cmocka_unit_test(a_guest_and_a_thread_may_take_turns_on_a_seat_that_reports_overflows),
    };
    return cmocka_run_group_tests_name("resume", tests, watchdog_start, watchdog_stop);
}
