/* SPDX-License-Identifier: MIT */
/*
 * Runs the workloads in all variants and compares them. README.md describes the method.
 *
 * The rounds are the outermost loop. If the machine is slow for a minute, it slows all variants
 * down, and the minimum over the rounds drops that minute.
 */
#include "driver/driver.h"
#include "workloads/probe.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, DEFAULT_ROUNDS = 7, SHORT_ROUNDS = 3 };

/* The variants of a demonstration: the slow ones are left out. */
#define SHORT_VARIANTS                                                                             \
    (1u << VARIANT_SERIAL | 1u << VARIANT_FILCH | 1u << VARIANT_TBB | 1u << VARIANT_GOMP |         \
     1u << VARIANT_RAYON)

static const struct option options[] = {
    {"rounds", required_argument, NULL, 'r'},
    {"workers", required_argument, NULL, 'w'},
    {"filch-workers", required_argument, NULL, 'f'},
    {"work", required_argument, NULL, 'b'},
    {"variant", required_argument, NULL, 'v'},
    {"output", required_argument, NULL, 'o'},
    {"short", no_argument, NULL, 's'},
    {"list", no_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: filch-bench [options]\n"
    "Run the workloads in filch, in plain C and in other runtimes, interleaved, and compare.\n"
    "\n"
    "      --work <name,...>     workloads to run [all]; see them with --list\n"
    "      --variant <name,...>  variants to run [all]; their serial twins always run\n"
    "  -w, --workers <n,...>     worker counts [1,2]\n"
    "      --filch-workers <n,...>\n"
    "                            more counts, for the variant filch alone\n"
    "                            [8; none with --short or --workers]\n"
    "  -n, --rounds <n>          runs of each; the minimum counts [7, short: 3]\n"
    "      --short               smaller sizes, quick variants: under a minute\n"
    "  -o, --output <path>       one JSON object per measurement\n"
    "                            [results.jsonl beside this program]\n"
    "      --list                print workloads and variants\n"
    "  -h, --help                print this\n"
    "\n"
    "Exit code 0; 1 when a run of filch failed or a checksum is wrong; 2 for bad arguments.\n"
    "\n"
    "example: filch-bench --work fib,uts --variant filch,tbb --workers 1,2,8\n";

static const char *option_name(int index)
{
    return options[index].name;
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("filch-bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs(" (filch-bench --help)\n", stderr);
    va_end(arguments);
    exit(EXIT_USAGE);
}

__attribute__((noreturn)) static void fail_unknown(const char *what, const char *typed,
                                                   const char *(*name)(int index))
{
    const char *nearest = nearest_name(typed, name);
    if (nearest)
        fail_usage("unknown %s '%s'; did you mean '%s'?", what, typed, nearest);
    fail_usage("unknown %s '%s'", what, typed);
}

static int parse_number(const char *what, const char *text, int max)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > max)
        fail_usage("%s must be a number from 1 to %d, not '%s'", what, max, text);
    return (int)value;
}

/* Turn "fib,uts" into a set of bits. */
static unsigned parse_names(const char *what, char *list, const char *(*name)(int index))
{
    unsigned set = 0;
    for (char *typed = strtok(list, ","); typed; typed = strtok(NULL, ",")) {
        int index = 0;
        while (name(index) && strcmp(name(index), typed) != 0)
            index++;
        if (!name(index))
            fail_unknown(what, typed, name);
        set |= 1u << index;
    }
    if (set == 0)
        fail_usage("no %s given", what);
    return set;
}

/* Insert a count in ascending order; refuse duplicates. */
static void add_workers(bench_comparison *comparison, int workers, bool is_for_filch)
{
    int at = comparison->workers_count;
    if (at == WORKERS_LISTED_MAX)
        fail_usage("at most %d worker counts", WORKERS_LISTED_MAX);
    while (at > 0 && comparison->workers[at - 1] > workers) {
        comparison->workers[at] = comparison->workers[at - 1];
        at--;
    }
    if (at > 0 && comparison->workers[at - 1] == workers)
        fail_usage("%d workers are listed twice", workers);
    comparison->workers[at] = workers;
    comparison->workers_count++;

    unsigned below = comparison->filch_workers & ((1u << at) - 1);
    unsigned above = comparison->filch_workers & ~((1u << at) - 1);
    comparison->filch_workers = above << 1 | (unsigned)is_for_filch << at | below;
}

/* "1,2,8" */
static void parse_workers(bench_comparison *comparison, char *list, bool is_for_filch)
{
    char *typed = strtok(list, ",");
    if (!typed)
        fail_usage("no worker counts given");
    for (; typed; typed = strtok(NULL, ","))
        add_workers(comparison, parse_number("workers", typed, WORKERS_MAX), is_for_filch);
}

static void print_list(const char *folder)
{
    puts("workloads (size, size with --short)");
    for (int i = 0; i < work_count; i++)
        printf("  %-10s %s (%ld, %ld)\n", works[i].name, works[i].title, works[i].size[0],
               works[i].size[1]);
    puts("variants");
    for (int i = 0; i < VARIANT_COUNT; i++) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/filch-bench-%s", folder, variant_names[i]);
        printf("  %-12s %s\n", variant_names[i], access(path, X_OK) ? "not built" : "ready");
    }
}

