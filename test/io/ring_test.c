/* SPDX-License-Identifier: MIT */
/*
 * A ring without a pool. One thread is both the ring's thread and its lookout, so the test can act
 * between any two steps of either.
 */
#include "io/uring.h"

#include "support.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the library's system calls -------------------------------------------------------------- */

static unsigned kick_count;
static void (*before_sleep)(void); /* once, when the thread is about to sleep in the ring */
static long sleep_result;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

/* The library calls this one. */
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    bool is_sleep = number == SYS_io_uring_enter && c == 1;
    void (*fn)(void) = is_sleep ? before_sleep : NULL;

    kick_count += number == SYS_rt_tgsigqueueinfo;
    before_sleep = is_sleep ? NULL : before_sleep;
    if (fn)
        fn();
    long result = __real_syscall(number, a, b, c, d, e, f);
    if (is_sleep)
        sleep_result = result < 0 ? -errno : result;
    return result;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static filch_io io = {.ring_entries = 64};
static filch_uring *ring;

static void open_ring(void)
{
    if (filch_uring_create(&ring, &io) < 0) {
        print_message("there is no io_uring: skipped\n");
        skip();
    }
    filch_kick_accept();
    kick_count = 0;
}

static void sleep_in_ring(const struct timespec *timeout)
{
    assert_null(ring->source.wait(&ring->source, timeout));
}

static void look_after_ring(void)
{
    bool is_near = false;
    assert_null(ring->source.look(&ring->source, &is_near));
}

/* Until the ring polls the bell, and nothing keeps the thread from sleeping. */
static void come_to_rest(void)
{
    const struct timespec none = {0};
    do
        sleep_in_ring(&none);
    while (sleep_result != -ETIME);
}

/* As a thread does that calls the ring's thread. */
static void ring_bell(void)
{
    const uint64_t one = 1;
    assert_int_equal(write(ring->source.bell, &one, sizeof one), sizeof one);
}

/* ---- the bell -------------------------------------------------------------------------------- */

static filch_op request;

/* A request to cancel all polls, the bell's among them, is carried out by the handler before the
 * thread sleeps. Then the thread is called. */
static void cancel_polls_and_call(void)
{
    filch_uring_cancel_all(ring, &request, FILCH_URING_POLLS);
    look_after_ring();
    ring_bell();
}

TEST(a_bell_is_heard_though_polls_are_cancelled_when_its_thread_is_about_to_sleep)
{
    const struct timespec long_time = {.tv_sec = 20};

    open_ring();
    come_to_rest();
    before_sleep = cancel_polls_and_call;
    sleep_in_ring(&long_time);

    assert_int_not_equal(sleep_result, -ETIME);
    assert_true(kick_count > 0);
    /* The ring polls the bell again. */
    come_to_rest();
    assert_true(filch_op_is_complete(&request));
    before_sleep = ring_bell;
    sleep_in_ring(&long_time);
    assert_int_not_equal(sleep_result, -ETIME);
    filch_uring_destroy(ring);
}

/* The thread computes. It is kicked for the bell's completion, and for nothing after that. */
TEST(a_thread_that_computes_is_not_kicked_because_its_bell_has_rung)
{
    open_ring();
    come_to_rest();
    ring_bell();
    look_after_ring();
    kick_count = 0;

    for (int i = 0; i < 10; i++)
        look_after_ring();

    assert_int_equal(kick_count, 0);
    filch_uring_destroy(ring);
}

/* The thread is called before it sleeps. The lookout, which takes it for computing, reads the
 * bell's completion. */
TEST(a_bell_that_only_the_lookout_has_heard_is_not_slept_over)
{
    open_ring();
    come_to_rest();
    ring_bell();
    look_after_ring();
    assert_true(kick_count > 0);

    sleep_in_ring(NULL);
    come_to_rest();
    filch_uring_destroy(ring);
}

static int pair[2];
static filch_op receiving;
static char byte;

/* An operation that is to be submitted again is in the inbox until the thread comes to its loop. */
TEST(a_thread_that_computes_is_not_kicked_for_what_only_it_can_submit)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    open_ring();
    come_to_rest();
    receiving = filch_op_recv(pair[0], &byte, 1, 0);
    filch_op_set_in_flight(&receiving);
    assert_true(filch_inbox_put_back(&ring->inbox, &receiving));

    for (int i = 0; i < 10; i++)
        look_after_ring();
    assert_int_equal(kick_count, 0);

    assert_int_equal(send(pair[1], "x", 1, 0), 1);
    while (!filch_op_is_complete(&receiving))
        sleep_in_ring(NULL);
    assert_true(receiving.result == 1 && byte == 'x');
    filch_uring_destroy(ring);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_bell_is_heard_though_polls_are_cancelled_when_its_thread_is_about_to_sleep),
        cmocka_unit_test(a_thread_that_computes_is_not_kicked_because_its_bell_has_rung),
        cmocka_unit_test(a_bell_that_only_the_lookout_has_heard_is_not_slept_over),
        cmocka_unit_test(a_thread_that_computes_is_not_kicked_for_what_only_it_can_submit),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
