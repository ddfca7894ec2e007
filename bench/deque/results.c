/* SPDX-License-Identifier: MIT */
#include "results.h"

#include <errno.h>
#include <filch/deque.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

deque_cell *deque_cell_at(const deque_comparison *comparison, int setting, int queue)
{
    return &comparison->cells[setting * queue_count + queue];
}

bool deque_has(const deque_comparison *comparison, int setting, int queue)
{
    if (!(comparison->queues >> queue & 1))
        return false;
    return comparison->settings[setting].stealer_count == 0 || queue_has_stealers(&queues[queue]);
}

void deque_cell_add(deque_cell *cell, const bench_tally *tally)
{
    double wall_s = (double)tally->wall_ns / 1e9, cpu_s = (double)tally->cpu_ns / 1e9;
    double worked = (double)(tally->pushes + tally->pops);
    double stolen = (double)tally->outcomes[FILCH_STEAL_WON];
    int i = cell->run_count++;

    cell->rates[RATE_WORKER][i] = worked / wall_s;
    cell->rates[RATE_STEALERS][i] = stolen / wall_s;
    cell->rates[RATE_TOTAL][i] = (worked + stolen) / wall_s;
    cell->rates[RATE_TOTAL_CPU][i] = (worked + stolen) / cpu_s;
    cell->worker_ns[i] = (double)tally->cpu_ns / worked;
    cell->wall_ns += tally->wall_ns;
    cell->cpu_ns += tally->cpu_ns;
    for (int o = 0; o < OUTCOMES; o++)
        cell->outcomes[o] += tally->outcomes[o];
    latency_merge(&cell->latency, &tally->latency);
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

bench_spread spread_of(const double *values, int count)
{
    double sorted[DEQUE_ROUNDS_MAX];

    memcpy(sorted, values, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_doubles);
    return (bench_spread){
        .min = sorted[0],
        .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
        .max = sorted[count - 1],
    };
}

double outcome_percent(const deque_cell *cell, int outcome)
{
    uint64_t attempts = 0;

    for (int o = 0; o < OUTCOMES; o++)
        attempts += cell->outcomes[o];
    return attempts ? 100 * (double)cell->outcomes[outcome] / (double)attempts : 0;
}

/* ---- for scripts ----------------------------------------------------------------------------- */

static void write_spread(FILE *file, const char *name, const double *values, int count)
{
    bench_spread spread = spread_of(values, count);
    fprintf(file, "\"%s\": {\"min\": %.6g, \"median\": %.6g, \"max\": %.6g}, ", name, spread.min,
            spread.median, spread.max);
}

/* [[from ns, count], ...] with eight steps for each power of two: enough for a violin. */
static void write_histogram(FILE *file, const bench_latency *latency)
{
    const uint64_t width = 1 << (LATENCY_SUB_BITS - 3);
    const char *comma = "";

    fputs("\"histogram\": [", file);
    for (uint64_t i = 0; i < LATENCY_BUCKETS; i += width) {
        uint64_t count = 0;
        for (uint64_t k = 0; k < width; k++)
            count += latency->buckets[i + k];
        if (count > 0) {
            fprintf(file, "%s[%.4g, %" PRIu64 "]", comma, latency_bucket_ns(i), count);
            comma = ", ";
        }
    }
    fputs("]", file);
}

static void write_cell(FILE *file, const bench_setting *setting, const bench_queue *queue,
                       const deque_cell *cell)
{
    static const int percents[] = {10, 50, 90, 99};
    const bench_latency *latency = &cell->latency;
    int count = cell->run_count;

    fprintf(file, "{\"work\": \"deque\", \"queue\": \"%s\", \"stealers\": %d, ", queue->name,
            setting->stealer_count);
    fprintf(file, "\"steals_per_s\": %" PRIu64 ", \"in_turns\": %s, ", setting->steals_per_s,
            setting->is_in_turns ? "true" : "false");
    fprintf(file, "\"duration_ms\": %" PRIu64 ", \"payload\": %d, \"capacity\": %zu, ",
            setting->duration_ms, setting->payload, setting->capacity);
    fprintf(file, "\"blocks\": \"%zux%zu\", \"runs\": %d, ", setting->block_count,
            setting->block_size, count);
    write_spread(file, "worker_ops_per_s", cell->rates[RATE_WORKER], count);
    write_spread(file, "stealer_ops_per_s", cell->rates[RATE_STEALERS], count);
    write_spread(file, "total_ops_per_s", cell->rates[RATE_TOTAL], count);
    write_spread(file, "total_ops_per_cpu_s", cell->rates[RATE_TOTAL_CPU], count);
    write_spread(file, "worker_op_ns", cell->worker_ns, count);
    fprintf(file, "\"worker_cpu_share\": %.4f, ", (double)cell->cpu_ns / (double)cell->wall_ns);
    fprintf(file, "\"stolen\": %" PRIu64 ", \"empty\": %" PRIu64 ", \"lost_race\": %" PRIu64 ", ",
            cell->outcomes[FILCH_STEAL_WON], cell->outcomes[FILCH_STEAL_EMPTY],
            cell->outcomes[FILCH_STEAL_LOST]);
    fprintf(file, "\"steal_ns\": %.2f, ", latency_mean_ns(latency));
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++)
        fprintf(file, "\"p%d_ns\": %.2f, ", percents[i],
                latency_percentile_ns(latency, percents[i]));
    fprintf(file, "\"max_ns\": %.0f, ", latency_max_ns(latency));
    write_histogram(file, latency);
    fputs("}\n", file);
}

int deque_results_append(const deque_comparison *comparison, const char *path)
{
    FILE *file = fopen(path, "a");
    if (!file)
        return -errno;
    for (int s = 0; s < comparison->setting_count; s++)
        for (int q = 0; q < queue_count; q++)
            if (deque_cell_at(comparison, s, q)->run_count > 0)
                write_cell(file, &comparison->settings[s], &queues[q],
                           deque_cell_at(comparison, s, q));
    return fclose(file) ? -errno : 0;
}
