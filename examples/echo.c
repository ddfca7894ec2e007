/* SPDX-License-Identifier: MIT */
/*
 * An echo server: one task per connection, written as straight-line code, and no thread blocks.
 *
 * Connections and bytes come from streams (filch/stream.h): the task requests them once, and a
 * silent connection holds no buffer.
 *
 *     echo                serve its own clients, then exit; this mode is the test
 *     echo <port>         serve 127.0.0.1:<port> until interrupted
 */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <filch/filch.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 100, ROUNDS = 10 };

static struct sockaddr_in address = {.sin_family = AF_INET};

static int serve(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    filch_stream bytes;
    ssize_t got;

    filch_stream_recv(&bytes, fd, 0);
    while ((got = filch_stream_next(f, &bytes, FILCH_NO_DEADLINE)) > 0)
        if (filch_send_all(f, fd, bytes.data, (size_t)got, 0) < 0)
            break;
    filch_stream_close(f, &bytes);
    filch_close(f, fd);
    return 0; /* the error of one client does not stop the server */
}

/* Serve `count` connections; 0: serve without end. */
static int accept_some(filch_frame *f, int listener, unsigned count)
{
    filch_stream incoming;
    filch_scope scope;
    int err = filch_scope_open(f, &scope, NULL, NULL), one = 1;

    if (err)
        return err;
    filch_stream_accept(&incoming, listener, 0);
    for (unsigned i = 0; !err && (count == 0 || i < count);) {
        int fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE);
        if (fd < 0) {
            /* An aborted connection does not stop the server. If descriptors or memory are
             * exhausted, wait until other connections return some. */
            err = fd == -ECANCELED ? fd : fd == -ECONNABORTED ? 0 : filch_sleep_ns(f, 10000000);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
            filch_close(f, fd); /* no memory for one more task */
        i++;
    }
    filch_stream_close(f, &incoming);
    int closed = filch_scope_close(f, &scope);
    return err ? err : closed;
}

static int serve_clients(filch_frame *f, void *arg)
{
    return accept_some(f, (int)(intptr_t)arg, CLIENTS);
}

static int ask(filch_frame *f, void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int err = filch_connect(f, fd, (struct sockaddr *)&address, sizeof address);
    uint64_t answer = 0;
    (void)arg;

    for (uint64_t i = 0; !err && i < ROUNDS; i++)
        if (filch_send_all(f, fd, &i, sizeof i, 0) < 0 ||
            filch_recv(f, fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer || answer != i)
            err = -1;
    filch_close(f, fd);
    return err;
}

static void run(filch_frame *f, void *arg)
{
    int listener = *(int *)arg, err;

    if (address.sin_port != 0) {
        err = accept_some(f, listener, 0);
        printf("accept: %s\n", filch_strerror(err));
        return;
    }
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr *)&address, &length);
    filch_scope scope;
    if (filch_scope_open(f, &scope, NULL, NULL)) {
        printf("no scope\n");
        return;
    }
    err = filch_scope_spawn(f, &scope, serve_clients, (void *)(intptr_t)listener);
    for (int i = 0; !err && i < CLIENTS; i++)
        err = filch_scope_spawn(f, &scope, ask, NULL);
    int closed = filch_scope_close(f, &scope);
    printf("%d clients, %d answers each: %s\n", CLIENTS, ROUNDS,
           err || closed ? "failed" : "all right");
}

int main(int argc, char **argv)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    filch_pool *pool;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) {
        perror("echo");
        return 1;
    }
    if (filch_pool_create(&pool, NULL))
        return 1;
    filch_run(pool, run, &listener);
    close(listener);
    return filch_pool_destroy(pool);
}
