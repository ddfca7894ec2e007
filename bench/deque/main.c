/* SPDX-License-Identifier: MIT */
/*
 * The queue benchmark: one worker, some stealers, one queue. It runs all kinds of deques and the
 * queues of baseline.h. ../README.md describes the method.
 */
#include "results.h"

#include "../driver/driver.h"
#include "../workloads/probe.h"

#include <errno.h>
#include <filch/deque.h>
#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "filch-bench-deque"

enum {
    EXIT_USAGE = 2,
    DEFAULT_BLOCK_SIZE = 64,
    FIGURES_DURATION_MS = 200,
    STEALERS_MAX = 256,
    CAPACITY_MAX = 1 << 20,
};

static const struct option options[] = {
    {"queue", required_argument, NULL, 'q'},
    {"num-stealers", required_argument, NULL, 's'},
    {"steal-frequency", required_argument, NULL, 'f'},
    {"in-turns", no_argument, NULL, 't'},
    {"duration-ms", required_argument, NULL, 'd'},
    {"payload", required_argument, NULL, 'p'},
    {"capacity", required_argument, NULL, 'c'},
    {"blocks", required_argument, NULL, 'b'},
    {"rounds", required_argument, NULL, 'r'},
    {"figures", no_argument, NULL, 'F'},
    {"json", no_argument, NULL, 'j'},
    {"output", required_argument, NULL, 'o'},
    {"list", no_argument, NULL, 'l'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: " PROGRAM " [options]\n"
    "A worker fills a queue and drains it, again and again, while stealers take entries.\n"
    "\n"
    "      --queue <name,...|all>  queues to run [all]; see them with --list\n"
    "      --num-stealers <n>      threads that steal [0]\n"
    "      --steal-frequency <n>   steals per second of each; 0: as fast as it can [1000000]\n"
    "      --in-turns              one stealer empties the full queue while the worker waits\n"
    "      --duration-ms <n>       length of each run [10000]\n"
    "      --payload <4|8>         bytes of an entry [4]\n"
    "      --capacity <n>          entries in a full queue, a power of two [1024]\n"
    "      --blocks <n>x<size>     blocks of the BWoS queues [blocks of 64, as many as fit]\n"
    "  -n, --rounds <n>            runs of each queue [7]\n"
    "      --figures               settings and ratios of published figures; takes a minute\n"
    "      --json                  append one object per queue to results.jsonl, beside this "
    "program\n"
    "  -o, --output <path>         append the objects to this file instead\n"
    "      --list                  print the queues\n"
    "  -h, --help                  print this\n"
    "\n"
    "Exit code 0; 1 when a queue lost an entry or returned one twice; 2 for bad arguments.\n"
    "\n"
    "example: " PROGRAM " --queue abp,bwos_lifo --num-stealers 5 --duration-ms 1000\n";

static const char *option_name(int index)
{
    return options[index].name;
}

__attribute__((format(printf, 1, 2), noreturn)) static void fail_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, format, arguments);
    fputs(" (" PROGRAM " --help)\n", stderr);
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

/* Accept digits only: strtoull also accepts signs and blanks. */
static bool read_number(const char *text, size_t length, uint64_t max, uint64_t *value)
{
    if (length == 0 || length > 19)
        return false;
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *value = *value * 10 + (uint64_t)(text[i] - '0');
    }
    return *value <= max;
}

static uint64_t parse_number(const char *what, const char *text, uint64_t min, uint64_t max)
{
    uint64_t value;
    if (!read_number(text, strlen(text), max, &value) || value < min)
        fail_usage("%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", what, min, max,
                   text);
    return value;
}

/* Turn "abp,bwos_lifo" into a set of bits; "all" sets all of them. */
static unsigned parse_queues(char *list)
{
    unsigned set = 0;
    if (strcmp(list, "all") == 0)
        return (1u << queue_count) - 1;
    for (char *typed = strtok(list, ","); typed; typed = strtok(NULL, ",")) {
        int index = 0;
        while (queue_name(index) && strcmp(queue_name(index), typed) != 0)
            index++;
        if (!queue_name(index))
            fail_unknown("queue", typed, queue_name);
        set |= 1u << index;
    }
    if (set == 0)
        fail_usage("no queue given");
    return set;
}

