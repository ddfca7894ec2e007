/* SPDX-License-Identifier: MIT */
/*
 * An idle worker finds tasks whose forker comes to no fork or join (src/deque/README.md, Known
 * tasks). In each test the forker waits, without one, until another worker has run its tasks: a
 * task that stays hidden is a hang.
 */
#include "worker/worker.h"

#include "watchdog.h"

#include <unistd.h>

static counter begun, run, may_end;

/* Keeps another worker busy, until the forker has forked. */
FILCH_TASK(int, busy)
{
    counter_add(&begun, 1);
    UNTIL(counter_get(&may_end) > 0);
    return 0;
}

FILCH_TASK(long, count_run, (long, value))
{
    counter_add(&run, 1);
    return value;
}

/* Another worker holds `busy` until all tasks are forked. So it asks for them only afterwards. */
static void begin_busy(void)
{
    counter_set(&begun, 0);
    counter_set(&run, 0);
    counter_set(&may_end, 0);
}

static void await_run(unsigned count)
{
    counter_add(&may_end, 1);
    UNTIL(counter_get(&run) >= count);
}

/* ---- tasks forked by one function ------------------------------------------------------------ */

FILCH_TASK(long, fork_flat, (int, count))
{
    count_run_forked child[10];
    long sum = 0;

    begin_busy();
    FILCH_FORK(b, busy);
    UNTIL(counter_get(&begun) > 0);
    for (int i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], count_run, i);
    await_run((unsigned)count);
    for (int i = count; i-- > 0;)
        sum += FILCH_JOIN_FROM(child[i], count_run);
    CHECK(counter_get(&run) == (unsigned)count);
    return sum + FILCH_JOIN(b);
}

TEST(a_task_does_not_wait_for_its_forker)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_flat, 1), 0);
    watched_pool_destroy(pool);
}

TEST(ten_tasks_do_not_wait_for_their_forker)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_flat, 10), 45);
    watched_pool_destroy(pool);
}

/* ---- one task by each of several functions --------------------------------------------------- */

FILCH_TASK(long, fork_nested, (int, depth))
{
    if (depth == 0) {
        await_run(10);
        return 0;
    }
    FILCH_FORK(child, count_run, depth);
    long sum = FILCH_CALL(fork_nested, depth - 1);
    return sum + FILCH_JOIN(child);
}

FILCH_TASK(long, fork_nested_beside, (int, depth))
{
    begin_busy();
    FILCH_FORK(b, busy);
    UNTIL(counter_get(&begun) > 0);
    long sum = FILCH_CALL(fork_nested, depth);
    return sum + FILCH_JOIN(b);
}

TEST(tasks_of_callers_do_not_wait_for_the_function_that_is_called)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_nested_beside, 10), 55);
    watched_pool_destroy(pool);
}

/* ---- after many short tasks ------------------------------------------------------------------ */

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

/* The strand has no budget left: it knows only its oldest private task. */
FILCH_TASK(long, fork_after_many)
{
    long sum;

    begin_busy();
    FILCH_FORK(b, busy);
    UNTIL(counter_get(&begun) > 0);
    sum = FILCH_CALL(fib, 20);
    for (int i = 0; i < 1000; i++) {
        FILCH_FORK(a, fib, 1);
        sum += FILCH_JOIN(a);
    }
    counter_set(&run, 0);
    FILCH_FORK(child, count_run, 7);
    await_run(1);
    sum += FILCH_JOIN(child);
    return sum + FILCH_JOIN(b);
}

TEST(the_oldest_task_does_not_wait_after_many_short_ones)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_after_many), 6765 + 1000 + 7);
    watched_pool_destroy(pool);
}

/* ---- a forker that is blocked in the kernel -------------------------------------------------- */

static int ends[2];

FILCH_TASK(int, write_byte)
{
    CHECK(write(ends[1], "", 1) == 1);
    return 0;
}

FILCH_TASK(int, fork_and_read)
{
    char byte;

    begin_busy();
    FILCH_FORK(b, busy);
    UNTIL(counter_get(&begun) > 0);
    FILCH_FORK(writer, write_byte);
    counter_add(&may_end, 1);
    CHECK(read(ends[0], &byte, 1) == 1);
    return FILCH_JOIN(writer) + FILCH_JOIN(b);
}

