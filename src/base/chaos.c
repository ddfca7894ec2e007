/* SPDX-License-Identifier: MIT */
/*
 * Chaos: any atomic operation may be late.
 *
 * A race needs a thread to stand still between two operations that are nanoseconds apart. Stress waits for the scheduler to stop it just there. In a build with
 * FILCH_CHAOS each operation of filch/atomic.h, and each call of a futex, does so by itself once in a while: it gives up the core, spins, or sleeps. What needs
 * two or three such delays at once then happens within seconds.
 *
 *     FILCH_CHAOS=64       one operation in so many is late, on average; 0: none
 *     FILCH_CHAOS_SEED=1   which ones [the time]
 *
 * The scheduler has its say, too: a seed makes runs differ, and not the same again.
 */
#include "base/clock.h"
#include "base/rng.h"

#include <filch/atomic.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* One of this many delays is a sleep, and half of the rest give up the core. */
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

/* Not inlined: a strand may go on in another thread after it, and a compiler would keep the address of what is thread-local. Touches no errno, for the same
 * reason. */
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
