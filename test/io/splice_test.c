/* SPDX-License-Identifier: MIT */
/*
 * What a close takes back: splices, whichever side they wait for and whichever is closed, and nothing else. Run once for each way of doing I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* What keeps the splice, and how far it is when a side is closed. */
enum { FOR_INPUT, FOR_INPUT_NON_BLOCKING, FOR_ROOM, WAITS };

typedef struct plumbing {
    int pipe[2], pair[2];
} plumbing;

static void open_all(plumbing *p, int waits)
{
    static const char filler[65536];

    CHECK(pipe(p->pipe) == 0);
    open_pair(p->pair);
    if (waits == FOR_INPUT_NON_BLOCKING)
        CHECK(fcntl(p->pipe[0], F_SETFL, O_NONBLOCK) == 0);
    if (waits == FOR_ROOM) {
        CHECK(write(p->pipe[1], "abc", 3) == 3);
        while (send(p->pair[0], filler, sizeof filler, MSG_DONTWAIT) > 0 ||
               send(p->pair[0], filler, 1, MSG_DONTWAIT) > 0)
            ;
    }
}

static filch_op splice_through(const plumbing *p)
{
    return filch_op_splice(p->pipe[0], FILCH_FILE_POSITION, p->pair[0], FILCH_FILE_POSITION, 100,
                           0);
}

/* Another, which is to go on: it has the same input that never comes, or another of its own. */
static void close_one(filch_frame *f, int waits, bool is_source, bool has_begun)
{
    plumbing p, other;
    open_all(&p, waits);
    open_all(&other, FOR_INPUT);
    filch_op op = splice_through(&p), innocent = splice_through(&other);
    filch_op polls = filch_op_poll(other.pair[1], POLLIN);
    char bytes[3];

    CHECK(filch_op_start(f, &innocent) == 0);
    CHECK(filch_op_start(f, &polls) == 0);
    CHECK(filch_op_start(f, &op) == 0);
    if (has_begun)
        CHECK(filch_sleep_ns(f, 1000000) == 0);
    CHECK(filch_close(f, is_source ? p.pipe[0] : p.pair[0]) == 0);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == -ECANCELED);

    CHECK(write(other.pipe[1], "xyz", 3) == 3);
    CHECK(filch_op_wait(f, &innocent, FILCH_NO_DEADLINE) == 3);
    CHECK(filch_op_wait(f, &polls, FILCH_NO_DEADLINE) == POLLIN);
    CHECK(read(other.pair[1], bytes, 3) == 3 && memcmp(bytes, "xyz", 3) == 0);
    close(is_source ? p.pair[0] : p.pipe[0]);
    close(p.pipe[1]);
    close(p.pair[1]);
    close(other.pipe[0]);
    close(other.pipe[1]);
    close(other.pair[0]);
    close(other.pair[1]);
}

static void close_each(filch_frame *f, void *arg)
{
    (void)arg;
    for (int waits = 0; waits < WAITS; waits++)
        for (int is_source = 0; is_source < 2; is_source++)
            for (int has_begun = 0; has_begun < 2; has_begun++)
                close_one(f, waits, is_source, has_begun);
}

TEST(a_close_takes_back_a_splice_and_no_other)
{
    on_pools(close_each, NULL);
}

/* More splices than the kernel has threads for: most have not begun. */
#define MANY 64

static void close_many(filch_frame *f, void *arg)
{
    plumbing p;
    filch_op ops[MANY];
    (void)arg;

    open_all(&p, FOR_INPUT);
    for (int i = 0; i < MANY; i++) {
        ops[i] = splice_through(&p);
        CHECK(filch_op_start(f, &ops[i]) == 0);
    }
    CHECK(filch_close(f, p.pipe[0]) == 0);
    for (int i = 0; i < MANY; i++)
        CHECK(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE) == -ECANCELED);
    close(p.pipe[1]);
    close(p.pair[0]);
    close(p.pair[1]);
}

TEST(a_close_takes_back_splices_that_have_not_begun)
{
    on_pools(close_many, NULL);
}

/* A descriptor and its duplicate are one file, and two things to close. */
static void close_duplicate(filch_frame *f, void *arg)
{
    int pair[2];
    char one, other;
    (void)arg;

    open_pair(pair);
    int duplicate = dup(pair[0]);
    CHECK(duplicate >= 0);
    filch_op first = filch_op_recv(pair[0], &one, 1, 0),
             second = filch_op_recv(duplicate, &other, 1, 0);

    CHECK(filch_op_start(f, &first) == 0);
    CHECK(filch_op_start(f, &second) == 0);
    CHECK(filch_sleep_ns(f, 100000) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
    CHECK(filch_op_wait(f, &first, FILCH_NO_DEADLINE) == -ECANCELED);
    CHECK(send(pair[1], "x", 1, 0) == 1);
    CHECK(filch_op_wait(f, &second, FILCH_NO_DEADLINE) == 1 && other == 'x');
    close(duplicate);
    close(pair[1]);
}

TEST(a_close_takes_back_nothing_of_a_duplicate)
{
    on_pools(close_duplicate, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_close_takes_back_a_splice_and_no_other),
        cmocka_unit_test(a_close_takes_back_splices_that_have_not_begun),
        cmocka_unit_test(a_close_takes_back_nothing_of_a_duplicate),
    };
    return cmocka_run_group_tests_name("splice", tests, watchdog_start, watchdog_stop);
}
