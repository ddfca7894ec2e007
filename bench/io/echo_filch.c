/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-echo <workers>: an echo server on filch/io.h. Says PORT and a number, and serves until it is ended.
 */
#include "server.h"

#include <filch/filch.h>

static int serve(filch_slot *f, void *arg)
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

static void run(filch_slot *f, void *arg)
{
    int listener = *(int *)arg, fd;
    filch_scope scope;

    if (filch_scope_open(&scope, f, NULL, NULL))
        return;
    while ((fd = filch_accept(f, listener, NULL, NULL, 0)) >= 0) {
        send_at_once(fd);
        if (filch_spawn(f, &scope, serve, (void *)(intptr_t)fd))
            break;
    }
    filch_scope_close(f, &scope);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options, .stack_bytes = 64 << 10,
                             .workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};
    filch_pool *pool;
    int listener = listen_and_say(0);

    if (filch_pool_create(&pool, &options) || filch_submit(pool, run, &listener))
        return 1;
    return filch_pool_destroy(pool);
}
