/* SPDX-License-Identifier: MIT */
/*
 * The results of the queue benchmark: one cell per setting and queue, with all its rounds.
 *
 *     main.c      the command line and the rounds
 *     results.c   the cells; the file for scripts
 *     report.c    the tables for people
 *     figures.c   the settings and ratios of published figures, and whether they are reached
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "race.h"

enum { DEQUE_ROUNDS_MAX = 100, SETTINGS_MAX = 8 };

/* Kept for each round, in operations per second. */
typedef enum bench_rate {
    RATE_WORKER,   /* successful pushes and pops */
    RATE_STEALERS, /* successful steals */
    RATE_TOTAL,
    RATE_TOTAL_CPU, /* the total per second of the worker's CPU time */
    RATE_COUNT,
} bench_rate;

typedef struct deque_cell {
    int run_count;
    double rates[RATE_COUNT][DEQUE_ROUNDS_MAX];
    double worker_ns[DEQUE_ROUNDS_MAX]; /* CPU time per push or pop */
    /* Over all rounds. */
    uint64_t wall_ns, cpu_ns;
    uint64_t outcomes[OUTCOMES];
    bench_latency latency;
} deque_cell;

typedef struct deque_comparison {
    int rounds;
    unsigned queues; /* bit i: run queues[i] */
    bool has_figures;
    int setting_count;
    bench_setting settings[SETTINGS_MAX];
    deque_cell *cells;   /* by setting and queue */
    double others_share; /* share of the cores that other programs used */
} deque_comparison;

deque_cell *deque_cell_at(const deque_comparison *comparison, int setting, int queue);

/* Whether this queue runs in this setting: queues for one thread have no stealers. */
bool deque_has(const deque_comparison *comparison, int setting, int queue);

void deque_cell_add(deque_cell *cell, const bench_tally *tally);

/* Over the rounds. */
typedef struct bench_spread {
    double min, median, max;
} bench_spread;

bench_spread spread_of(const double *values, int count);

/* The share of an outcome in all attempts to steal, in percent. */
double outcome_percent(const deque_cell *cell, int outcome);

/* Append one JSON object per cell. Returns 0 or -errno. */
int deque_results_append(const deque_comparison *comparison, const char *path);

/* ---- report.c -------------------------------------------------------------------------------- */

void deque_report_print(const deque_comparison *comparison);

/* "5 stealers at 1000000/s, 4-byte entries, ..." */
void setting_print(const bench_setting *setting);

/* ---- figures.c ------------------------------------------------------------------------------- */

/* The settings of the published figures. */
void figures_set(deque_comparison *comparison, uint64_t duration_ms);

/* Print each figure: the ratio, the aim, the published value. */
void figures_print(const deque_comparison *comparison);

#endif
