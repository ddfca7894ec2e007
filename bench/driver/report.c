/* SPDX-License-Identifier: MIT */
/*
 * The table: one block per work, one line per variant, then the targets of filch and whether it
 * reached them.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

typedef struct bench_verdicts {
    int reached;
    int missed;
    char missed_names[512];
} bench_verdicts;

/* "217 ms": three digits and a unit. */
static const char *time_text(double ns, char text[16])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;
    while (ns >= 999.5 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    snprintf(text, 16, "%.*f %s", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns, units[unit]);
    return text;
}

/* Two digits after the point, more when the number is small. */
static const char *ratio_text(double ratio, char text[16])
{
    snprintf(text, 16, "%.*f", ratio < 0.1 ? 4 : 2, ratio);
    return text;
}

static int index_of_workers(const bench_comparison *comparison, int workers)
{
    for (int i = 0; i < comparison->workers_count; i++)
        if (comparison->workers[i] == workers)
            return i;
    return -1;
}

static bool has_status(const bench_comparison *comparison, bench_variant variant, run_status status)
{
    for (int w = 0; w < work_count; w++)
        for (int i = 0; i < comparison->workers_count; i++)
            if (comparison_cell(comparison, w, variant, i)->status == status)
                return true;
    return false;
}

static void print_conditions(const bench_comparison *comparison)
{
    machine_print();
    printf("%s%d round%s, interleaved; the fastest run of each counts.\n",
           comparison->is_short ? "Short sizes. " : "", comparison->rounds,
           comparison->rounds == 1 ? "" : "s");
    puts("T1/Ts: what tasks cost with one worker; 1.00 is nothing.\n"
         "Ts/T2: how many times faster than plain serial C two workers are; 2.00 is perfect.");
    for (int v = 0; v < VARIANT_COUNT; v++) {
        bench_variant variant = (bench_variant)v;
        bench_variant twin = variant_twin(variant);
        if (twin != variant && twin != VARIANT_SERIAL && has_status(comparison, variant, RUN_OK))
            printf("Ts of %s is that of %s.\n", variant_names[variant], variant_names[twin]);
    }
    if (comparison->others_share > 0.05)
        printf("Others used %.0f %% of the cores meanwhile, so speed-ups are too low.\n",
               100 * comparison->others_share);
}

static void print_absent(const bench_comparison *comparison)
{
    for (int v = 0; v < VARIANT_COUNT; v++)
        if (has_status(comparison, (bench_variant)v, RUN_MISSING))
            printf("Skipped: %s was not built.\n", variant_names[v]);
}

/* Print a line instead of numbers for each cell that failed. */
static void print_failures(const bench_comparison *comparison, int work, bench_variant variant)
{
    for (int i = 0; i < comparison->workers_count; i++) {
        const bench_cell *cell = comparison_cell(comparison, work, variant, i);
        if (cell->status == RUN_FAILED || cell->status == RUN_SKIPPED)
            printf("  %-12s %s with %d worker%s: %s\n", variant_names[variant],
                   cell->status == RUN_FAILED ? "FAILED" : "skipped", comparison->workers[i],
                   comparison->workers[i] == 1 ? "" : "s", cell->reason);
    }
}

static bool has_numbers(const bench_comparison *comparison, int work, bench_variant variant)
{
    for (int i = 0; i < comparison->workers_count; i++)
        if (unit_ns(comparison, work, variant, i) > 0)
            return true;
    return false;
}

static void print_timed_header(const bench_comparison *comparison, const bench_work *work)
{
    printf("  %-12s %10s", "", "size");
    for (int i = 0; i < comparison->workers_count; i++) {
        int workers = comparison->workers[i];
        char name[16];
        snprintf(name, sizeof name, workers == 1 ? "T%d/Ts" : "Ts/T%d", workers);
        printf(" %8s", name);
    }
    for (int i = 0; i < comparison->workers_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "T%d", comparison->workers[i]);
        printf(" %9s", name);
    }
    if (work->unit)
        printf("   ns per %s", work->unit);
    putchar('\n');
}

static void print_serial_line(const bench_comparison *comparison, int index, bench_variant variant)
{
    const bench_work *work = &works[index];
    const bench_cell *cell = comparison_cell(comparison, index, variant, 0);
    char text[16];

    printf("  %-12s %10ld   Ts = %s", variant_names[variant],
           work_size(work, variant, comparison->is_short), time_text(cell_min(cell, 0), text));
    if (work->unit)
        printf(", %.2f ns per %s", unit_ns(comparison, index, variant, 0), work->unit);
    putchar('\n');
}

