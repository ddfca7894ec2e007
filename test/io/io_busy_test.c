/* SPDX-License-Identifier: MIT */
/*
 * Operations while the worker that started them computes: other workers look after them. Run once
 * for each way of I/O: FILCH_IO.
 */
#include "child.h"
#include "watchdog.h"

#include <filch/filch.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUNDS 30

static int pair[2];
static filch_atomic_u32 is_started, is_over;

/* Computes on the worker that started the operation, until the task that waits for the operation
 * goes on. */
static int compute_until_over(filch_frame *f, void *arg)
{
    (void)f;
    (void)arg;
    while (!filch_load_acquire(&is_over))
        filch_pause();
    return 0;
}

typedef int task_fn(filch_frame *f, void *arg);

/* One task starts an operation. Another computes, mostly on the same worker, until the first has
 * ended. */
static void compute_beside(filch_frame *f, void *arg)
{
    task_fn *fn = *(task_fn **)arg;

    for (int i = 0; i < ROUNDS; i++) {
        filch_scope scope;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        filch_store_relaxed(&is_over, 0);
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        CHECK(filch_scope_spawn(f, &scope, fn, NULL) == 0);
        filch_yield(f);
        CHECK(filch_scope_spawn(f, &scope, compute_until_over, NULL) == 0);
        CHECK(filch_scope_close(f, &scope) == 0);
        CHECK((pair[0] < 0 || close(pair[0]) == 0) && close(pair[1]) == 0);
    }
}

static void beside_one_that_computes(task_fn *fn)
{
    filch_pool *pool = watched_pool_of(2);
    assert_int_equal(filch_run(pool, compute_beside, &fn), 0);
    watched_pool_destroy(pool);
}

static int wait_for_deadline(filch_frame *f, void *arg)
{
    char byte;
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    (void)arg;

    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    filch_store_release(&is_over, 1);
    return 0;
}

TEST(a_deadline_cancels_an_operation)
{
    beside_one_that_computes(wait_for_deadline);
}

static int wait_for_byte(filch_frame *f, void *arg)
{
    char byte;
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    (void)arg;

    CHECK(filch_op_start(f, &op) == 0);
    filch_sleep_ns(f, 1000000);
    CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1 && byte == 'x');
    filch_store_release(&is_over, 1);
    return 0;
}

TEST(an_event_is_seen)
{
    beside_one_that_computes(wait_for_byte);
}

static int close_under_operations(filch_frame *f, void *arg)
{
    char bytes[3];
    filch_op ops[3];
    (void)arg;

    for (int i = 0; i < 3; i++) {
        ops[i] = filch_op_recv(pair[0], &bytes[i], 1, 0);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
    filch_sleep_ns(f, 1000000);
    CHECK(filch_close(f, pair[0]) == 0);
    pair[0] = -1;
    for (int i = 0; i < 3; i++)
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == -ECANCELED);
    filch_store_release(&is_over, 1);
    return 0;
}

TEST(a_close_cancels_what_is_in_flight)
{
    beside_one_that_computes(close_under_operations);
}

/* The kernel refuses six operations when they are submitted; the one behind them is in flight. */
static int start_behind_refused(filch_frame *f, void *arg)
{
    char byte;
    filch_op refused[6], op = filch_op_recv(pair[0], &byte, 1, 0);
    (void)arg;

    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        refused[i] = filch_op_unlinkat(FILCH_CWD, "nothing", 1);
        CHECK(filch_op_start(f, &refused[i]) == 0);
    }
    CHECK(filch_op_start(f, &op) == 0);
    filch_store_release(&is_started, 1);
    while (!filch_load_acquire(&is_over))
        filch_pause();
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        CHECK(filch_op_wait(f, &refused[i], FILCH_NO_DEADLINE) == -EINVAL);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);
    return 0;
}

static void close_behind_refused(filch_frame *f, void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        filch_scope scope;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        filch_store_relaxed(&is_started, 0);
        filch_store_relaxed(&is_over, 0);
        CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
        CHECK(filch_scope_spawn(f, &scope, start_behind_refused, NULL) == 0);
        while (!filch_load_acquire(&is_started))
            filch_pause();
        CHECK(filch_close(f, pair[0]) == 0);
        /* The file that has the number now must not be read from. */
        CHECK(dup(pair[1]) == pair[0]);
        filch_store_release(&is_over, 1);
        CHECK(filch_scope_close(f, &scope) == 0);
        CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
    }
}

TEST(a_close_cancels_an_operation_behind_refused_ones)
{
    filch_pool *pool = watched_pool_of(2);

    assert_int_equal(filch_run(pool, close_behind_refused, NULL), 0);
    watched_pool_destroy(pool);
}

/* Compute until the operation is done, without waiting. */
static void compute_over_own_operation(filch_frame *f, void *arg)
{
    char byte;
    (void)arg;

    for (int i = 0; i < ROUNDS; i++) {
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
        CHECK(filch_op_start(f, &op) == 0);
        CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
        while (!filch_op_is_done(&op))
            filch_pause();
        CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1 && byte == 'x');
        CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
    }
}

TEST(a_task_may_compute_until_its_operation_is_done)
{
    for (unsigned workers = 2; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, compute_over_own_operation, NULL), 0);
        watched_pool_destroy(pool);
    }
}

/* ---- while all tasks wait -------------------------------------------------------------------- */

#define WORKERS 4

static filch_atomic_u32 arrived;