static int count_cells(const bench_comparison *comparison)
{
    int count = 0;
    for (int w = 0; w < work_count; w++)
        for (int v = 0; v < VARIANT_COUNT; v++)
            for (int i = 0; i < comparison->workers_count; i++)
                count += comparison_has(comparison, w, (bench_variant)v, i);
    return count;
}

static void parse_options(bench_comparison *comparison, int argc, char **argv, const char *folder,
                          const char **output)
{
    char default_workers[] = "1,2";
    char default_filch_workers[] = "8";
    char *workers = NULL;
    char *filch_workers = NULL;
    int option;
    opterr = 0; /* fail_unknown suggests the nearest name */
    while ((option = getopt_long(argc, argv, ":w:n:o:h", options, NULL)) != -1) {
        switch (option) {
        case 'n':
        case 'r':
            comparison->rounds = parse_number("rounds", optarg, ROUNDS_MAX);
            break;
        case 'w':
            workers = optarg;
            break;
        case 'f':
            filch_workers = optarg;
            break;
        case 'b':
            comparison->works = parse_names("work", optarg, work_name);
            break;
        case 'v':
            comparison->variants = parse_names("variant", optarg, variant_name);
            break;
        case 'o':
            *output = optarg;
            break;
        case 's':
            comparison->is_short = true;
            break;
        case 'l':
            print_list(folder);
            exit(EXIT_SUCCESS);
        case 'h':
            fputs(help, stdout);
            exit(EXIT_SUCCESS);
        case ':':
            fail_usage("%s needs a value", argv[optind - 1]);
        default:
            if (strncmp(argv[optind - 1], "--", 2) == 0)
                fail_unknown("option", argv[optind - 1] + 2, option_name);
            fail_usage("unknown option '-%c'", optopt);
        }
    }
    if (optind < argc)
        fail_usage("unexpected argument '%s'", argv[optind]);

    if (comparison->rounds == 0)
        comparison->rounds = comparison->is_short ? SHORT_ROUNDS : DEFAULT_ROUNDS;
    if (comparison->variants == 0)
        comparison->variants = comparison->is_short ? SHORT_VARIANTS : (1u << VARIANT_COUNT) - 1;
    for (int v = 0; v < VARIANT_COUNT; v++)
        if (comparison->variants >> v & 1)
            comparison->variants |= 1u << variant_twin((bench_variant)v);
    if (!workers && !filch_workers && !comparison->is_short)
        filch_workers = default_filch_workers;
    parse_workers(comparison, workers ? workers : default_workers, false);
    if (filch_workers)
        parse_workers(comparison, filch_workers, true);
    if (comparison->works == 0)
        comparison->works = (1u << work_count) - 1;
    if (count_cells(comparison) == 0)
        fail_usage("none of these variants has one of these works with so many workers");
}

/* ---- the rounds ---- */

typedef struct bench_progress {
    bool is_shown;
    int done;
    int total;
    uint64_t start_ns;
} bench_progress;

