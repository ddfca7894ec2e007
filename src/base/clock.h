/* SPDX-License-Identifier: MIT */
/*
 * Two clocks:
 *   - nanoseconds, comparable between threads and with timeouts;
 *   - ticks of the core's counter, a few times cheaper, to bound a spin or to stamp an event.
 *
 * The scale of the ticks is not stored here: a caller that needs it measures it once and keeps it.
 */
#ifndef FILCH_BASE_CLOCK_H
#define FILCH_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t filch_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A time in the form the kernel takes. */
static inline struct timespec filch_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* Not ordered with the instructions around it: accurate to some tens of nanoseconds. */
static inline uint64_t filch_clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
#error "filch runs on x86-64 and aarch64"
#endif
}

typedef struct filch_clock_moment {
    uint64_t ns;
    uint64_t ticks;
} filch_clock_moment;

/* Read both clocks at one moment. Takes the tightest of a few tries, because an interrupt between
 * the two reads can take longer than a whole calibration. */
static inline filch_clock_moment filch_clock_both(void)
{
    filch_clock_moment moment = {0, 0};
    uint64_t tightest = UINT64_MAX;

    for (int tries = 0; tries < 5; tries++) {
        uint64_t before = filch_clock_ticks();
        uint64_t ns = filch_clock_ns();
        uint64_t width = filch_clock_ticks() - before;
        if (width < tightest) {
            tightest = width;
            moment = (filch_clock_moment){ns, before + width / 2};
        }
    }
    return moment;
}

/* The scale of the ticks. On aarch64 it is exact and free. On x86-64 it is a measurement that takes
 * 50 us and is accurate to about 0.1 %. */
static inline double filch_clock_ticks_per_us(void)
{
#if defined(__aarch64__)
    uint64_t ticks_per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(ticks_per_second));
    return (double)ticks_per_second / 1e6;
#else
    filch_clock_moment start = filch_clock_both(), end;
    do
        end = filch_clock_both();
    while (end.ns - start.ns < 50000);
    return (double)(end.ticks - start.ticks) * 1000.0 / (double)(end.ns - start.ns);
#endif
}

/* About `ns` nanoseconds in ticks, without a measurement. On x86-64 this assumes a counter of 2.5
 * GHz, which is right within a factor of two on the machines of a decade. */
static inline uint64_t filch_clock_ticks_in(uint64_t ns)
{
#if defined(__aarch64__)
    uint64_t ticks_per_second;
    __asm__("mrs %0, cntfrq_el0" : "=r"(ticks_per_second));
    return ns * (ticks_per_second / 1000000) / 1000 + 1;
#else
    return ns * 5 / 2;
#endif
}

#endif
