/* SPDX-License-Identifier: MIT */
/* Blocking calls run on threads of their own, so the workers stay free for other tasks. */
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */

#include <filch/filch.h>
#include <pthread.h>
#include <stdio.h>

enum { CALLS = 8 };

/*
 * A library that knows nothing of tasks: no caller returns before all callers have arrived.
 * If the callers were workers, and fewer than the barrier counts, they would block forever.
 */
static pthread_barrier_t all_are_here;

static int meet(void *arg)
{
    (void)arg;
    return pthread_barrier_wait(&all_are_here) == PTHREAD_BARRIER_SERIAL_THREAD;
}

static int call(filch_frame *f, void *serial_count)
{
    int is_serial = filch_blocking(f, FILCH_LANE_ANY, meet, NULL);

    if (is_serial > 0)
        ++*(int *)serial_count;
    return is_serial < 0 ? is_serial : 0;
}

static void run(filch_frame *f, void *arg)
{
    int serial_count = 0;
    filch_scope scope;
    (void)arg;

    filch_scope_open(f, &scope, NULL, NULL);
    for (int i = 0; i < CALLS; i++)
        filch_scope_spawn(f, &scope, call, &serial_count);
    int err = filch_scope_close(f, &scope);
    printf("%d calls met, %d of them was the last: %s\n", CALLS, serial_count, filch_strerror(err));
}

int main(void)
{
    const filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;

    if (pthread_barrier_init(&all_are_here, NULL, CALLS) || filch_pool_create(&pool, &options))
        return 1;
    filch_run(pool, run, NULL);
    pthread_barrier_destroy(&all_are_here);
    return filch_pool_destroy(pool);
}
