/* SPDX-License-Identifier: MIT */
/*
 * The published figures, as ratios between queues of one run, and whether this run reaches them.
 *
 * Paper: Wang and others, "BWoS", 2023.
 * Thesis: a comparison of ABP, Chase-Lev, BWoS and a locked queue on 8 cores. It reports by how
 * much the others are behind BWoS LIFO in total throughput: ABP 24 %, Chase-Lev 38 %, locked 95 %.
 *
 * Without stealers, the fastest round counts, in CPU time: disturbances only slow the worker down.
 * With stealers, the median counts: a stealer that loses its core makes the worker faster.
 */
#include "results.h"

#include "../driver/driver.h"

#include <stdio.h>
#include <string.h>

enum { ALONE, ONE_STEALER, FIVE_STEALERS, FIVE_LARGE, IN_TURNS, FIGURE_SETTINGS };
enum { THESIS_THREADS = 6 };

static const bench_setting figure_settings[FIGURE_SETTINGS] = {
    [ALONE] = {.payload = 4, .block_count = 16, .block_size = 64},
    [ONE_STEALER] = {.stealer_count = 1, .payload = 4, .block_count = 16, .block_size = 64},
    [FIVE_STEALERS] = {.stealer_count = 5, .payload = 4, .block_count = 16, .block_size = 64},
    [FIVE_LARGE] = {.stealer_count = 5, .payload = 8, .block_count = 4, .block_size = 256},
    [IN_TURNS] = {.stealer_count = 1,
                  .payload = 4,
                  .block_count = 16,
                  .block_size = 64,
                  .is_in_turns = true},
};

void figures_set(deque_comparison *comparison, uint64_t duration_ms)
{
    comparison->has_figures = true;
    comparison->setting_count = FIGURE_SETTINGS;
    for (int i = 0; i < FIGURE_SETTINGS; i++) {
        bench_setting *setting = &comparison->settings[i];
        *setting = figure_settings[i];
        setting->steals_per_s = 1000 * 1000;
        setting->capacity = 1024;
        setting->duration_ms = duration_ms;
    }
}

/* ---- which figures were reached -------------------------------------------------------------- */

typedef struct bench_figure {
    int setting;
    const char *queue, *base;
    double limit; /* minimum; for steal times the maximum; 0: no aim */
    const char *published;
} bench_figure;

static const bench_figure figures[] = {
    {ALONE, "bwos_lifo", "stack", 0.80, "paper: close to 1"},
    {ALONE, "chaselev", "stack", 0, "paper: 0.19 - 0.25"},
    {ALONE, "abp", "stack", 0, "paper: 0.19 - 0.25"},
    {ALONE, "bwos_fifo", "ring", 0, "paper: close to 1"},
    {FIVE_STEALERS, "bwos_lifo", "abp", 1.32, "thesis: 1.32"},
    {FIVE_STEALERS, "bwos_lifo", "chaselev", 1.63, "thesis: 1.63"},
    {FIVE_STEALERS, "bwos_lifo", "locked", 21, "thesis: 21"},
    {FIVE_LARGE, "bwos_lifo", "abp", 2.0, "thesis: 2.0"},
    {IN_TURNS, "chaselev", "abp", 1.3, "thesis: clearly more"},
    {IN_TURNS, "bwos_lifo", "abp", 1.3, "thesis: clearly more"},
    {IN_TURNS, "bwos_fifo", "abp", 1.3, NULL},
    {ONE_STEALER, "chaselev", "abp", 0, NULL},
    {ONE_STEALER, "bwos_lifo", "abp", 0, NULL},
    {FIVE_STEALERS, "bwos_fifo", "abp", 0, NULL},
};

static const deque_cell *cell_of(const deque_comparison *comparison, int setting, const char *name)
{
    for (int q = 0; q < queue_count; q++)
        if (strcmp(queues[q].name, name) == 0)
            return deque_cell_at(comparison, setting, q);
    return NULL;
}

static double value_of(const deque_cell *cell, int setting, bool is_in_cpu_time)
{
    if (setting == IN_TURNS)
        return latency_percentile_ns(&cell->latency, 50);
    bench_rate rate = is_in_cpu_time || setting == ALONE ? RATE_TOTAL_CPU : RATE_TOTAL;
    bench_spread spread = spread_of(cell->rates[rate], cell->run_count);
    return setting == ALONE ? spread.max : spread.median;
}

typedef struct bench_aims {
    int count, reached;
} bench_aims;

static void print_figure(const deque_comparison *comparison, const bench_figure *figure,
                         bench_aims *aims)
{
    const deque_cell *cell = cell_of(comparison, figure->setting, figure->queue);
    const deque_cell *base = cell_of(comparison, figure->setting, figure->base);
    bool is_time = figure->setting == IN_TURNS;

    if (cell->run_count == 0 || base->run_count == 0)
        return;
    double ratio = value_of(cell, figure->setting, false) / value_of(base, figure->setting, false);
    bool is_reached = is_time ? ratio <= figure->limit : ratio >= figure->limit;
    if (figure->limit > 0) {
        aims->count++;
        aims->reached += is_reached;
    }

    printf("  %-9s %s ",
           figure->limit == 0 ? "no aim"
           : is_reached       ? "reached"
                              : "MISSED",
           figure->queue);
    if (is_time)
        printf("needs %.2f times as long for a steal as %s", ratio, figure->base);
    else
        printf("does %.2f times the operations of %s", ratio, figure->base);
    if (figure->limit > 0)
        printf("; aim: at %s %.2f", is_time ? "most" : "least", figure->limit);
    if (figure->published)
        printf(" (%s)", figure->published);
    if (!is_time && figure->setting != ALONE)
        printf("; per CPU second of the worker %.2f",
               value_of(cell, figure->setting, true) / value_of(base, figure->setting, true));
    putchar('\n');
}

void figures_print(const deque_comparison *comparison)
{
    bench_aims aims = {.count = 0};

    if (!comparison->has_figures)
        return;
    puts("\nFigures");
    for (int s = 0; s < FIGURE_SETTINGS; s++) {
        setting_print(&comparison->settings[s]);
        putchar('\n');
        for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
            if (figures[i].setting == s)
                print_figure(comparison, &figures[i], &aims);
    }
    printf("%d of %d aims reached.\n", aims.reached, aims.count);
    if (core_count() < THESIS_THREADS)
        printf(
            "5 stealers and %d cores: many steals happen while the worker does not run. In the\n"
            "thesis each thread had a core, so its ratios say more about how stealers disturb.\n",
            core_count());
}