/* "16x64" */
static void parse_blocks(const char *text, bench_setting *setting)
{
    const char *x = strchr(text, 'x');
    uint64_t count, size;
    if (!x || !read_number(text, (size_t)(x - text), CAPACITY_MAX, &count) ||
        !read_number(x + 1, strlen(x + 1), CAPACITY_MAX, &size) || count < 2 || size < 1)
        fail_usage("blocks must be <count>x<size> with 2 blocks of 1 entry or more, not '%s'",
                   text);
    setting->block_count = (size_t)count;
    setting->block_size = (size_t)size;
}

static void print_list(void)
{
    for (int i = 0; i < queue_count; i++)
        printf("%-10s %s\n", queues[i].name, queues[i].title);
}

/* Check the setting, and fill in defaults. */
static void complete_setting(const deque_comparison *comparison, bench_setting *setting,
                             bool has_stealers, bool is_chosen)
{
    size_t capacity = setting->capacity;

    if ((capacity & (capacity - 1)) != 0)
        fail_usage("the capacity must be a power of two, not %zu", capacity);
    if (setting->block_count == 0) {
        setting->block_size = capacity / 2 < DEFAULT_BLOCK_SIZE ? capacity / 2 : DEFAULT_BLOCK_SIZE;
        setting->block_count = capacity / setting->block_size;
    }
    if (setting->block_count * setting->block_size > capacity)
        fail_usage("blocks of %zux%zu entries hold more than the capacity, which is %zu",
                   setting->block_count, setting->block_size, capacity);
    if (setting->is_in_turns) {
        if (has_stealers && setting->stealer_count != 1)
            fail_usage("--in-turns is for one stealer");
        setting->stealer_count = 1;
    }
    for (int q = 0; q < queue_count && is_chosen && setting->stealer_count > 0; q++)
        if (comparison->queues >> q & 1 && !queue_has_stealers(&queues[q]))
            fail_usage("the queue '%s' is for one thread, without stealers", queues[q].name);
}

