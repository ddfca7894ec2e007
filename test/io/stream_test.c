/* SPDX-License-Identifier: MIT */
/*
 * Streams of bytes. Run once for each way of I/O: FILCH_IO.
 */
#include "io/stream.h"
#include "pools.h"

#include <filch/filch.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A connection over TCP. From AF_UNIX sockets a stream receives one by one. */
static void open_tcp_pair(int pair[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CHECK(connect(pair[1], (struct sockaddr *)&address, sizeof address) == 0);
    pair[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(pair[0] >= 0 && close(listener) == 0);
}

#define BYTES ((size_t)1 << 20)

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + i / 251);
}

/* In pieces of all sizes. */
static int send_bytes(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    unsigned char buffer[9000];

    for (size_t done = 0, piece = 1; done < BYTES; done += piece, piece = piece * 7 % 8999 + 1) {
        piece = piece < BYTES - done ? piece : BYTES - done;
        for (size_t i = 0; i < piece; i++)
            buffer[i] = byte_at(done + i);
        CHECK(filch_send_all(f, fd, buffer, piece, 0) == (ssize_t)piece);
    }
    return filch_close(f, fd);
}

static int receive_bytes(filch_frame *f, void *arg)
{
    filch_stream stream;
    size_t done = 0;
    ssize_t got;

    filch_stream_recv(&stream, (int)(intptr_t)arg, 0);
    while ((got = filch_stream_next(f, &stream, FILCH_NO_DEADLINE)) > 0) {
        CHECK(got <= FILCH_STREAM_BYTES);
        for (ssize_t i = 0; i < got; i++, done++)
            CHECK(((const unsigned char *)stream.data)[i] == byte_at(done));
        /* Yield now and then, so that much comes before the task asks for it. */
        if (done % 5 == 0)
            filch_yield(f);
    }
    CHECK(got == 0 && done == BYTES);
    filch_stream_close(f, &stream);
    return filch_close(f, (int)(intptr_t)arg);
}

struct pairs {
    int count;
    void (*open)(int pair[2]);
};

static void pass_bytes(filch_frame *f, void *arg)
{
    filch_scope scope;
    const struct pairs *pairs = arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < pairs->count; i++) {
        int pair[2];
        pairs->open(pair);
        CHECK(filch_scope_spawn(f, &scope, receive_bytes, (void *)(intptr_t)pair[0]) == 0);
        CHECK(filch_scope_spawn(f, &scope, send_bytes, (void *)(intptr_t)pair[1]) == 0);
    }
    CHECK(filch_scope_close(f, &scope) == 0);
}

TEST(all_bytes_come_in_order)
{
    on_pools(pass_bytes, &(struct pairs){1, open_tcp_pair});
    on_pools(pass_bytes, &(struct pairs){1, open_pair});
}

TEST(many_streams_share_the_buffers)
{
    on_pools(pass_bytes, &(struct pairs){20, open_tcp_pair});
    on_pools(pass_bytes, &(struct pairs){20, open_pair});
}

TEST(a_plain_thread_may_have_a_stream_too)
{
    int pair[2];
    filch_stream stream;

    open_tcp_pair(pair);
    CHECK(send(pair[1], "abc", 3, 0) == 3 && close(pair[1]) == 0);
    filch_stream_recv(&stream, pair[0], 0);

    CHECK(filch_stream_next(NULL, &stream, FILCH_NO_DEADLINE) == 3);
    CHECK(memcmp(stream.data, "abc", 3) == 0);
    CHECK(filch_stream_next(NULL, &stream, FILCH_NO_DEADLINE) == 0);
    filch_stream_close(NULL, &stream);
    close(pair[0]);
}

static void wait_in_vain(filch_frame *f, void *arg)
{
    int pair[2];
    filch_stream stream;
    (void)arg;

    open_tcp_pair(pair);
    filch_stream_recv(&stream, pair[0], 0);
    for (int i = 0; i < 10; i++)
        CHECK(filch_stream_next(f, &stream, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_send(f, pair[1], "xyz", 3, 0) == 3);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == 3);
    CHECK(memcmp(stream.data, "xyz", 3) == 0);
    CHECK(filch_stream_next(f, &stream, filch_after_ms(1)) == -ETIMEDOUT);
    filch_stream_close(f, &stream);
    filch_close(f, pair[0]);
    filch_close(f, pair[1]);
}

