/* SPDX-License-Identifier: MIT */
/*
 * Pools with more workers than may be awake (src/worker/README.md): tasks that need more than that
 * all run. In most tests tasks wait for each other by means that the library does not know. If too
 * few workers are woken, that is a hang. (With the deques of blocks, an owner that blocks may keep
 * tasks to itself. So these tests run with the split stack only.)
 */
#include "worker/worker.h"

#include "base/topology.h"
#include "watchdog.h"

#include <filch/loop.h>
#include <filch/scope.h>
#include <filch/time.h>

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static filch_pool *pool_of(unsigned workers, unsigned awake)
{
    filch_options options = {.size = sizeof options, .workers = workers, .awake = awake};
    return watched_pool_create(&options);
}

static unsigned surplus_of(filch_pool *pool)
{
    return filch_load_seq_cst(&pool->surplus);
}

/* ---- how many may be awake ------------------------------------------------------------------- */

TEST(the_program_chooses_how_many_are_awake)
{
    const struct {
        unsigned workers, awake, surplus;
    } cases[] = {{4, 1, 3}, {4, 3, 1}, {4, 4, 0}, {4, 5, 0}, {1, 1, 0}, {1, 7, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_pool *pool = pool_of(cases[i].workers, cases[i].awake);
        assert_int_equal(surplus_of(pool), cases[i].surplus);
        watched_pool_destroy(pool);
    }
}

static unsigned cpus_at_hand(void)
{
    filch_topology topology;

    assert_int_equal(filch_topology_init(&topology), 0);
    unsigned count = filch_topology_limit(topology.cpu_count, "");
    filch_topology_fini(&topology);
    return count;
}

TEST(by_default_as_many_are_awake_as_there_are_cpus)
{
    unsigned cpus = cpus_at_hand();
    filch_pool *pool = pool_of(cpus, 0), *larger = pool_of(cpus + 3, 0);

    assert_int_equal(surplus_of(pool), 0);
    assert_int_equal(surplus_of(larger), 3);
    watched_pool_destroy(pool);
    watched_pool_destroy(larger);
}

TEST(the_environment_replaces_the_default)
{
    const struct {
        const char *text;
        unsigned awake, surplus;
    } cases[] = {{"2", 0, 98}, {"100", 0, 0}, {"2", 90, 10}};
    unsigned cpus = cpus_at_hand(), by_default = cpus < 100 ? 100 - cpus : 0;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("FILCH_AWAKE", cases[i].text, 1);
        filch_pool *pool = pool_of(100, cases[i].awake);
        assert_int_equal(surplus_of(pool), cases[i].surplus);
        watched_pool_destroy(pool);
    }
    const char *const ignored[] = {"", "0", "-1", "2x", "two", "99999999999999999999"};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        setenv("FILCH_AWAKE", ignored[i], 1);
        filch_pool *pool = pool_of(100, 0);
        assert_int_equal(surplus_of(pool), by_default);
        watched_pool_destroy(pool);
    }
    unsetenv("FILCH_AWAKE");
}

/* ---- tasks that block in the kernel ---------------------------------------------------------- */

static pthread_barrier_t barrier;

FILCH_TASK(int, block)
{
    pthread_barrier_wait(&barrier);
    return 0;
}

FILCH_TASK(int, block_together, (unsigned, count))
{
    for (unsigned i = 0; i < count; i++)
        FILCH_SPAWN(block);
    FILCH_SYNC();
    return 0;
}

TEST(other_workers_are_woken_for_those_that_block_in_the_kernel)
{
    for (unsigned awake = 1; awake <= 2; awake++) {
        filch_pool *pool = pool_of(6, awake);

        pthread_barrier_init(&barrier, NULL, 6);
        for (int i = 0; i < 10; i++) {
            FILCH_RUN(pool, block_together, 6);
            watchdog_kick();
        }
        pthread_barrier_destroy(&barrier);
        watched_pool_destroy(pool);
    }
}

static int ends[2];

FILCH_TASK(int, write_byte)
{
    CHECK(write(ends[1], "", 1) == 1);
    return 0;
}

/* Runs on the thread that calls filch_run, which is not one of the pool's. */
FILCH_TASK(int, submit_and_read, (filch_pool *, pool))
{
    char byte;

    CHECK(FILCH_SUBMIT(pool, write_byte) == 0);
    CHECK(read(ends[0], &byte, 1) == 1);
    return 0;
}

