/* SPDX-License-Identifier: MIT */
/*
 * Splices: they wait for both sides, and a close of either side cancels them, and nothing else. Run
 * once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/io.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>

/* ---- both sides ------------------------------------------------------------------------------ */

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

typedef struct end {
    int fd;
    size_t bytes;
} end;

static int receive_bytes(filch_frame *f, void *arg)
{
    const end *from = arg;
    unsigned char buffer[1000];
    size_t done = 0;
    ssize_t got;

    while ((got = filch_recv(f, from->fd, buffer, sizeof buffer, 0)) > 0)
        for (ssize_t i = 0; i < got; i++, done++)
            CHECK(buffer[i] == byte_at(done));
    CHECK(got == 0 && done == from->bytes);
    return 0;
}

static int write_pipe(filch_frame *f, void *arg)
{
    const end *to = arg;
    unsigned char *buffer = malloc(to->bytes);

    for (size_t i = 0; i < to->bytes; i++)
        buffer[i] = byte_at(i);
    CHECK(filch_write_all(f, to->fd, buffer, to->bytes) == (ssize_t)to->bytes);
    free(buffer);
    return filch_close(f, to->fd);
}

static int splice_all(filch_frame *f, void *arg)
{
    const int *ends = arg; /* from, to */
    size_t done = 0;
    ssize_t moved;

    while ((moved = filch_splice(f, ends[0], FILCH_FILE_POSITION, ends[1], FILCH_FILE_POSITION,
                                 65536, 0)) > 0)
        done += (size_t)moved;
    CHECK(moved == 0 && done == ((size_t)1 << 20));
    CHECK(filch_close(f, ends[0]) == 0);
    return filch_shutdown(f, ends[1], SHUT_WR);
}

/* Bytes go into a pipe, from there into a socket, and arrive. All three tasks wait for each
 * other. */
static void splice_bytes(filch_frame *f, void *arg)
{
    int pipe_ends[2], pair[2];
    filch_scope scope;
    (void)arg;

    CHECK(pipe(pipe_ends) == 0);
    open_pair(pair);
    int ends[2] = {pipe_ends[0], pair[0]};
    end to = {pipe_ends[1], (size_t)1 << 20}, from = {pair[1], (size_t)1 << 20};
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, splice_all, ends) == 0);
    CHECK(filch_scope_spawn(f, &scope, receive_bytes, &from) == 0);
    CHECK(filch_scope_spawn(f, &scope, write_pipe, &to) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_splice_waits_for_both_sides)
{
    on_pools(splice_bytes, NULL);
}

/* No task writes to the pipe. The splice can be cancelled by every route. */
static void splice_in_vain(filch_frame *f, void *arg)
{
    int pipe_ends[2], pair[2];
    (void)arg;

    CHECK(pipe(pipe_ends) == 0);
    open_pair(pair);
    filch_op op =
        filch_op_splice(pipe_ends[0], FILCH_FILE_POSITION, pair[0], FILCH_FILE_POSITION, 100, 0);
    CHECK(filch_op_run(f, &op, filch_after_ms(2)) == -ETIMEDOUT);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(pair[0]);
    close(pair[1]);
}

TEST(a_splice_has_a_deadline)
{
    on_pools(splice_in_vain, NULL);
    splice_in_vain(NULL, NULL);
}

static void *empty_socket(void *arg)
{
    char buffer[4096];
    ssize_t got;

    while ((got = read((int)(intptr_t)arg, buffer, sizeof buffer)) > 0 && buffer[got - 1] != 'c')
        ;
    return NULL;
}

/* Into a full socket that is non-blocking, as it is after a task has spliced to it. */
TEST(a_plain_thread_waits_for_both_sides_of_a_splice)
{
    static const char buffer[4096];
    int pipe_ends[2], pair[2];
    pthread_t reader;

    CHECK(pipe(pipe_ends) == 0 && write(pipe_ends[1], "abc", 3) == 3);
    open_pair(pair);
    CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
    while (send(pair[0], buffer, sizeof buffer, 0) > 0)
        ;
    filch_op op =
        filch_op_splice(pipe_ends[0], FILCH_FILE_POSITION, pair[0], FILCH_FILE_POSITION, 100, 0);
    CHECK(filch_op_run(NULL, &op, filch_after_ms(2)) == -ETIMEDOUT);

    CHECK(pthread_create(&reader, NULL, empty_socket, (void *)(intptr_t)pair[1]) == 0);
    CHECK(filch_splice(NULL, pipe_ends[0], FILCH_FILE_POSITION, pair[0], FILCH_FILE_POSITION, 100,
                       0) == 3);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK) == 0);
    CHECK(filch_op_run(NULL, &op, filch_after_ms(2)) == -ETIMEDOUT);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(pair[0]);
    close(pair[1]);
}

static void splice_impatiently(filch_frame *f, void *arg)
{
    static const char bytes[4096];
    int from[2], pair[2], full[2];
    (void)arg;

    CHECK(pipe(from) == 0);
    open_pair(pair);
    open_pair(full);
    filch_op op = filch_op_splice(from[0], FILCH_FILE_POSITION, pair[0], FILCH_FILE_POSITION, 100,
                                  SPLICE_F_NONBLOCK);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == -EAGAIN);
    CHECK(filch_op_run(f, &op, filch_after_ms(3600000)) == -EAGAIN);
    CHECK(write(from[1], "abc", 3) == 3);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == 3);
    /* Nor does it wait for room. */
    CHECK(write(from[1], "abc", 3) == 3);
    while (send(full[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    op = filch_op_splice(from[0], FILCH_FILE_POSITION, full[0], FILCH_FILE_POSITION, 100,
                         SPLICE_F_NONBLOCK);
    CHECK(filch_op_run(f, &op, FILCH_NO_DEADLINE) == -EAGAIN);
    CHECK(filch_close(f, full[0]) == 0 && filch_close(f, full[1]) == 0);
    CHECK(filch_close(f, from[0]) == 0 && filch_close(f, from[1]) == 0);
    CHECK(filch_close(f, pair[0]) == 0 && filch_close(f, pair[1]) == 0);
}

TEST(a_splice_with_f_nonblock_does_not_wait)
{
    on_pools(splice_impatiently, NULL);
    splice_impatiently(NULL, NULL);
}

/* ---- a close --------------------------------------------------------------------------------- */

/* The ways in which the splice waits when a side is closed. */
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

/* `innocent` and `polls` are on other descriptors, and are to go on. */
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

TEST(a_close_cancels_a_splice_and_no_other)
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

TEST(a_close_cancels_splices_that_have_not_begun)
{
    on_pools(close_many, NULL);
}

/* A descriptor and its duplicate are one file, but are closed one by one. */
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

TEST(a_close_cancels_nothing_of_a_duplicate)
{
    on_pools(close_duplicate, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_splice_waits_for_both_sides),
        cmocka_unit_test(a_splice_has_a_deadline),
        cmocka_unit_test(a_plain_thread_waits_for_both_sides_of_a_splice),
        cmocka_unit_test(a_splice_with_f_nonblock_does_not_wait),
        cmocka_unit_test(a_close_cancels_a_splice_and_no_other),
        cmocka_unit_test(a_close_cancels_splices_that_have_not_begun),
        cmocka_unit_test(a_close_cancels_nothing_of_a_duplicate),
    };
    return cmocka_run_group_tests_name("splice", tests, watchdog_start, watchdog_stop);
}
