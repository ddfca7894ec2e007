/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-idle <name> <workers>: a server with mostly idle connections. One task per connection
 * waits in filch_recv. Prints READY, and serves the abstract Unix address <name> until it is
 * killed.
 *
 * The server greets each connection, so the client knows that the task runs. Then it echoes every
 * byte.
 */
#include <filch/filch.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>

static int serve(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg;
    char bytes[16] = "!";
    ssize_t got = 1;

    while (got > 0 && filch_send_all(f, fd, bytes, (size_t)got, 0) >= 0)
        got = filch_recv(f, fd, bytes, sizeof bytes, 0);
    filch_close(f, fd);
    return 0;
}

static void run(filch_frame *f, void *arg)
{
    int listener = *(int *)arg, fd;
    filch_scope scope;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    while ((fd = filch_accept(f, listener, NULL, NULL, 0)) >= 0)
        if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
            break;
    filch_scope_close(f, &scope);
}

int main(int argc, char **argv)
{
    /* These tasks need no larger stack. It limits address space; memory is used only when touched.
     * */
    filch_options options = {.size = sizeof options,
                             .stack_bytes = 16 << 10,
                             .workers = argc > 2 ? (unsigned)atoi(argv[2]) : 1};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    filch_pool *pool;

    if (argc < 2)
        return 2;
    int name_bytes = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", argv[1]);
    if (bind(listener, (struct sockaddr *)&address,
             (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)name_bytes) ||
        listen(listener, 4096) || filch_pool_create(&pool, &options) ||
        filch_submit(pool, run, &listener)) {
        perror("filch-bench-idle");
        return 1;
    }
    puts("READY");
    fflush(stdout);
    return filch_pool_destroy(pool);
}
