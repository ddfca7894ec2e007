/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-mixed <workers> [<slow at once>]: a server of unequal requests on filch/io.h, one
 * task per connection. Prints PORT and a number, and serves until it is killed.
 *
 * <slow at once> limits the slow requests that compute at a time. Further slow requests wait as
 * tasks, so the other workers stay free for fast requests. Without it, slow requests are not
 * limited.
 */
#include "mixed.h"

#include <filch/filch.h>

static filch_sem slow;

static int serve(filch_frame *f, void *arg)
{
    int fd = (int)(intptr_t)arg, got_one = 0;
    mixed_input in = {0};
    mixed_request request;
    char answer[ANSWER_MAX];
    ssize_t got = 1;

    while (got > 0 && got_one >= 0) {
        while ((got_one = mixed_take(&in, &request)) > 0) {
            if (request.is_slow) {
                filch_sem_acquire(f, &slow);
                mixed_compute();
                filch_sem_release(&slow, 1);
            }
            if (filch_send_all(f, fd, answer, mixed_answer(&request, answer), 0) < 0)
                got_one = -1;
        }
        if (got_one == 0) {
            got = filch_recv(f, fd, in.text + in.bytes, HEAD_MAX - in.bytes, 0);
            in.bytes += got > 0 ? (size_t)got : 0;
        }
    }
    filch_close(f, fd);
    return 0;
}

static void run(filch_frame *f, void *arg)
{
    int listener = *(int *)arg, fd;
    filch_scope scope;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    while ((fd = filch_accept(f, listener, NULL, NULL, 0)) >= 0) {
        send_at_once(fd);
        if (filch_scope_spawn(f, &scope, serve, (void *)(intptr_t)fd))
            break;
    }
    filch_scope_close(f, &scope);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options,
                             .stack_bytes = 64 << 10,
                             .workers = argc > 1 ? (unsigned)atoi(argv[1]) : 1};
    filch_pool *pool;
    int listener = listen_and_say(0);

    filch_sem_init(&slow, argc > 2 ? (uint32_t)atoi(argv[2]) : FILCH_SEM_MAX);
    if (filch_pool_create(&pool, &options) || filch_submit(pool, run, &listener))
        return 1;
    return filch_pool_destroy(pool);
}
