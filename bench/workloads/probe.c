/* SPDX-License-Identifier: MIT */
/*
 * Edges
 *   started  probe_wake_started: has_started release -> take_sample: has_started acquire
 *            carries started_ns.
 *   bell     ring: bell release -> bare_thread: bell acquire
 *            carries the reset of has_started, and bare_stops.
 */
#include "probe.h"

#include <errno.h>
#include <filch/atomic.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GAP_NS = 1000 * 1000, START_LIMIT_S = 1 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t probe_clock_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static void sleep_ns(uint64_t duration_ns)
{
    struct timespec left = {
        .tv_sec = (time_t)(duration_ns / 1000000000),
        .tv_nsec = (long)(duration_ns % 1000000000),
    };
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}

/* The kernel updates the CPU time of a thread on another CPU only when it stops or the clock ticks.
 * Wait until all earlier work is accounted for. */
enum { SETTLE_NS = 20 * 1000 * 1000 };

uint64_t probe_idle(long duration_ms)
{
    sleep_ns(SETTLE_NS);
    uint64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    sleep_ns((uint64_t)duration_ms * 1000000);
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
}

/* Static: a task that starts after the time limit still writes here. */
static uint64_t started_ns;
static filch_atomic_u32 has_started;
static filch_atomic_u32 bell;
static FILCH_ATOMIC(bool) bare_stops;

static void futex_wait(filch_atomic_u32 *word, uint32_t seen, const struct timespec *limit)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0);
}

static void futex_wake(filch_atomic_u32 *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void probe_wake_started(void)
{
    started_ns = probe_clock_ns();
    /* release [started] */
    filch_store_release(&has_started, 1);
    futex_wake(&has_started);
}

/* The least that a wake-up can cost: one thread, one word, one system call. */
static void *bare_thread(void *unused)
{
    uint32_t seen = 0;
    (void)unused;
    for (;;) {
        uint32_t now;
        /* acquire [bell] */
        while ((now = filch_load_acquire(&bell)) == seen)
            futex_wait(&bell, seen, NULL);
        seen = now;
        probe_wake_started();
        /* relaxed: ordered by the acquire above. */
        if (filch_load_relaxed(&bare_stops))
            return NULL;
    }
}

static void ring(void *unused)
{
    (void)unused;
    /* release [bell] */
    filch_fetch_add_release(&bell, 1);
    futex_wake(&bell);
}

static int take_sample(probe_submit_fn *submit, void *context, uint64_t *latency_ns)
{
    const struct timespec limit = {.tv_sec = START_LIMIT_S};

    sleep_ns(GAP_NS);
    /* relaxed: the submit below orders it before the task. */
    filch_store_relaxed(&has_started, 0);

    uint64_t start_ns = probe_clock_ns();
    submit(context);
    /* acquire [started] */
    while (!filch_load_acquire(&has_started)) {
        if (probe_clock_ns() - start_ns > START_LIMIT_S * UINT64_C(1000000000))
            return -ETIMEDOUT;
        futex_wait(&has_started, 0, &limit);
    }
    *latency_ns = started_ns - start_ns;
    return 0;
}

static int compare_ns(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static uint64_t percentile(const uint64_t *sorted, long count, long percent)
{
    long index = count * percent / 100;
    return sorted[index < count ? index : count - 1];
}

int probe_wake(long sample_count, probe_submit_fn *submit, void *context,
               probe_wake_figures *figures)
{
    uint64_t *pool = calloc((size_t)sample_count, sizeof *pool);
    uint64_t *bare = calloc((size_t)sample_count, sizeof *bare);
    pthread_t thread;
    int err = -ENOMEM;

    if (!pool || !bare)
        goto free_samples;
    err = -pthread_create(&thread, NULL, bare_thread, NULL);
    if (err)
        goto free_samples;

    for (long i = 0; i < sample_count; i++) {
        err = take_sample(submit, context, &pool[i]);
        if (err)
            goto stop_thread;
        err = take_sample(ring, NULL, &bare[i]);
        if (err)
            goto stop_thread;
    }
    qsort(pool, (size_t)sample_count, sizeof *pool, compare_ns);
    qsort(bare, (size_t)sample_count, sizeof *bare, compare_ns);
    figures->median_ns = percentile(pool, sample_count, 50);
    figures->p99_ns = percentile(pool, sample_count, 99);
    figures->bare_median_ns = percentile(bare, sample_count, 50);
    figures->bare_p99_ns = percentile(bare, sample_count, 99);

stop_thread:
    /* relaxed: the release of the bell orders it. */
    filch_store_relaxed(&bare_stops, true);
    ring(NULL);
    pthread_join(thread, NULL);
free_samples:
    free(bare);
    free(pool);
    return err;
}