static void print_timed_line(const bench_comparison *comparison, int index, bench_variant variant)
{
    const bench_work *work = &works[index];
    double serial = twin_unit_ns(comparison, index, variant);
    char text[16];

    printf("  %-12s %10ld", variant_names[variant], work_size(work, variant, comparison->is_short));
    for (int i = 0; i < comparison->workers_count; i++) {
        double unit = unit_ns(comparison, index, variant, i);
        bool is_slowdown = comparison->workers[i] == 1;
        if (unit > 0 && serial > 0)
            printf(" %8s", ratio_text(is_slowdown ? unit / serial : serial / unit, text));
        else
            printf(" %8s", "-");
    }
    for (int i = 0; i < comparison->workers_count; i++) {
        const bench_cell *cell = comparison_cell(comparison, index, variant, i);
        bool has_time = unit_ns(comparison, index, variant, i) > 0;
        printf(" %9s", has_time ? time_text(cell_min(cell, 0), text) : "-");
    }
    for (int i = 0; work->unit && i < comparison->workers_count; i++) {
        double unit = unit_ns(comparison, index, variant, i);
        fputs(i == 0 ? "   " : " / ", stdout);
        if (unit > 0)
            printf("%.2f", unit);
        else
            putchar('-');
    }
    putchar('\n');
}

/* For kinds without a ratio to the twin: one line per variant and number of workers. */
static void print_single_lines(const bench_comparison *comparison, int index, bench_variant variant)
{
    char texts[FIGURES_MAX][16];
    for (int i = 0; i < comparison->workers_count; i++) {
        const bench_cell *cell = comparison_cell(comparison, index, variant, i);
        if (!comparison_has(comparison, index, variant, i) ||
            unit_ns(comparison, index, variant, i) <= 0)
            continue;
        if (variant_is_serial(variant))
            printf("  %-12s %-10s ", variant_names[variant], "no pool");
        else
            printf("  %-12s %d worker%-2s ", variant_names[variant], comparison->workers[i],
                   comparison->workers[i] == 1 ? "" : "s");
        for (int f = 0; f < FIGURES_MAX; f++)
            time_text(cell_min(cell, f), texts[f]);
        if (works[index].kind == WORK_WAKE)
            printf("median %9s   p99 %9s   bare futex: median %9s   p99 %9s\n", texts[0], texts[1],
                   texts[2], texts[3]);
        else if (works[index].kind == WORK_IDLE)
            printf("median %9s   min %9s\n", time_text(cell_median(cell, 0), texts[1]), texts[0]);
        else
            printf("%9s\n", texts[0]);
    }
}

static void judge(bench_verdicts *verdicts, const char *work, const char *figure, double value,
                  bool is_maximum, double limit)
{
    bool is_reached = is_maximum ? value <= limit : value >= limit;
    printf("  target       %-16s %6.2f %s %-5.2f %s\n", figure, value,
           is_maximum ? "<=" : ">=", limit, is_reached ? "reached" : "MISSED");
    if (is_reached) {
        verdicts->reached++;
        return;
    }
    size_t length = strlen(verdicts->missed_names);
    snprintf(verdicts->missed_names + length, sizeof verdicts->missed_names - length, "%s%s %s",
             verdicts->missed++ ? ", " : "", work, figure);
}

static void judge_target(const bench_comparison *comparison, int index, const bench_target *target,
                         bench_verdicts *verdicts)
{
    int i = index_of_workers(comparison, target->workers);
    if (i < 0 || unit_ns(comparison, index, VARIANT_FILCH, i) <= 0)
        return;
    const bench_cell *cell = comparison_cell(comparison, index, VARIANT_FILCH, i);
    double unit = unit_ns(comparison, index, VARIANT_FILCH, i);
    double serial = twin_unit_ns(comparison, index, VARIANT_FILCH);
    const char *name = works[index].name;
    char figure[32];

    switch (target->kind) {
    case TARGET_SLOWDOWN_MAX:
        snprintf(figure, sizeof figure, "T%d/Ts", target->workers);
        if (serial > 0)
            judge(verdicts, name, figure, unit / serial, true, target->limit);
        break;
    case TARGET_SPEEDUP_MIN:
        snprintf(figure, sizeof figure, "Ts/T%d", target->workers);
        if (serial > 0)
            judge(verdicts, name, figure, serial / unit, false, target->limit);
        break;
    case TARGET_UNIT_NS_MAX:
        snprintf(figure, sizeof figure, "ns per %s, %d w", works[index].unit, target->workers);
        judge(verdicts, name, figure, unit, true, target->limit);
        break;
    case TARGET_CPU_MS_MAX:
        /* The median: a pool that sometimes fails to sleep must miss the target. */
        judge(verdicts, name, "CPU ms", cell_median(cell, 0) / 1e6, true, target->limit);
        break;
    case TARGET_MEDIAN_MAX:
        judge(verdicts, name, "median / bare", cell_min(cell, 0) / cell_min(cell, 2), true,
              target->limit);
        break;
    case TARGET_P99_MAX:
        judge(verdicts, name, "p99 / bare", cell_min(cell, 1) / cell_min(cell, 3), true,
              target->limit);
        break;
    }
}

