/* SPDX-License-Identifier: MIT */
/* The measurements: kept by cell, checked, condensed, written. */
#include "driver.h"

#include "../workloads/expected.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bench_cell *comparison_cell(const bench_comparison *comparison, int work, bench_variant variant,
                            int workers_index)
{
    int row = work * VARIANT_COUNT + (int)variant;
    return &comparison->cells[row * WORKERS_LISTED_MAX + workers_index];
}

bool comparison_has(const bench_comparison *comparison, int work, bench_variant variant,
                    int workers_index)
{
    if (!(comparison->works >> work & 1) || !(comparison->variants >> variant & 1) ||
        !(works[work].variants >> variant & 1))
        return false;
    if (variant_is_serial(variant))
        return workers_index == 0;
    if (comparison->filch_workers >> workers_index & 1 && variant != VARIANT_FILCH)
        return false;
    return comparison->workers[workers_index] >= works[work].workers_min;
}

/* The checksum that a run of this size must have, or "" if unknown. */
static void right_checksum(const bench_comparison *comparison, int work, bench_variant variant,
                           char text[32])
{
    bench_variant twin = variant_twin(variant);
    long size = work_size(&works[work], variant, comparison->is_short);
    int64_t known;

    text[0] = '\0';
    if (expected_checksum(works[work].name, size, &known))
        snprintf(text, 32, "%" PRId64, known);
    else if (size == work_size(&works[work], twin, comparison->is_short))
        memcpy(text, comparison_cell(comparison, work, twin, 0)->checksum, 32);
}

bool comparison_add(const bench_comparison *comparison, int work, bench_variant variant,
                    int workers_index, const run_outcome *outcome)
{
    bench_cell *cell = comparison_cell(comparison, work, variant, workers_index);
    char right[32];

    cell->status = outcome->status;
    memcpy(cell->reason, outcome->reason, sizeof cell->reason);
    if (outcome->status != RUN_OK)
        return true;

    right_checksum(comparison, work, variant, right);
    if (right[0] && works[work].kind != WORK_WAKE && strcmp(outcome->checksum, right) != 0) {
        cell->status = RUN_FAILED;
        snprintf(cell->reason, sizeof cell->reason, "checksum %s, not %s", outcome->checksum,
                 right);
        return false;
    }
    memcpy(cell->checksum, outcome->checksum, sizeof cell->checksum);
    for (int i = 0; i < FIGURES_MAX; i++)
        cell->figures[i][cell->run_count] = outcome->figures[i];
    cell->run_count++;
    return true;
}

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

double cell_min(const bench_cell *cell, int figure)
{
    uint64_t min = cell->figures[figure][0];
    for (int i = 1; i < cell->run_count; i++)
        if (cell->figures[figure][i] < min)
            min = cell->figures[figure][i];
    return (double)min;
}

double cell_median(const bench_cell *cell, int figure)
{
    uint64_t sorted[RUNS_MAX];
    int count = cell->run_count;
    memcpy(sorted, cell->figures[figure], (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], compare_u64);
    return ((double)sorted[(count - 1) / 2] + (double)sorted[count / 2]) / 2;
}

double unit_ns(const bench_comparison *comparison, int work, bench_variant variant,
               int workers_index)
{
    const bench_cell *cell = comparison_cell(comparison, work, variant, workers_index);
    if (cell->run_count == 0 || cell->status == RUN_FAILED)
        return 0;
    long size = work_size(&works[work], variant, comparison->is_short);
    return cell_min(cell, 0) / work_units(&works[work], size);
}

double twin_unit_ns(const bench_comparison *comparison, int work, bench_variant variant)
{
    return unit_ns(comparison, work, variant_twin(variant), 0);
}

static void write_cell(FILE *file, const bench_comparison *comparison, int index,
                       bench_variant variant, int workers_index)
{
    const bench_work *work = &works[index];
    const bench_cell *cell = comparison_cell(comparison, index, variant, workers_index);
    double unit = unit_ns(comparison, index, variant, workers_index);
    double serial = twin_unit_ns(comparison, index, variant);
    int workers = variant_is_serial(variant) ? 1 : comparison->workers[workers_index];

    fprintf(file, "{\"work\": \"%s\", \"variant\": \"%s\", \"workers\": %d, ", work->name,
            variant_names[variant], workers);
    fprintf(file, "\"size\": %ld, ", work_size(work, variant, comparison->is_short));
    fprintf(file, "\"min_ns\": %.0f, \"median_ns\": %.0f, \"runs\": %d, ", cell_min(cell, 0),
            cell_median(cell, 0), cell->run_count);
    if (work->kind == WORK_TIMED && serial > 0)
        fprintf(file, "\"ratio\": %.4f", unit / serial);
    else if (work->kind == WORK_WAKE)
        fprintf(file, "\"ratio\": %.4f", cell_min(cell, 0) / cell_min(cell, 2));
    else
        fprintf(file, "\"ratio\": null");
    if (work->unit)
        fprintf(file, ", \"per_task_ns\": %.4f", unit);
    if (work->kind == WORK_WAKE)
        fprintf(file, ", \"p99_ns\": %.0f, \"bare_median_ns\": %.0f, \"bare_p99_ns\": %.0f",
                cell_min(cell, 1), cell_min(cell, 2), cell_min(cell, 3));
    fprintf(file, "}\n");
}

int results_write(const bench_comparison *comparison, const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return -errno;
    for (int w = 0; w < work_count; w++)
        for (int v = 0; v < VARIANT_COUNT; v++)
            for (int i = 0; i < comparison->workers_count; i++)
                if (unit_ns(comparison, w, (bench_variant)v, i) > 0)
                    write_cell(file, comparison, w, (bench_variant)v, i);
    return fclose(file) ? -errno : 0;
}
