/* SPDX-License-Identifier: MIT */
/*
 * Measures how long a steal takes: a clock that costs less than a steal, and a histogram.
 *
 * The clock is the counter of the core, in ticks. Fences keep the steal between its two readings.
 * The cost of two empty readings is subtracted. On some machines the counter advances only every
 * 10 ns: then single steals have that resolution, and only means are finer.
 *
 * The histogram has 64 buckets per power of two, so a bucket is 1.6 % wide. It counts sixteenths
 * of ticks, because means of many steals are finer than a tick.
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <stdint.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "filch runs on x86_64 and aarch64"
#endif

enum {
    LATENCY_UNITS = 16, /* per tick */
    LATENCY_SUB_BITS = 6,
    LATENCY_BUCKETS = (64 - LATENCY_SUB_BITS + 1) << LATENCY_SUB_BITS,
};

typedef struct bench_latency {
    uint64_t count;
    uint64_t sum; /* like `max`, in sixteenths of ticks */
    uint64_t max;
    uint64_t buckets[LATENCY_BUCKETS];
} bench_latency;

/* ---- while something is measured ------------------------------------------------------------- */

static inline uint64_t latency_ticks(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
#else
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks)::"memory");
#endif
    return ticks;
}

static inline uint64_t latency_bucket(uint64_t units)
{
    if (units < 2u << LATENCY_SUB_BITS)
        return units;
    uint64_t shift = 63 - LATENCY_SUB_BITS - (uint64_t)__builtin_clzll(units);
    return (shift << LATENCY_SUB_BITS) + (units >> shift);
}

/* The cost of two readings of the clock; set by latency_calibrate. */
extern uint64_t latency_overhead_ticks;

/* Add one sample: `count` steals took `ticks` in total. */
static inline void latency_add(bench_latency *latency, uint64_t ticks, uint64_t count)
{
    uint64_t net = ticks > latency_overhead_ticks ? ticks - latency_overhead_ticks : 0;
    uint64_t units = net * LATENCY_UNITS / count;

    latency->count++;
    latency->sum += units;
    latency->max = units > latency->max ? units : latency->max;
    latency->buckets[latency_bucket(units)]++;
}

/* ---- before and after ------------------------------------------------------------------------ */

/* Compare the counter with the system clock for 20 ms. Call this before the functions below. */
void latency_calibrate(void);

uint64_t latency_ns_to_ticks(uint64_t ns);

void latency_merge(bench_latency *into, const bench_latency *from);

/* In nanoseconds; 0 when nothing was measured. */
double latency_mean_ns(const bench_latency *latency);
double latency_max_ns(const bench_latency *latency);
double latency_percentile_ns(const bench_latency *latency, double percent);

/* The lower end of a bucket. */
double latency_bucket_ns(uint64_t bucket);

#endif