TEST(a_worker_is_woken_for_a_guest_that_blocks)
{
    filch_pool *pool = pool_of(3, 1);

    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 10; i++) {
        FILCH_RUN(pool, submit_and_read, pool);
        watchdog_kick();
    }
    close(ends[0]);
    close(ends[1]);
    watched_pool_destroy(pool);
}

static void block_in_hook(void *context, unsigned worker_index)
{
    (void)context, (void)worker_index;
    pthread_barrier_wait(&barrier);
}

static void submitted(filch_frame *f, void *count)
{
    (void)f;
    counter_add(count, 1);
}

TEST(a_worker_is_woken_for_one_whose_hook_blocks)
{
    filch_options options = {.size = sizeof options, .workers = 3, .awake = 1};
    counter count = {0};

    options.on_start = block_in_hook;
    pthread_barrier_init(&barrier, NULL, 3);
    filch_pool *pool = watched_pool_create(&options);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(filch_submit(pool, submitted, &count), 0);
    UNTIL(counter_get(&count) == 3);
    watched_pool_destroy(pool);
    pthread_barrier_destroy(&barrier);
}

/* ---- tasks that compute ---------------------------------------------------------------------- */

static counter arrived;

FILCH_TASK(int, arrive, (unsigned, count))
{
    counter_add(&arrived, 1);
    UNTIL(counter_get(&arrived) >= count);
    return 0;
}

FILCH_TASK(int, compute_together, (unsigned, count))
{
    counter_set(&arrived, 0);
    for (unsigned i = 0; i < count; i++)
        FILCH_SPAWN(arrive, count);
    FILCH_SYNC();
    return 0;
}

