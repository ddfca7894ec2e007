/* SPDX-License-Identifier: MIT */
/*
 * Chaos: any atomic operation may be delayed.
 *
 * A race needs a thread to stop between two operations that are nanoseconds apart. A stress test
 * waits until the scheduler stops a thread just there. In a build with FILCH_CHAOS, each operation
 * of filch/atomic.h and each futex call sometimes delays itself: it yields the core, spins, or
 * sleeps. Races that need two or three such delays at once then show up within seconds.
 *
 *     FILCH_CHAOS=64       delay one operation in 64, on average; 0: none
 *     FILCH_CHAOS_SEED=1   choose which ones [the time]
 *
 * The scheduler decides, too: different seeds make runs differ, but one seed does not repeat a run.
 */
#include "base/clock.h"
#include "base/rng.h"

#include <filch/atomic.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* One in KINDS delays is a sleep; about half of the others yield the core, the rest spin. */
#define KINDS 8
#define SPINS_MAX 2048
#define SLEEP_NS_MAX 100000

static uint32_t rate_of_environment(void)
{
    const char *text = getenv("FILCH_CHAOS");
    return text ? (uint32_t)strtoul(text, NULL, 0) : 64;
}

static uint64_t seed_of_environment(void)
{
    const char *text = getenv("FILCH_CHAOS_SEED");
    return text ? strtoull(text, NULL, 0) : filch_clock_ns();
}

/* Not inlined: during the call a strand may move to another thread, and a compiler would keep the
 * addresses of thread-local variables. For the same reason this must not touch errno. */
__attribute__((noinline)) void filch_chaos_delay(void)
{
    static _Thread_local filch_rng rng;
    static _Thread_local uint32_t rate;
    static _Thread_local bool is_seeded;

    if (!is_seeded) {
        is_seeded = true;
        rate = rate_of_environment();
        filch_rng_seed(&rng, seed_of_environment() * 1000003 + (uint64_t)gettid());
    }
    if (rate == 0 || filch_rng_below(&rng, rate) != 0)
        return;
    uint32_t kind = filch_rng_below(&rng, KINDS);
    if (kind == 0) {
        struct timespec pause = filch_timespec(filch_rng_below(&rng, SLEEP_NS_MAX));
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    } else if (kind % 2 == 0) {
        for (uint32_t i = filch_rng_below(&rng, SPINS_MAX); i > 0; i--)
            __asm__ volatile("" ::: "memory");
    } else {
        sched_yield();
    }
}