static void parse_options(deque_comparison *comparison, int argc, char **argv, const char **output,
                          bool *is_written)
{
    bench_setting setting = {
        .steals_per_s = 1000 * 1000, .duration_ms = 10000, .payload = 4, .capacity = 1024};
    bool is_chosen = false /* by name */, has_duration = false, has_stealers = false;
    const char *blocks = NULL, *fixed = NULL; /* an option that --figures rejects */
    int option, index;

    comparison->queues = (1u << queue_count) - 1;
    comparison->rounds = 7;
    opterr = 0; /* fail_unknown suggests the nearest name */
    while ((option = getopt_long(argc, argv, ":n:o:h", options, &index)) != -1) {
        if (strchr("sftpcb", option))
            fixed = options[index].name;
        switch (option) {
        case 'q':
            is_chosen = strcmp(optarg, "all") != 0;
            comparison->queues = parse_queues(optarg);
            break;
        case 's':
            has_stealers = true;
            setting.stealer_count = (int)parse_number("num-stealers", optarg, 0, STEALERS_MAX);
            break;
        case 'f':
            setting.steals_per_s = parse_number("steal-frequency", optarg, 0, 1000000000);
            break;
        case 't':
            setting.is_in_turns = true;
            break;
        case 'd':
            has_duration = true;
            setting.duration_ms = parse_number("duration-ms", optarg, 1, 3600 * 1000);
            break;
        case 'p':
            setting.payload = (int)parse_number("payload", optarg, 4, 8);
            if (setting.payload != 4 && setting.payload != 8)
                fail_usage("payload must be 4 or 8, not '%s'", optarg);
            break;
        case 'c':
            setting.capacity = (size_t)parse_number("capacity", optarg, 2, CAPACITY_MAX);
            break;
        case 'b':
            blocks = optarg;
            break;
        case 'n':
        case 'r':
            comparison->rounds = (int)parse_number("rounds", optarg, 1, DEQUE_ROUNDS_MAX);
            break;
        case 'F':
            comparison->has_figures = true;
            break;
        case 'o':
            *output = optarg;
            *is_written = true;
            break;
        case 'j':
            *is_written = true;
            break;
        case 'l':
            print_list();
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

    if (comparison->has_figures) {
        if (fixed)
            fail_usage("--figures has settings of its own: no --%s", fixed);
        figures_set(comparison, has_duration ? setting.duration_ms : FIGURES_DURATION_MS);
        return;
    }
    if (blocks)
        parse_blocks(blocks, &setting);
    complete_setting(comparison, &setting, has_stealers, is_chosen);
    comparison->setting_count = 1;
    comparison->settings[0] = setting;
}

/* ---- the rounds ------------------------------------------------------------------------------ */

/* Returns false if the queue could not run, or lost or repeated entries. */
static bool run_cell(const deque_comparison *comparison, int s, int q)
{
    static bench_tally tally;
    const char *name = queues[q].name;

    int err = race_run(&queues[q], &comparison->settings[s], &tally);
    if (err) {
        fprintf(stderr, PROGRAM ": %s cannot run: %s\n", name, strerror(-err));
        return false;
    }
    if (!tally_is_right(&tally)) {
        fprintf(stderr,
                PROGRAM ": %s lost or repeated entries: %" PRIu64 " pushes of sum %" PRIu64
                        ", but %" PRIu64 " pops, %" PRIu64 " steals and %" PRIu64
                        " left, of sum %" PRIu64 "\n",
                name, tally.pushes, tally.pushed_sum, tally.pops, tally.outcomes[FILCH_STEAL_WON],
                tally.rest, tally.taken_sum);
        return false;
    }
    deque_cell_add(deque_cell_at(comparison, s, q), &tally);
    return true;
}

static bool run_round(const deque_comparison *comparison, int round, bool is_shown)
{
    bool is_fine = true;
    for (int s = 0; s < comparison->setting_count; s++) {
        for (int q = 0; q < queue_count; q++) {
            if (!deque_has(comparison, s, q))
                continue;
            if (is_shown)
                fprintf(stderr, "\r\033[Kround %d of %d: %s, %d stealers", round + 1,
                        comparison->rounds, queues[q].name, comparison->settings[s].stealer_count);
            is_fine &= run_cell(comparison, s, q);
        }
    }
    if (is_shown)
        fputs("\r\033[K", stderr);
    return is_fine;
}

int main(int argc, char **argv)
{
    deque_comparison comparison = {.rounds = 0};
    char folder[PATH_MAX];
    char default_output[sizeof folder + 32];
    const char *output = default_output;
    bool is_written = false, is_fine = true;

    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length < 0) {
        fprintf(stderr, PROGRAM ": cannot find its own folder: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    folder[length] = '\0';
    snprintf(default_output, sizeof default_output, "%s/results.jsonl", dirname(folder));
    parse_options(&comparison, argc, argv, &output, &is_written);

    comparison.cells =
        calloc((size_t)(comparison.setting_count * queue_count), sizeof *comparison.cells);
    if (!comparison.cells) {
        fprintf(stderr, PROGRAM ": out of memory\n");
        return EXIT_FAILURE;
    }
    latency_calibrate();
    double others_before_s = others_seconds();
    uint64_t start_ns = probe_clock_ns();
    for (int round = 0; round < comparison.rounds && is_fine; round++)
        is_fine = run_round(&comparison, round, isatty(STDERR_FILENO));
    double elapsed_s = (double)(probe_clock_ns() - start_ns) / 1e9;
    comparison.others_share = (others_seconds() - others_before_s) / (elapsed_s * core_count());

    deque_report_print(&comparison);
    figures_print(&comparison);
    int err = is_written && is_fine ? deque_results_append(&comparison, output) : 0;
    if (err)
        fprintf(stderr, PROGRAM ": cannot write %s: %s\n", output, strerror(-err));
    else if (is_written && is_fine)
        printf("\nresults: %s\n", output);
    free(comparison.cells);
    return is_fine && !err ? EXIT_SUCCESS : EXIT_FAILURE;
}