TEST(other_workers_are_woken_for_those_that_compute_for_long)
{
    filch_pool *pool = pool_of(4, 1);

    for (int i = 0; i < 5; i++) {
        FILCH_RUN(pool, compute_together, 4);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

static int sleep_and_arrive(filch_frame *f, void *arg)
{
    (void)arg;
    int err = filch_sleep_ns(f, 1000000);
    counter_add(&arrived, 1);
    return err;
}

FILCH_TASK(int, compute_until_awake, (filch_pool *, pool))
{
    filch_scope scope;

    counter_set(&arrived, 0);
    CHECK(filch_scope_open(FILCH_HERE, &scope, pool, NULL) == 0);
    CHECK(filch_scope_spawn(FILCH_HERE, &scope, sleep_and_arrive, NULL) == 0);
    UNTIL(counter_get(&arrived) > 0);
    return filch_scope_close(FILCH_HERE, &scope);
}

TEST(a_task_whose_timer_has_ended_runs_beside_one_that_computes)
{
    filch_pool *pool = pool_of(3, 1);

    for (int i = 0; i < 5; i++) {
        assert_int_equal(FILCH_RUN(pool, compute_until_awake, pool), 0);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* Waits for a task that it has submitted, and meanwhile runs other jobs: it never comes to the loop
 * of its worker. */
FILCH_TASK(int, run_until_submitted, (filch_pool *, pool))
{
    counter count = {0};

    CHECK(filch_submit(pool, submitted, &count) == 0);
    while (counter_get(&count) == 0)
        CHECK(FILCH_RUN(pool, arrive, 0) == 0);
    return 0;
}

TEST(a_worker_is_woken_for_one_that_runs_jobs_of_its_own)
{
    filch_pool *pool = pool_of(2, 1);

    for (int i = 0; i < 5; i++) {
        FILCH_RUN(pool, run_until_submitted, pool);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

static counter may_end;

static void *visit_until_end(void *pool)
{
    while (counter_get(&may_end) == 0) {
        CHECK(FILCH_RUN((filch_pool *)pool, arrive, 0) == 0);
        sched_yield();
    }
    return NULL;
}

TEST(guests_do_not_keep_all_workers_asleep)
{
    for (unsigned awake = 1; awake <= 2; awake++) {
        filch_pool *pool = pool_of(8, awake);
        pthread_t guests[4];
        counter count = {0};

        counter_set(&may_end, 0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&guests[i], NULL, visit_until_end, pool), 0);
        for (unsigned i = 1; i <= 100; i++) {
            assert_int_equal(filch_submit(pool, submitted, &count), 0);
            UNTIL(counter_get(&count) == i);
        }
        counter_set(&may_end, 1);
        for (int i = 0; i < 4; i++)
            pthread_join(guests[i], NULL);
        watched_pool_destroy(pool);
    }
}

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

#define CALLERS 4

static void *call_fib(void *pool)
{
    for (int i = 0; i < 50; i++)
        CHECK(FILCH_RUN((filch_pool *)pool, fib, 15) == 610);
    return NULL;
}

TEST(results_are_right_with_many_workers_and_many_callers)
{
    for (unsigned awake = 1; awake <= 3; awake++) {
        filch_pool *pool = pool_of(16, awake);
        pthread_t callers[CALLERS];

        for (int i = 0; i < CALLERS; i++)
            assert_int_equal(pthread_create(&callers[i], NULL, call_fib, pool), 0);
        for (int i = 0; i < CALLERS; i++)
            pthread_join(callers[i], NULL);
        watched_pool_destroy(pool);
    }
}

/* ---- the CPUs change ------------------------------------------------------------------------- */

/* All threads of the process but this one may run on `count` of its CPUs: as by taskset -a. */
static void allow_cpus(unsigned count)
{
    cpu_set_t mine, set;
    unsigned found = 0;

    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE && found < count; i++)
        if (CPU_ISSET(i, &mine)) {
            CPU_SET(i, &set);
            found++;
        }
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (struct dirent *entry; (entry = readdir(threads));) {
        int thread = atoi(entry->d_name);
        if (thread > 0 && thread != getpid())
            sched_setaffinity(thread, sizeof set, &set); /* it may have ended */
    }
    closedir(threads);
}

TEST(fewer_workers_are_awake_when_cpus_are_taken_away)
{
    if (cpus_at_hand() < 2)
        skip();
    filch_pool *pool = pool_of(2, 0);
    assert_int_equal(surplus_of(pool), 0);

    counter count = {0};
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        do { /* the CPUs are read once a second, when a worker wakes up */
            assert_int_equal(filch_submit(pool, submitted, &count), 0);
            assert_int_equal(filch_pool_wait(pool), 0);
            allow_cpus(cpus);
        } while (surplus_of(pool) != 2 - cpus);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

static void pin_to_first_cpu(void *context, unsigned worker_index)
{
    (void)worker_index;
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), context) == 0);
}

TEST(threads_that_pin_themselves_do_not_change_the_number_of_cpus)
{
    if (cpus_at_hand() < 2)
        skip();
    cpu_set_t mine, first;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&first);
    for (int i = 0; CPU_COUNT(&first) == 0; i++)
        if (CPU_ISSET(i, &mine))
            CPU_SET(i, &first);
    filch_options options = {.size = sizeof options, .workers = 2};
    options.on_start = pin_to_first_cpu;
    options.hook_context = &first;
    filch_pool *pool = watched_pool_create(&options);
    counter count = {0};

    /* The keeper notes the time first. When it reads the CPUs for the second time, the first
     * reading is complete. */
    for (int i = 0; i < 2; i++) {
        uint64_t read_ns = filch_load_relaxed(&pool->cpus_read_ns);
        do {
            assert_int_equal(filch_submit(pool, submitted, &count), 0);
            assert_int_equal(filch_pool_wait(pool), 0);
            sched_yield();
        } while (filch_load_relaxed(&pool->cpus_read_ns) == read_ns);
        watchdog_kick();
    }
    assert_int_equal(surplus_of(pool), 0);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_chooses_how_many_are_awake),
        cmocka_unit_test(by_default_as_many_are_awake_as_there_are_cpus),
        cmocka_unit_test(the_environment_replaces_the_default),
        cmocka_unit_test(other_workers_are_woken_for_those_that_block_in_the_kernel),
        cmocka_unit_test(a_worker_is_woken_for_a_guest_that_blocks),
        cmocka_unit_test(a_worker_is_woken_for_one_whose_hook_blocks),
        cmocka_unit_test(other_workers_are_woken_for_those_that_compute_for_long),
        cmocka_unit_test(a_task_whose_timer_has_ended_runs_beside_one_that_computes),
        cmocka_unit_test(a_worker_is_woken_for_one_that_runs_jobs_of_its_own),
        cmocka_unit_test(guests_do_not_keep_all_workers_asleep),
        cmocka_unit_test(threads_that_pin_themselves_do_not_change_the_number_of_cpus),
        cmocka_unit_test(results_are_right_with_many_workers_and_many_callers),
        cmocka_unit_test(fewer_workers_are_awake_when_cpus_are_taken_away),
    };
    return cmocka_run_group_tests_name("crowd", tests, watchdog_start, watchdog_stop);
}
