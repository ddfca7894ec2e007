/* SPDX-License-Identifier: MIT */
/*
 * A ring without a pool. Its thread is the lookout, too: so what happens between two steps of the one is decided by the program.
 */
#include "io/uring.h"

#include "support.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- what the library asks of the kernel ---------------------------------------------------------- */

static unsigned kick_count;
static void (*before_sleep)(void); /* once, when the thread is about to sleep in the ring */
static long sleep_result;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

/* The library's calls come here. */
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

/* ---- the ring --------------------------------------------------------------------------------------- */

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

/* It listens to the bell, and nothing is left that would keep it from sleeping. */
static void come_to_rest(void)
{
    const struct timespec none = {0};
    do
        sleep_in_ring(&none);
    while (sleep_result != -ETIME);
}

/* As one who calls the thread. */
static void ring_bell(void)
{
    const uint64_t one = 1;
    assert_int_equal(write(ring->source.bell, &one, sizeof one), sizeof one);
}

/* ---- the bell --------------------------------------------------------------------------------------- */

static filch_op request;

/* A request to take back all polls, of which the bell is one, is carried out by the handler before the thread gets to sleep; and then it is called. */
static void take_back_polls_and_call(void)
{
    filch_uring_cancel_all(ring, &request, FILCH_URING_POLLS);
    look_after_ring();
    ring_bell();
}

TEST(a_bell_is_heard_though_polls_are_taken_back_when_its_thread_is_about_to_sleep)
{
    const struct timespec long_time = {.tv_sec = 20};

    open_ring();
    come_to_rest();
    before_sleep = take_back_polls_and_call;
    sleep_in_ring(&long_time);

    assert_int_not_equal(sleep_result, -ETIME);
    assert_true(kick_count > 0);
    /* And it listens again. */
    come_to_rest();
    assert_true(filch_op_is_complete(&request));
    before_sleep = ring_bell;
    sleep_in_ring(&long_time);
    assert_int_not_equal(sleep_result, -ETIME);
    filch_uring_destroy(ring);
}

/* The thread computes. It is kicked for what there is to do, which leaves the bell; and for nothing after that. */
TEST(who_computes_is_not_kicked_because_its_bell_has_rung)
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

/* It is called before it sleeps, and the lookout, which has not noticed that it does not compute any more, reads that the bell has rung. */
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

/* An operation that is to be tried once more lies in the inbox until the thread comes to its loop. */
TEST(who_computes_is_not_kicked_for_what_only_it_can_submit)
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
            a_bell_is_heard_though_polls_are_taken_back_when_its_thread_is_about_to_sleep),
        cmocka_unit_test(who_computes_is_not_kicked_because_its_bell_has_rung),
        cmocka_unit_test(a_bell_that_only_the_lookout_has_heard_is_not_slept_over),
        cmocka_unit_test(who_computes_is_not_kicked_for_what_only_it_can_submit),
    };
    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
