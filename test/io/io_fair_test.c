/* SPDX-License-Identifier: MIT */
/*
 * A task that waits for an event gets its turn on a worker that always has other tasks to run. The
 * turns of the others are counted. Run once for each way of I/O: FILCH_IO.
 *
 * One worker runs all tasks, and a task of the test causes the event. So no clock and no other
 * thread decides how many turns there are. With FILCH_IO=threads another thread reports the event:
 * then the test only checks that it comes.
 */
#include "watchdog.h"

#include <filch/filch.h>

#include <string.h>
#include <unistd.h>

#define ROUNDS 20

/* How long a long turn takes at least: after it, events are overdue in any case. */
#define LONG_NS 2000000

static int pair[2], flood[2];
static bool is_waiting, is_over;
static unsigned turns, turn_at_event, most_turns, rounds;

/* By a task that is always ready, in each of its turns: cause the event when it is waited for. */
static void take_turn(void)
{
    turns++;
    if (is_waiting) {
        is_waiting = false;
        turn_at_event = turns;
        CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
    }
}

static int wait_for_events(filch_frame *f, void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < rounds; i++) {
        char byte;
        is_waiting = true;
        CHECK(filch_recv(f, pair[0], &byte, 1, 0) == 1);
        if (turns - turn_at_event > most_turns)
            most_turns = turns - turn_at_event;
    }
    is_over = true;
    return 0;
}

static void run_beside(filch_frame *f, void *arg)
{
    filch_task_fn *fn = *(filch_task_fn **)arg;
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, wait_for_events, NULL) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(filch_scope_spawn(f, &scope, fn, &scope) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

/* The most turns that three tasks of this kind took while the event waited to be seen. */
static unsigned turns_beside(filch_task_fn *fn, unsigned round_count)
{
    filch_pool *pool = watched_pool_of(1);

    is_waiting = is_over = false;
    turns = turn_at_event = most_turns = 0;
    rounds = round_count;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, flood) == 0);
    assert_int_equal(filch_run(pool, run_beside, &fn), 0);
    if (strcmp(filch_pool_io(pool), "threads") == 0)
        most_turns = 0;
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0 && close(flood[0]) == 0 &&
          close(flood[1]) == 0);
    watched_pool_destroy(pool);
    return most_turns;
}

/* ---- tasks whose operations need not wait ---------------------------------------------------- */

static int send_and_receive(filch_frame *f, void *arg)
{
    char byte = 0;
    (void)arg;

    while (!is_over) {
        CHECK(filch_send(f, flood[1], &byte, 1, 0) == 1);
        CHECK(filch_recv(f, flood[0], &byte, 1, MSG_DONTWAIT) == 1);
        take_turn();
    }
    return 0;
}

/* A turn has two operations. After 16 operations a task yields, and in every 61st round the worker
 * looks into another of six places first. */
TEST(beside_tasks_whose_operations_need_not_wait)
{
    assert_in_range(turns_beside(send_and_receive, 100 * ROUNDS), 0, 6 * 61 * 16 / 2);
}

/* ---- tasks with long turns ------------------------------------------------------------------- */

static void compute(void)
{
    uint64_t end_ns = filch_after_ns(LONG_NS);
    while (filch_now_ns() < end_ns)
        filch_pause();
    take_turn();
}

static int compute_and_yield(filch_frame *f, void *arg)
{
    (void)arg;
    while (!is_over) {
        compute();
        CHECK(filch_yield(f) == 0);
    }
    return 0;
}

static int compute_and_spawn(filch_frame *f, void *scope)
{
    compute();
    return is_over ? 0 : filch_scope_spawn(f, scope, compute_and_spawn, scope);
}

/* There are three such tasks: when one has computed, the others are due. */
static int compute_and_sleep(filch_frame *f, void *arg)
{
    (void)arg;
    while (!is_over) {
        compute();
        CHECK(filch_sleep_ns(f, 1) == 0);
    }
    return 0;
}

/* After a long turn the worker looks into another of six places first. It may have to notice first
 * that turns are long, which takes up to 16 of them. */
TEST(beside_tasks_with_long_turns)
{
    assert_in_range(turns_beside(compute_and_yield, ROUNDS), 0, 16 + 6);
    assert_in_range(turns_beside(compute_and_spawn, ROUNDS), 0, 16 + 6);
    assert_in_range(turns_beside(compute_and_sleep, ROUNDS), 0, 16 + 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside_tasks_whose_operations_need_not_wait),
        cmocka_unit_test(beside_tasks_with_long_turns),
    };
    return cmocka_run_group_tests_name("io_fair", tests, watchdog_start, watchdog_stop);
}