TEST(a_deadline_ends_the_wait_and_not_the_stream)
{
    on_pools(wait_in_vain, NULL);
}

/* MSG_WAITALL is ignored: the call returns at once with the bytes that have come. */
static void wait_for_all(filch_frame *f, void *arg)
{
    int pair[2];
    filch_stream stream;
    (void)arg;

    open_tcp_pair(pair);
    CHECK(send(pair[1], "abc", 3, 0) == 3);
    filch_stream_recv(&stream, pair[0], MSG_WAITALL);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == 3);
    filch_stream_close(f, &stream);
    close(pair[0]);
    close(pair[1]);
}

TEST(flags_that_are_of_no_use_do_no_harm)
{
    on_pools(wait_for_all, NULL);
}

static int wait_for_ever(filch_frame *f, void *arg)
{
    filch_stream stream;

    filch_stream_recv(&stream, (int)(intptr_t)arg, 0);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == -ECANCELED);
    filch_stream_close(f, &stream);
    return 0;
}

static void cancel_waiters(filch_frame *f, void *arg)
{
    int pair[2];
    filch_scope scope;
    (void)arg;

    open_tcp_pair(pair);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, wait_for_ever, (void *)(intptr_t)pair[0]) == 0);
    CHECK(filch_scope_spawn(f, &scope, wait_for_ever, (void *)(intptr_t)pair[1]) == 0);
    for (int i = 0; i < 5; i++)
        filch_yield(f);
    filch_scope_cancel(&scope);
    int err = filch_scope_close(f, &scope);
    CHECK(err == 0 || err == -ECANCELED);
    filch_close(f, pair[0]);
    filch_close(f, pair[1]);
}

TEST(a_scope_that_is_cancelled_ends_the_wait)
{
    on_pools(cancel_waiters, NULL);
}

static void close_unread(filch_frame *f, void *arg)
{
    char buffer[100] = "";
    (void)arg;

    /* More often than there are buffers, so they must have been given back. */
    for (int i = 0; i < 1000; i++) {
        int pair[2];
        filch_stream stream;
        open_tcp_pair(pair);
        filch_stream_recv(&stream, pair[0], 0);
        CHECK(filch_send(f, pair[1], buffer, sizeof buffer, 0) == sizeof buffer);
        if (i % 3)
            CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) > 0);
        CHECK(filch_send(f, pair[1], buffer, sizeof buffer, 0) == sizeof buffer);
        if (i % 3 == 1)
            filch_yield(f);
        filch_stream_close(f, &stream);
        filch_close(f, pair[0]);
        filch_close(f, pair[1]);
    }
}

TEST(buffers_that_no_call_returned_are_given_back)
{
    on_pools(close_unread, NULL);
}

/* The sender does not get far ahead of a task that does not ask. */
static void stop_sender(filch_frame *f, void *arg)
{
    int pair[2], size = 4096;
    filch_stream stream;
    size_t sent = 0, received = 0;
    static char buffer[65536];
    (void)arg;

    open_tcp_pair(pair);
    CHECK(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    filch_stream_recv(&stream, pair[0], 0);
    CHECK(filch_send(f, pair[1], buffer, 1, 0) == 1);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == 1);
    for (;;) {
        filch_op op = filch_op_send(pair[1], buffer, 1000, 0);
        ssize_t put = filch_op_run(f, &op, filch_after_ms(100));
        if (put == -ETIMEDOUT)
            break;
        CHECK(put > 0);
        sent += (size_t)put;
        CHECK(sent < ((size_t)1 << 20));
    }
    while (received < sent) {
        ssize_t got = filch_stream_next(f, &stream, FILCH_NO_DEADLINE);
        CHECK(got > 0);
        received += (size_t)got;
    }
    CHECK(received == sent);
    filch_stream_close(f, &stream);
    filch_close(f, pair[0]);
    filch_close(f, pair[1]);
}