/* Judge the cost of more workers than cores (OVERSUBSCRIBED_MAX). */
static void judge_oversubscribed(const bench_comparison *comparison, int index,
                                 bench_verdicts *verdicts)
{
    int cores = core_count();
    int full = index_of_workers(comparison, cores);
    if (full < 0 || works[index].kind != WORK_TIMED || works[index].is_coarse)
        return;
    double full_ns = unit_ns(comparison, index, VARIANT_FILCH, full);
    for (int i = full + 1; i < comparison->workers_count; i++) {
        double over_ns = unit_ns(comparison, index, VARIANT_FILCH, i);
        char figure[32];
        if (full_ns <= 0 || over_ns <= 0)
            continue;
        snprintf(figure, sizeof figure, "T%d/T%d", comparison->workers[i], cores);
        judge(verdicts, works[index].name, figure, over_ns / full_ns, true, OVERSUBSCRIBED_MAX);
    }
}

static void print_work(const bench_comparison *comparison, int index, bench_verdicts *verdicts)
{
    const bench_work *work = &works[index];
    printf("\n%s: %s\n", work->name, work->title);
    if (work->kind == WORK_TIMED)
        print_timed_header(comparison, work);
    for (int v = 0; v < VARIANT_COUNT; v++) {
        bench_variant variant = (bench_variant)v;
        if (has_numbers(comparison, index, variant)) {
            if (work->kind != WORK_TIMED)
                print_single_lines(comparison, index, variant);
            else if (variant_is_serial(variant))
                print_serial_line(comparison, index, variant);
            else
                print_timed_line(comparison, index, variant);
        }
        print_failures(comparison, index, variant);
    }
    /* The targets are for full sizes, so short runs are not judged. */
    if (comparison->is_short)
        return;
    for (int i = 0; i < target_count; i++)
        if (strcmp(targets[i].work, work->name) == 0)
            judge_target(comparison, index, &targets[i], verdicts);
    judge_oversubscribed(comparison, index, verdicts);
}

/* Print the cost of a fork and its join in each runtime. */
static void print_summary(const bench_comparison *comparison)
{
    int one = index_of_workers(comparison, 1);
    bool is_begun = false;

    for (int w = 0; w < work_count; w++) {
        if (strcmp(works[w].name, "fib") != 0 || !(comparison->works >> w & 1) || one < 0)
            continue;
        for (int v = 0; v < VARIANT_COUNT; v++) {
            bench_variant variant = (bench_variant)v;
            double ns = unit_ns(comparison, w, variant, one);
            if (variant_is_serial(variant) || ns <= 0)
                continue;
            /* The plain call at the end is that of `serial`. */
            if (variant_twin(variant) != VARIANT_SERIAL)
                continue;
            printf("%s %.1f ns with %s", is_begun ? "," : "\nA fork and its join cost", ns,
                   variant_names[v]);
            is_begun = true;
        }
        double serial_ns = unit_ns(comparison, w, VARIANT_SERIAL, 0);
        if (is_begun && serial_ns > 0)
            printf("; a plain call, %.1f ns", serial_ns);
    }
    if (is_begun)
        puts(".");
}

void report_print(const bench_comparison *comparison)
{
    bench_verdicts verdicts = {.reached = 0};

    print_conditions(comparison);
    print_absent(comparison);
    for (int w = 0; w < work_count; w++)
        if (comparison->works >> w & 1)
            print_work(comparison, w, &verdicts);

    print_summary(comparison);
    int judged = verdicts.reached + verdicts.missed;
    if (judged == 0)
        return;
    printf("\n%d of %d targets reached", verdicts.reached, judged);
    if (verdicts.missed)
        printf("; missed: %s", verdicts.missed_names);
    puts(".");
}