TEST(a_task_does_not_wait_for_a_forker_that_blocks_its_thread)
{
    filch_pool *pool = watched_pool_of(2);

    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_and_read), 0);
    close(ends[0]);
    close(ends[1]);
    watched_pool_destroy(pool);
}

/* ---- a forker that has run a job of its own pool --------------------------------------------- */

/* While this job runs, the other worker falls asleep, and finds nothing in its second look. */
FILCH_TASK(int, let_sleep, (filch_pool *, pool))
{
    counter_add(&may_end, 1);
    UNTIL(filch_pool_sleeper_count(pool) > 0);
    usleep(10 * 1000);
    return 0;
}

FILCH_TASK(long, fork_and_run, (filch_pool *, pool))
{
    begin_busy();
    FILCH_FORK(b, busy);
    UNTIL(counter_get(&begun) > 0);
    FILCH_FORK(child, count_run, 7);
    FILCH_RUN(pool, let_sleep, pool);
    await_run(1);
    long sum = FILCH_JOIN(child);
    return sum + FILCH_JOIN(b);
}

TEST(a_task_does_not_wait_for_a_forker_that_has_run_a_job)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 20; i++)
        assert_int_equal(FILCH_RUN(pool, fork_and_run, pool), 7);
    watched_pool_destroy(pool);
}

/* ---- tasks that run at the same time --------------------------------------------------------- */

#define TOGETHER 8

static counter arrived;

/* Waits, without a fork or a join, until all of them have begun. */
FILCH_TASK(int, arrive, (unsigned, count))
{
    counter_add(&arrived, 1);
    UNTIL(counter_get(&arrived) >= count);
    return 0;
}

FILCH_TASK(int, meet)
{
    counter_set(&arrived, 0);
    for (int i = 0; i < TOGETHER; i++)
        FILCH_SPAWN(arrive, TOGETHER);
    FILCH_SYNC();
    return 0;
}

/* The forker takes some of its tasks back to run one of them. The others are for workers that have
 * been asleep all the time. */
TEST(tasks_that_are_private_again_do_not_wait_for_their_forker)
{
    filch_pool *pool = watched_pool_of(TOGETHER);

    for (int i = 0; i < 20; i++) {
        FILCH_RUN(pool, meet);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* ---- every task once ------------------------------------------------------------------------- */

#define FLAT 300

static counter runs[FLAT];

FILCH_TASK(int, count_one, (int, i))
{
    counter_add(&runs[i], 1);
    spin((unsigned)i % 7 * 100);
    return 0;
}

/* Joins race with workers that publish. */
FILCH_TASK(int, race, (int, round))
{
    for (int i = 0; i < FLAT; i++) {
        FILCH_SPAWN(count_one, i);
        if (i % 16 == round % 16)
            spin(20000);
        if (i % 8 == round % 8)
            FILCH_SYNC();
    }
    FILCH_SYNC();
    return 0;
}

TEST(joins_and_idle_workers_run_each_task_once)
{
    for (unsigned workers = 2; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        for (int round = 0; round < 50; round++) {
            for (int i = 0; i < FLAT; i++)
                counter_set(&runs[i], 0);
            FILCH_RUN(pool, race, round);
            for (int i = 0; i < FLAT; i++)
                assert_int_equal(counter_get(&runs[i]), 1);
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_does_not_wait_for_its_forker),
        cmocka_unit_test(ten_tasks_do_not_wait_for_their_forker),
        cmocka_unit_test(tasks_of_callers_do_not_wait_for_the_function_that_is_called),
        cmocka_unit_test(the_oldest_task_does_not_wait_after_many_short_ones),
        cmocka_unit_test(a_task_does_not_wait_for_a_forker_that_blocks_its_thread),
        cmocka_unit_test(a_task_does_not_wait_for_a_forker_that_has_run_a_job),
        cmocka_unit_test(tasks_that_are_private_again_do_not_wait_for_their_forker),
        cmocka_unit_test(joins_and_idle_workers_run_each_task_once),
    };
    return cmocka_run_group_tests_name("hidden", tests, watchdog_start, watchdog_stop);
}
