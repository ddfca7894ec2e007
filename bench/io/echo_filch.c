/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-echo <workers> [recv]: an echo server on filch/stream.h, or with `recv` on the calls
 * of filch/io.h. Prints PORT and a number, and serves until it is killed.
 */
#include "server.h"

#include <filch/filch.h>
#include <string.h>

static filch_task_fn *serve;

static int serve_stream(filch_frame *f, void *arg)
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
    return 0;
}

static int serve_recv(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[MESSAGE_MAX];
    ssize_t got;

    while ((got = filch_recv(f, fd, buffer, sizeof buffer, 0)) > 0)
        if (filch_send_all(f, fd, buffer, (size_t)got, 0) < 0)
            break;
    filch_close(f, fd);
    return 0;
}

static void run(filch_frame *f, void *arg)
{
    int listener = *(int *)arg, fd;
    filch_stream incoming;
    filch_scope scope;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    filch_stream_accept(&incoming, listener, 0);
    while ((fd = (int)filch_stream_next(f, &incoming, FILCH_NO_DEADLINE)) >= 0) {
        send_at_once(fd);
        if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
            break;
    }
    filch_stream_close(f, &incoming);
    filch_scope_close(f, &scope);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options,
                             .stack_bytes = 64 << 10,
                             .workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};
    filch_pool *pool;
    serve = argc > 2 && strcmp(argv[2], "recv") == 0 ? serve_recv : serve_stream;
    int listener = listen_and_say(0);

    if (filch_pool_create(&pool, &options) || filch_submit(pool, run, &listener))
        return 1;
    return filch_pool_destroy(pool);
}
