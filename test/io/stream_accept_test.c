/* SPDX-License-Identifier: MIT */
/*
 * Streams of connections. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/filch.h>

#include <arpa/inet.h>
#include <sys/stat.h>

#define CLIENTS 200

static struct sockaddr_in address;

static int listen_here(void)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof address;

    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
          listen(listener, 1024) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    return listener;
}

static int ask(filch_frame *f, void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t question = (uint64_t)(uintptr_t)arg * 1000003, answer = 0;

    CHECK(filch_connect(f, fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(filch_send_all(f, fd, &question, sizeof question, 0) == sizeof question);
    CHECK(filch_recv(f, fd, &answer, sizeof answer, MSG_WAITALL) == sizeof answer &&
          answer == question);
    return filch_close(f, fd);
}

static int echo(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    filch_stream stream;
    ssize_t got;

    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    filch_stream_recv(&stream, fd, 0);
    while ((got = filch_stream_next(f, &stream, FILCH_NO_DEADLINE)) > 0)
        CHECK(filch_send_all(f, fd, stream.data, (size_t)got, 0) == got);
    CHECK(got == 0);
    filch_stream_close(f, &stream);
    return filch_close(f, fd);
}

static int accept_all(filch_frame *f, void *arg)
{
    filch_stream incoming;
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    filch_stream_accept(&incoming, (int)(intptr_t)arg, 0);
    for (int i = 0; i < CLIENTS; i++) {
        int fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE);
        CHECK(fd >= 0);
        CHECK(filch_scope_spawn(f, &scope, echo, (void *)(intptr_t)fd) == 0);
    }
    filch_stream_close(f, &incoming);
    return filch_scope_close(f, &scope);
}

static void serve(filch_frame *f, void *arg)
{
    int listener = listen_here();
    filch_scope scope;
    (void)arg;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, accept_all, (void *)(intptr_t)listener) == 0);
    for (uintptr_t i = 0; i < CLIENTS; i++)
        CHECK(filch_scope_spawn(f, &scope, ask, (void *)i) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    filch_close(f, listener);
}

TEST(every_connection_is_accepted_once)
{
    on_pools(serve, NULL);
}

static int count_sockets(void)
{
    struct stat info;
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
    return count;
}

/* More connections than the task takes: the others are closed, by the stream or by the kernel. */
static void leave_some(filch_frame *f, void *arg)
{
    int listener = listen_here(), clients[100];
    filch_stream incoming;
    (void)arg;

    filch_stream_accept(&incoming, listener, 0);
    CHECK(filch_stream_next(f, &incoming, filch_after_ms(1)) == -ETIMEDOUT);
    int socket_count = count_sockets();
    for (int i = 0; i < 100; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(filch_connect(f, clients[i], (struct sockaddr *)&address, sizeof address) == 0);
    }
    for (int i = 0; i < 3; i++) {
        int fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE);
        CHECK(fd >= 0);
        filch_close(f, fd);
    }
    filch_stream_close(f, &incoming);
    filch_close(f, listener);
    for (int i = 0; i < 100; i++) {
        char byte;
        ssize_t got = filch_recv(f, clients[i], &byte, 1, 0);
        CHECK(got == 0 || got == -ECONNRESET);
        filch_close(f, clients[i]);
    }
    /* The listener is closed, too. */
    CHECK(count_sockets() == socket_count - 1);
}

TEST(connections_that_no_call_returned_are_closed)
{
    on_pools(leave_some, NULL);
}

static int close_it(filch_frame *f, void *arg)
{
    filch_yield(f);
    return filch_close(f, (int)(intptr_t)arg);
}

static void close_listener(filch_frame *f, void *arg)
{
    int listener = listen_here();
    filch_stream incoming;
    filch_scope scope;
    (void)arg;

    filch_stream_accept(&incoming, listener, 0);
    CHECK(filch_stream_next(f, &incoming, filch_after_ms(1)) == -ETIMEDOUT);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, close_it, (void *)(intptr_t)listener) == 0);
    ssize_t err = filch_stream_next(f, &incoming, FILCH_NO_DEADLINE);
    CHECK(err == -ECANCELED || err == -EBADF);
    CHECK(filch_scope_close(f, &scope) == 0);
    filch_stream_close(f, &incoming);
}

TEST(a_close_ends_the_wait)
{
    on_pools(close_listener, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_connection_is_accepted_once),
        cmocka_unit_test(connections_that_no_call_returned_are_closed),
        cmocka_unit_test(a_close_ends_the_wait),
    };
    return cmocka_run_group_tests_name("stream_accept", tests, NULL, NULL);
}