static void show_progress(const bench_progress *progress, int round,
                          const bench_comparison *comparison, const char *work, const char *variant,
                          int workers)
{
    if (!progress->is_shown)
        return;
    fprintf(stderr, "\r\033[Kround %d of %d: %s, %s, %d worker%s", round + 1, comparison->rounds,
            work, variant, workers, workers == 1 ? "" : "s");
    if (progress->done > 0) {
        double elapsed_s = (double)(probe_clock_ns() - progress->start_ns) / 1e9;
        double left_s = elapsed_s / progress->done * (progress->total - progress->done);
        fprintf(stderr, " (about %.0f s left)", left_s);
    }
}

/* Run one cell once. Returns false if filch failed or a checksum is wrong. */
static bool run_cell(const bench_comparison *comparison, const char *folder, int w,
                     bench_variant variant, int workers_index)
{
    bench_cell *cell = comparison_cell(comparison, w, variant, workers_index);
    int workers = variant_is_serial(variant) ? 1 : comparison->workers[workers_index];
    run_outcome outcome;

    /* Do not repeat a failed cell: it may cost its time limit in every round. */
    if (cell->status != RUN_NONE && cell->status != RUN_OK)
        return true;
    run_program(folder, variant, &works[w], workers,
                work_size(&works[w], variant, comparison->is_short), &outcome);
    if (!comparison_add(comparison, w, variant, workers_index, &outcome))
        return false;
    /* Peers and builds by other compilers may be missing; programs that were built must run. */
    bool is_needed = variant == VARIANT_FILCH || variant == VARIANT_SERIAL;
    return outcome.status == RUN_OK || variant_is_peer(variant) ||
           (outcome.status == RUN_MISSING && !is_needed);
}

static bool run_round(const bench_comparison *comparison, const char *folder, int round,
                      bench_progress *progress)
{
    bool is_fine = true;
    for (int w = 0; w < work_count; w++) {
        for (int v = 0; v < VARIANT_COUNT; v++) {
            for (int i = 0; i < comparison->workers_count; i++) {
                if (!comparison_has(comparison, w, (bench_variant)v, i))
                    continue;
                show_progress(progress, round, comparison, works[w].name, variant_names[v],
                              variant_is_serial((bench_variant)v) ? 1 : comparison->workers[i]);
                for (int run = 0; run == 0 || run < works[w].repeats; run++)
                    is_fine &= run_cell(comparison, folder, w, (bench_variant)v, i);
                progress->done++;
            }
        }
    }
    return is_fine;
}

int main(int argc, char **argv)
{
    bench_comparison comparison = {.rounds = 0};
    char folder[PATH_MAX];
    char default_output[sizeof folder + 32];
    const char *output = default_output;

    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length < 0) {
        fprintf(stderr, "filch-bench: cannot find its own folder: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    folder[length] = '\0';
    dirname(folder);
    snprintf(default_output, sizeof default_output, "%s/results.jsonl", folder);
    parse_options(&comparison, argc, argv, folder, &output);

    comparison.cells =
        calloc((size_t)(work_count * VARIANT_COUNT * WORKERS_LISTED_MAX), sizeof(bench_cell));
    if (!comparison.cells) {
        fprintf(stderr, "filch-bench: out of memory\n");
        return EXIT_FAILURE;
    }
    bench_progress progress = {
        .is_shown = isatty(STDERR_FILENO),
        .total = comparison.rounds * count_cells(&comparison),
        .start_ns = probe_clock_ns(),
    };

    bool is_fine = true;
    double others_before_s = others_seconds();
    int err = access(output, F_OK) ? results_write(&comparison, output) : 0;
    for (int round = 0; round < comparison.rounds && !err; round++) {
        is_fine &= run_round(&comparison, folder, round, &progress);
        /* Write after every round, so that an interrupted run keeps its results. */
        err = results_write(&comparison, output);
    }
    if (progress.is_shown)
        fputs("\r\033[K", stderr);
    if (err) {
        fprintf(stderr, "filch-bench: cannot write %s: %s\n", output, strerror(-err));
        free(comparison.cells);
        return EXIT_FAILURE;
    }

    double elapsed_s = (double)(probe_clock_ns() - progress.start_ns) / 1e9;
    comparison.others_share = (others_seconds() - others_before_s) / (elapsed_s * core_count());
    report_print(&comparison);
    printf("\nresults: %s\n", output);
    free(comparison.cells);
    return is_fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
