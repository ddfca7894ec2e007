/* SPDX-License-Identifier: MIT */
#include "latency.h"

#include "../workloads/probe.h"

enum { CALIBRATE_NS = 20 * 1000 * 1000, OVERHEAD_SAMPLES = 1000 };

uint64_t latency_overhead_ticks;
static double ticks_per_ns;

void latency_calibrate(void)
{
    uint64_t start_ns = probe_clock_ns(), start = latency_ticks(), now_ns, now;

    do {
        now_ns = probe_clock_ns();
        now = latency_ticks();
    } while (now_ns - start_ns < CALIBRATE_NS);
    ticks_per_ns = (double)(now - start) / (double)(now_ns - start_ns);

    /* Keep the minimum, so that latency_add never subtracts too much. */
    latency_overhead_ticks = UINT64_MAX;
    for (int i = 0; i < OVERHEAD_SAMPLES; i++) {
        uint64_t before = latency_ticks(), ticks = latency_ticks() - before;
        if (ticks < latency_overhead_ticks)
            latency_overhead_ticks = ticks;
    }
}

uint64_t latency_ns_to_ticks(uint64_t ns)
{
    return (uint64_t)((double)ns * ticks_per_ns);
}

static double units_to_ns(double units)
{
    return units / LATENCY_UNITS / ticks_per_ns;
}

void latency_merge(bench_latency *into, const bench_latency *from)
{
    into->count += from->count;
    into->sum += from->sum;
    into->max = from->max > into->max ? from->max : into->max;
    for (int i = 0; i < LATENCY_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

double latency_mean_ns(const bench_latency *latency)
{
    return latency->count ? units_to_ns((double)latency->sum / (double)latency->count) : 0;
}

double latency_max_ns(const bench_latency *latency)
{
    return units_to_ns((double)latency->max);
}

double latency_bucket_ns(uint64_t bucket)
{
    uint64_t shift = bucket >> LATENCY_SUB_BITS;

    shift -= shift > 0;
    return units_to_ns((double)((bucket - (shift << LATENCY_SUB_BITS)) << shift));
}

double latency_percentile_ns(const bench_latency *latency, double percent)
{
    double wanted = (double)latency->count * percent / 100;
    double seen = 0;

    if (latency->count == 0)
        return 0;
    for (uint64_t i = 0; i + 1 < LATENCY_BUCKETS; i++) {
        seen += (double)latency->buckets[i];
        if (latency->buckets[i] > 0 && seen >= wanted) {
            double middle = (latency_bucket_ns(i) + latency_bucket_ns(i + 1)) / 2;
            return middle < latency_max_ns(latency) ? middle : latency_max_ns(latency);
        }
    }
    return latency_max_ns(latency);
}