TEST(a_sender_waits_for_a_task_that_does_not_ask)
{
    on_pools(stop_sender, NULL);
}

/* Another task goes on with the stream while the first waits for something else. So much comes
 * before the end that the request is being cancelled when the task has taken everything. */
static int fetch_rest(filch_frame *f, void *arg)
{
    filch_stream *stream = arg;
    size_t received = 0;
    ssize_t got;

    while ((got = filch_stream_next(f, stream, FILCH_NO_DEADLINE)) > 0)
        received += (size_t)got;
    CHECK(got == 0 && received == (FILCH_STREAM_AHEAD + 4) * (size_t)FILCH_STREAM_BYTES);
    filch_stream_close(f, stream);
    return 0;
}

static void hand_over(filch_frame *f, void *arg)
{
    static char buffer[(FILCH_STREAM_AHEAD + 4) * FILCH_STREAM_BYTES];
    int pair[2], size = 1 << 20;
    filch_stream stream;
    filch_scope scope;
    (void)arg;

    open_tcp_pair(pair);
    CHECK(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
    filch_stream_recv(&stream, pair[0], 0);
    CHECK(filch_stream_next(f, &stream, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_send_all(f, pair[1], buffer, sizeof buffer, 0) == (ssize_t)sizeof buffer);
    CHECK(filch_close(f, pair[1]) == 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, fetch_rest, &stream) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    CHECK(filch_close(f, pair[0]) == 0);
}

TEST(another_task_may_go_on_with_a_stream)
{
    on_pools(hand_over, NULL);
}

static void use_nonblocking(filch_frame *f, void *arg)
{
    int pair[2];
    filch_stream stream;
    (void)arg;

    open_tcp_pair(pair);
    CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
    filch_stream_recv(&stream, pair[0], 0);
    CHECK(filch_stream_next(f, &stream, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_send(f, pair[1], "abc", 3, 0) == 3);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == 3);
    CHECK(memcmp(stream.data, "abc", 3) == 0);
    filch_close(f, pair[1]);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == 0);
    filch_stream_close(f, &stream);
    filch_close(f, pair[0]);
}

TEST(a_descriptor_that_is_non_blocking_is_waited_for)
{
    on_pools(use_nonblocking, NULL);
}

static void use_wrong_ones(filch_frame *f, void *arg)
{
    int pair[2];
    filch_stream stream;
    (void)arg;

    open_tcp_pair(pair);
    filch_stream_recv(&stream, -1, 0);
    CHECK(filch_stream_next(f, &stream, FILCH_NO_DEADLINE) == -EBADF);
    filch_stream_close(f, &stream);
    filch_stream_accept(&stream, pair[0], 0);
    ssize_t err = filch_stream_next(f, &stream, FILCH_NO_DEADLINE);
    CHECK(err == -EINVAL || err == -EOPNOTSUPP);
    filch_stream_close(f, &stream);
    filch_close(f, pair[0]);
    filch_close(f, pair[1]);
}

TEST(a_wrong_argument_is_an_error)
{
    on_pools(use_wrong_ones, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_come_in_order),
        cmocka_unit_test(many_streams_share_the_buffers),
        cmocka_unit_test(a_plain_thread_may_have_a_stream_too),
        cmocka_unit_test(a_deadline_ends_the_wait_and_not_the_stream),
        cmocka_unit_test(flags_that_are_of_no_use_do_no_harm),
        cmocka_unit_test(a_scope_that_is_cancelled_ends_the_wait),
        cmocka_unit_test(buffers_that_no_call_returned_are_given_back),
        cmocka_unit_test(a_sender_waits_for_a_task_that_does_not_ask),
        cmocka_unit_test(another_task_may_go_on_with_a_stream),
        cmocka_unit_test(a_descriptor_that_is_non_blocking_is_waited_for),
        cmocka_unit_test(a_wrong_argument_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
