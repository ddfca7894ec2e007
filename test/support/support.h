/* SPDX-License-Identifier: MIT */
/*
 * Helpers of tests with several threads: checks for any stack, counters, latches.
 *
 * cmocka's assertions jump out of the test, so only the test's own thread and stack may use them.
 * Tasks use CHECK, which ends the program.
 *
 * Edges
 *   opened       latch_open -> latch_wait   carries all writes before latch_open.
 */
#ifndef FILCH_TEST_SUPPORT_H
#define FILCH_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/futex.h"
#include "base/rng.h"

#include <filch/task.h>
#include <filch/trace.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN 1
#endif
#endif

/* The factor by which tests do less with sanitizers, chaos, emulators, or without optimisation. */
#if defined(TEST_TSAN) || defined(TEST_ASAN) || defined(FILCH_CHAOS) || !defined(__OPTIMIZE__) ||  \
    defined(__aarch64__)
#define TEST_SLOWNESS 10
#else
#define TEST_SLOWNESS 1
#endif

#define TEST_UNUSED __attribute__((unused))
#define TEST(name) static void name(void **state TEST_UNUSED)
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#ifdef TEST_TSAN
/* The child of a fork() may start threads, and does not report the threads of its parent as
 * leaks. */
const char *__tsan_default_options(void);
TEST_UNUSED const char *__tsan_default_options(void)
{
    return "die_after_fork=0:report_thread_leaks=0";
}
#endif

/* ---- from the environment -------------------------------------------------------------------- */

static TEST_UNUSED uint64_t test_seed(void)
{
    const char *text = getenv("FILCH_TEST_SEED");
    static uint64_t seed;

    if (seed == 0)
        seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
    return seed;
}

/* How long a stress test runs. */
static TEST_UNUSED double test_seconds(void)
{
    const char *text = getenv("FILCH_TEST_SECONDS");
    return text ? atof(text) : 2;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static TEST_UNUSED void check_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s (FILCH_TEST_SEED=%llu)\n", file, line, what,
            (unsigned long long)test_seed());
    abort();
}

/* For any thread and any stack. */
#define CHECK(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))

/* ---- counters and latches -------------------------------------------------------------------- */

typedef filch_atomic_u64 counter;

static TEST_UNUSED void counter_add(counter *c, uint64_t value)
{
    /* relaxed: read after a join, or as a hint. */
    filch_fetch_add_relaxed(c, value);
}

static TEST_UNUSED uint64_t counter_get(counter *c)
{
    /* relaxed: as above. */
    return filch_load_relaxed(c);
}

static TEST_UNUSED void counter_set(counter *c, uint64_t value)
{
    /* relaxed: as above. */
    filch_store_relaxed(c, value);
}

/* A latch is open after `count` calls of latch_open. */
typedef struct latch {
    filch_atomic_u32 left;
} latch;

static TEST_UNUSED void latch_init(latch *l, uint32_t count)
{
    /* relaxed: no other thread knows the latch yet. */
    filch_store_relaxed(&l->left, count);
}

static TEST_UNUSED void latch_open(latch *l)
{
    /* release [opened]. A waiting thread may free the latch after this. */
    if (filch_fetch_add_acq_rel(&l->left, -1u) == 1)
        filch_futex_wake(&l->left, INT_MAX);
}

static TEST_UNUSED bool latch_is_open(latch *l)
{
    /* acquire [opened] */
    return filch_load_acquire(&l->left) == 0;
}

/* Blocks the thread. */
static TEST_UNUSED void latch_wait(latch *l)
{
    uint32_t left;
    /* acquire [opened] */
    while ((left = filch_load_acquire(&l->left)) != 0)
        filch_futex_wait(&l->left, left, NULL);
}

/* Poll, and yield the core to the thread that is waited for. */
#define UNTIL(condition)                                                                           \
    while (!(condition))                                                                           \
    sched_yield()

/* Use the CPU for a while. The compiler cannot shorten the loop. */
static TEST_UNUSED void spin(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        __asm__ volatile("" ::"r"(i));
}

static TEST_UNUSED void open_pair(int pair[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
}

#endif
