/* SPDX-License-Identifier: MIT */
/* The tables: one per setting, one line per queue. */
#include "results.h"

#include "../driver/driver.h"

#include <filch/deque.h>
#include <inttypes.h>
#include <stdio.h>

void setting_print(const bench_setting *setting)
{
    if (setting->is_in_turns)
        fputs("1 stealer empties a full queue, the worker waits", stdout);
    else if (setting->stealer_count == 0)
        fputs("no stealers", stdout);
    else
        printf("%d stealer%s", setting->stealer_count, setting->stealer_count == 1 ? "" : "s");
    if (setting->stealer_count > 0 && !setting->is_in_turns) {
        if (setting->steals_per_s == 0)
            fputs(" as fast as possible", stdout);
        else
            printf(" at %" PRIu64 " steals/s", setting->steals_per_s);
    }
    printf("; %d-byte entries, capacity %zu, blocks %zux%zu", setting->payload, setting->capacity,
           setting->block_count, setting->block_size);
}

static void print_header(const bench_setting *setting)
{
    if (setting->is_in_turns) {
        printf("  %-10s %9s %9s %9s %9s\n", "ns/steal", "p10", "p50", "p90", "p99");
        return;
    }
    printf("  %-10s %27s %8s %9s %9s %7s", "M ops/s", "total (min - max)", "worker", "stealers",
           "ns/op", "CPU");
    if (setting->stealer_count > 0)
        printf("  %8s %7s %7s %7s %8s %9s  %6s %6s %6s", "ns/steal", "p10", "p50", "p90", "p99",
               "max", "stolen", "empty", "lost");
    putchar('\n');
}

static void print_in_turns(const bench_queue *queue, const deque_cell *cell)
{
    const bench_latency *latency = &cell->latency;

    printf("  %-10s %9.2f %9.2f %9.2f %9.2f\n", queue->name, latency_percentile_ns(latency, 10),
           latency_percentile_ns(latency, 50), latency_percentile_ns(latency, 90),
           latency_percentile_ns(latency, 99));
}

static void print_steals(const deque_cell *cell)
{
    const bench_latency *latency = &cell->latency;

    printf("  %8.0f %7.0f %7.0f %7.0f %8.0f %9.0f", latency_mean_ns(latency),
           latency_percentile_ns(latency, 10), latency_percentile_ns(latency, 50),
           latency_percentile_ns(latency, 90), latency_percentile_ns(latency, 99),
           latency_max_ns(latency));
    printf("  %4.1f %% %4.1f %% %4.1f %%", outcome_percent(cell, FILCH_STEAL_WON),
           outcome_percent(cell, FILCH_STEAL_EMPTY), outcome_percent(cell, FILCH_STEAL_LOST));
}

static void print_line(const bench_setting *setting, const bench_queue *queue,
                       const deque_cell *cell)
{
    bench_spread total = spread_of(cell->rates[RATE_TOTAL], cell->run_count);
    bench_spread worker = spread_of(cell->rates[RATE_WORKER], cell->run_count);
    bench_spread stealers = spread_of(cell->rates[RATE_STEALERS], cell->run_count);
    bench_spread worker_ns = spread_of(cell->worker_ns, cell->run_count);

    printf("  %-10s %7.1f (%7.1f - %7.1f) %8.1f %9.3f %9.2f %5.0f %%", queue->name,
           total.median / 1e6, total.min / 1e6, total.max / 1e6, worker.median / 1e6,
           stealers.median / 1e6, worker_ns.min,
           100 * (double)cell->cpu_ns / (double)cell->wall_ns);
    if (setting->stealer_count > 0)
        print_steals(cell);
    putchar('\n');
}

void deque_report_print(const deque_comparison *comparison)
{
    machine_print();
    printf("%d round%s, all queues in turn within a round. M ops/s are medians over the rounds.\n",
           comparison->rounds, comparison->rounds == 1 ? "" : "s");
    puts(
        "ns/op: CPU time of the worker per push or pop, the least. CPU: the share of time it ran.\n"
        "ns/steal, and percentiles: of all steals that got something.");
    if (comparison->others_share > 0.05)
        printf("Others used %.0f %% of the cores meanwhile.\n", 100 * comparison->others_share);
    for (int s = 0; s < comparison->setting_count; s++) {
        const bench_setting *setting = &comparison->settings[s];
        putchar('\n');
        setting_print(setting);
        putchar('\n');
        if (setting->stealer_count + 1 > core_count())
            printf("  %d threads on %d cores: each runs a part of the time\n",
                   setting->stealer_count + 1, core_count());
        print_header(setting);
        for (int q = 0; q < queue_count; q++) {
            const deque_cell *cell = deque_cell_at(comparison, s, q);
            if (cell->run_count == 0)
                continue;
            if (setting->is_in_turns)
                print_in_turns(&queues[q], cell);
            else
                print_line(setting, &queues[q], cell);
        }
    }
}
