/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-quiet <samples>: how long a quiet client waits beside a flooding one, on one worker.
 *
 * One task sends 64 KiB to itself and receives them, without end: its operations never have to
 * wait. A second task echoes. A plain thread sends a byte to the second task, waits for the echo,
 * and sleeps for a millisecond. The time until the echo is a sample.
 *
 * Prints RESULT way=<uring|epoll|threads> samples=<n> median_us=<n> p99_us=<n> max_us=<n>.
 */
#include <filch/filch.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENT, SERVER };

static int flood[2], quiet[2];
static unsigned sample_count;
static double *samples_us;
static filch_atomic_u32 is_over;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *ask(void *arg)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    char byte = 'x';
    (void)arg;

    for (unsigned i = 0; i < sample_count; i++) {
        nanosleep(&millisecond, NULL);
        double since_us = now_us();
        if (send(quiet[CLIENT], &byte, 1, 0) != 1 || recv(quiet[CLIENT], &byte, 1, 0) != 1)
            abort();
        samples_us[i] = now_us() - since_us;
    }
    shutdown(quiet[CLIENT], SHUT_WR);
    filch_store_release(&is_over, 1);
    return NULL;
}

static int serve(filch_frame *f, void *arg)
{
    char byte;
    (void)arg;

    while (filch_recv(f, quiet[SERVER], &byte, 1, 0) == 1)
        if (filch_send(f, quiet[SERVER], &byte, 1, 0) != 1)
            abort();
    return 0;
}

static int be_busy(filch_frame *f, void *arg)
{
    static char bytes[65536];
    (void)arg;

    while (!filch_load_acquire(&is_over))
        if (filch_send(f, flood[CLIENT], bytes, sizeof bytes, 0) != sizeof bytes ||
            filch_recv(f, flood[SERVER], bytes, sizeof bytes, MSG_DONTWAIT) != sizeof bytes)
            abort();
    return 0;
}

static void run(filch_frame *f, void *arg)
{
    filch_scope scope;
    (void)arg;

    if (filch_scope_open(f, &scope, NULL, NULL) || filch_scope_spawn(f, &scope, serve, NULL) ||
        filch_scope_spawn(f, &scope, be_busy, NULL))
        abort();
    filch_scope_close(f, &scope);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options, .workers = 1};
    filch_pool *pool;
    pthread_t client;

    sample_count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    samples_us = calloc(sample_count, sizeof *samples_us);
    if (!samples_us || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, flood) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, quiet) ||
        filch_pool_create(&pool, &options) || filch_submit(pool, run, NULL) ||
        pthread_create(&client, NULL, ask, NULL))
        return 1;
    pthread_join(client, NULL);
    const char *way = filch_pool_io(pool);
    filch_pool_wait(pool);
    qsort(samples_us, sample_count, sizeof *samples_us, compare);
    printf("RESULT way=%s samples=%u median_us=%.1f p99_us=%.1f max_us=%.1f\n", way, sample_count,
           samples_us[sample_count / 2], samples_us[sample_count * 99 / 100],
           samples_us[sample_count - 1]);
    free(samples_us);
    return filch_pool_destroy(pool);
}