/* Each worker runs one of these tasks, so each worker has done I/O. */
static int receive_on_each(filch_frame *f, void *arg)
{
    int own[2];
    char byte;
    (void)arg;

    filch_fetch_add_relaxed(&arrived, 1);
    while (filch_load_relaxed(&arrived) < WORKERS)
        sched_yield();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, own) == 0);
    CHECK(send(own[1], "x", 1, MSG_NOSIGNAL) == 1 && filch_recv(f, own[0], &byte, 1, 0) == 1);
    CHECK(close(own[0]) == 0 && close(own[1]) == 0);
    return 0;
}

static int receive_byte(filch_frame *f, void *arg)
{
    char byte;
    (void)arg;
    return filch_recv(f, pair[0], &byte, 1, 0) == 1 ? 0 : -EIO;
}

/* Wait until the process is woken at most 20 times in 200 ms. A lookout wakes that often in 2 ms.
 * On a busy machine this may take long. */
static void await_rest(void)
{
    struct rusage before, after;
    const struct timespec while_ = {.tv_nsec = 200000000};

    do {
        getrusage(RUSAGE_SELF, &before);
        nanosleep(&while_, NULL);
        getrusage(RUSAGE_SELF, &after);
    } while (after.ru_nvcsw - before.ru_nvcsw > 20);
}

static filch_pool *pool_that_receives(filch_scope *scope)
{
    filch_pool *pool = watched_pool_of(WORKERS);

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    filch_store_relaxed(&arrived, 0);
    filch_store_relaxed(&is_over, 0);
    assert_int_equal(filch_scope_open(NULL, scope, pool, NULL), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(filch_scope_spawn(NULL, scope, receive_on_each, NULL), 0);
    assert_int_equal(filch_scope_close(NULL, scope), 0);
    assert_int_equal(filch_scope_open(NULL, scope, pool, NULL), 0);
    assert_int_equal(filch_scope_spawn(NULL, scope, receive_byte, NULL), 0);
    return pool;
}

static void end_receiving(filch_pool *pool, filch_scope *scope)
{
    CHECK(send(pair[1], "x", 1, MSG_NOSIGNAL) == 1);
    assert_int_equal(filch_scope_close(NULL, scope), 0);
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
    watched_pool_destroy(pool);
}

TEST(a_pool_whose_tasks_all_wait_sleeps)
{
    filch_scope scope;
    filch_pool *pool = pool_that_receives(&scope);

    await_rest();
    end_receiving(pool, &scope);
}

TEST(without_rings_no_lookout_watches_a_worker_that_computes)
{
    const char *way = getenv("FILCH_IO");
    if (!way || strncmp(way, "uring", 5) == 0)
        skip();
    filch_scope scope;
    filch_pool *pool = pool_that_receives(&scope);

    assert_int_equal(filch_scope_spawn(NULL, &scope, compute_until_over, NULL), 0);
    await_rest();
    filch_store_release(&is_over, 1);
    end_receiving(pool, &scope);
}

/* As in programs in which one thread waits for all signals. */
TEST(blocked_signals_do_not_delay_a_cancellation)
{
    sigset_t all, before;

    sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
    beside_one_that_computes(wait_for_deadline);
    beside_one_that_computes(close_under_operations);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static filch_atomic_u32 seen;

static void on_urgent(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    if (info->si_value.sival_int == 42)
        filch_fetch_add_relaxed(&seen, 1);
}

static void signal_myself(filch_frame *f, void *arg)
{
    char byte;
    filch_op op = filch_op_recv(pair[0], &byte, 1, 0);
    (void)arg;

    CHECK(filch_op_run(f, &op, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(sigqueue(getpid(), SIGURG, (union sigval){.sival_int = 42}) == 0);
    while (!filch_load_relaxed(&seen))
        CHECK(filch_sleep_ns(f, 100000) == 0);
}

/* The handler has to be installed before the library's, so this runs in a process of its own. */
static void use_urgent_signals(void *arg)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    filch_pool *pool;
    (void)arg;

    action.sa_sigaction = on_urgent;
    CHECK(sigaction(SIGURG, &action, NULL) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(filch_pool_create(&pool, NULL) == 0);
    CHECK(filch_run(pool, signal_myself, NULL) == 0);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(a_handler_of_the_program_gets_its_own_sigurg)
{
#if defined(TEST_TSAN) || defined(TEST_EMULATED)
    print_message("ThreadSanitizer and the emulator do not let a child start threads when its "
                  "parent had some: skipped\n");
    skip();
#endif
    ended c = run_in_child(use_urgent_signals, NULL);
    assert_exit_code(&c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_of_the_program_gets_its_own_sigurg),
        cmocka_unit_test(a_deadline_cancels_an_operation),
        cmocka_unit_test(an_event_is_seen),
        cmocka_unit_test(a_close_cancels_what_is_in_flight),
        cmocka_unit_test(a_close_cancels_an_operation_behind_refused_ones),
        cmocka_unit_test(a_task_may_compute_until_its_operation_is_done),
        cmocka_unit_test(a_pool_whose_tasks_all_wait_sleeps),
        cmocka_unit_test(without_rings_no_lookout_watches_a_worker_that_computes),
        cmocka_unit_test(blocked_signals_do_not_delay_a_cancellation),
    };
    return cmocka_run_group_tests_name("io_busy", tests, watchdog_start, watchdog_stop);
}
