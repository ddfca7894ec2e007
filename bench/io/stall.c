/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-stall <samples>: the delay from the completion of an operation until its task
 * resumes. Meanwhile the worker that started the operation computes, and another worker is idle.
 *
 * One task waits for a byte, then another task computes for 15 ms. If both are on the same thread,
 * that thread does not poll its ring or epoll meanwhile. Then a plain thread sends the byte in the
 * middle of the computation. The time until the first task resumes is a sample.
 *
 * Prints RESULT way=<uring|epoll|threads> samples=<n> median_us=<n> p90_us=<n> max_us=<n>.
 */
#include <filch/filch.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAMPLES_MAX = 10000, COMPUTE_NS = 15000000, BEFORE_NS = 3000000 };

static int pair[2];
static unsigned wanted, sample_count;
static double samples_us[SAMPLES_MAX];
static _Atomic uint64_t sent_ns;
static _Atomic pthread_t reader, computer;
static _Atomic bool has_computer;
static sem_t begun;

static int receive(filch_frame *f, void *arg)
{
    char byte;
    (void)arg;

    reader = pthread_self();
    has_computer = false;
    if (filch_recv(f, pair[0], &byte, 1, 0) != 1)
        return -EIO;
    double us = (double)(filch_now_ns() - sent_ns) / 1e3;
    if (has_computer && pthread_equal(reader, computer))
        samples_us[sample_count++] = us;
    return 0;
}

static int compute(filch_frame *f, void *arg)
{
    (void)f;
    (void)arg;
    computer = pthread_self();
    has_computer = true;
    sem_post(&begun);
    for (uint64_t start_ns = filch_now_ns(); filch_now_ns() - start_ns < COMPUTE_NS;)
        ;
    return 0;
}

static void *send_bytes(void *arg)
{
    const struct timespec before = {.tv_nsec = BEFORE_NS};
    (void)arg;

    for (;;) {
        while (sem_wait(&begun))
            ;
        nanosleep(&before, NULL);
        sent_ns = filch_now_ns();
        if (send(pair[1], "x", 1, MSG_NOSIGNAL) != 1)
            return NULL;
    }
}

static void run(filch_frame *f, void *arg)
{
    (void)arg;
    for (unsigned tries = 0; sample_count < wanted && tries < 100 * wanted; tries++) {
        filch_scope scope;
        if (filch_scope_open(f, &scope, NULL, NULL))
            exit(1);
        filch_scope_spawn(f, &scope, receive, NULL);
        filch_yield(f);
        filch_scope_spawn(f, &scope, compute, NULL);
        if (filch_scope_close(f, &scope))
            exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;
    pthread_t sender;

    wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
    if (wanted == 0 || wanted > SAMPLES_MAX) {
        fprintf(stderr, "usage: filch-bench-stall <samples>\n");
        return 2;
    }
    sem_init(&begun, 0, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
        pthread_create(&sender, NULL, send_bytes, NULL) || filch_pool_create(&pool, &options))
        return 1;
    filch_run(pool, run, NULL);
    const char *way = filch_pool_io(pool);
    if (sample_count == 0)
        return 1;
    qsort(samples_us, sample_count, sizeof samples_us[0], compare);
    printf("RESULT way=%s samples=%u median_us=%.0f p90_us=%.0f max_us=%.0f\n", way, sample_count,
           samples_us[sample_count / 2], samples_us[sample_count * 9 / 10],
           samples_us[sample_count - 1]);
    filch_pool_destroy(pool);
    close(pair[0]);
    sem_post(&begun);
    pthread_join(sender, NULL);
    return 0;
}
