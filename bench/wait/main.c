/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-wait: one work that waits, one measured run.
 *
 *     filch-bench-wait <work> <workers> [<setting>=<value>...]
 *
 * prints a line for `compare`, or for a script:
 *
 *     RESULT filch <work> <workers> <figure>=<value>...
 *
 * The peers take the same arguments and print the same line. Exit code 0; 1 if the run failed or
 * its result is wrong; 2 for bad arguments; 77 if this program has no such work.
 */
#include "wait.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "filch-bench-wait"

enum { EXIT_USAGE = 2, EXIT_SKIP = 77, WORKERS_MAX = 1024, FIGURES_BYTES = 1024 };

/* fib(27) = 196418 takes half a millisecond. */
enum { WARM_UP_SIZE = 27, WARM_UP_RESULT = 196418 };

static const struct work {
    const char *name;
    int (*run)(const wait_run *run);
    long stack_kib; /* 0: the default */
    const char *settings;
} works[] = {
    {"mapreduce", wait_mapreduce, 0,
     "mode=classic|hiding|ideal|ready n=5000 value=30 latency_us=50000"},
    {"overhead", wait_overhead, 0, "n=200 value=30 rounds=7"},
    {"mix", wait_mix, 0, "n=32 total_ms=1000 latency_us=10000 share=100"},
    {"sleepers", wait_sleepers, 16, "tasks=1000000 sleep_ms=8000"},
    {"complete", wait_complete, 0, "samples=1000"},
    {"pingpong", wait_pingpong, 0, "trips=200000 capacity=0"},
    {"mutex", wait_mutex, 0, "tasks=1000 turns=1000 held=0"},
    {"channel", wait_channel, 0, "tasks=1000 turns=1000 capacity=16"},
};

enum { WORK_COUNT = sizeof works / sizeof works[0] };

static char figures[FIGURES_BYTES];

void wait_figure(const char *name, double value)
{
    size_t length = strlen(figures);
    snprintf(figures + length, sizeof figures - length, " %s=%.17g", name, value);
}

const char *wait_text(const wait_run *run, const char *name, const char *otherwise)
{
    size_t length = strlen(name);
    for (char **setting = run->settings; *setting; setting++)
        if (strncmp(*setting, name, length) == 0 && (*setting)[length] == '=')
            return *setting + length + 1;
    return otherwise;
}

long wait_number(const wait_run *run, const char *name, long least, long otherwise)
{
    const char *text = wait_text(run, name, NULL);
    char *end;

    if (!text)
        return otherwise;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < least || value > INT32_MAX) {
        fprintf(stderr, PROGRAM ": %s must be a number from %ld on, not '%s'\n", name, least, text);
        exit(EXIT_USAGE);
    }
    return value;
}

FILCH_TASK(long, warm_fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, warm_fib, n - 1);
    long right = FILCH_CALL(warm_fib, n - 2);
    return FILCH_JOIN(left) + right;
}

static int warm_up(filch_pool *pool)
{
    uint64_t start_ns = probe_clock_ns();
    do {
        if (FILCH_RUN(pool, warm_fib, WARM_UP_SIZE) != WARM_UP_RESULT)
            return -EBADMSG;
    } while (probe_clock_ns() - start_ns < PROBE_WARM_UP_NS);
    return 0;
}

/* Counters that explain a figure. */
static void print_counters(const filch_pool *pool)
{
    filch_counters counters = {.size = sizeof counters};

    if (!getenv("BENCH_COUNTERS") || filch_pool_counters(pool, &counters) != 0)
        return;
    printf("COUNTERS");
#define PRINT_COUNTER(name) printf(" " #name "=%" PRIu64, counters.name);
    FILCH_COUNTERS(PRINT_COUNTER)
#undef PRINT_COUNTER
    puts("");
}

static int run_once(const struct work *work, wait_run *run)
{
    filch_options options = {
        .size = sizeof options,
        .workers = run->workers,
        .stack_bytes = (size_t)wait_number(run, "stack_kib", 0, work->stack_kib) << 10,
    };
    int err = filch_pool_create(&run->pool, &options);
    if (err)
        return err;
    err = warm_up(run->pool);
    if (!err)
        err = work->run(run);
    print_counters(run->pool);
    int destroy_err = filch_pool_destroy(run->pool);
    return err ? err : destroy_err;
}

static int print_help(void)
{
    puts("usage: " PROGRAM " <work> <workers> [<setting>=<value>...]\n"
         "Run one work once and print what was measured. bench/wait/compare runs all of them.\n");
    for (int i = 0; i < WORK_COUNT; i++)
        printf("  %-10s %s\n", works[i].name, works[i].settings);
    puts("\nAll of them: stack_kib of each strand, 0 for the default.");
    return EXIT_SUCCESS;
}

static int fail_usage(const char *problem, const char *argument)
{
    fprintf(stderr, PROGRAM ": %s '%s' (" PROGRAM " --help)\n", problem, argument);
    return EXIT_USAGE;
}

/* The first setting that the work does not have, or NULL. */
static const char *find_unknown(const struct work *work, char **settings)
{
    for (; *settings; settings++) {
        char name[32];
        if (sscanf(*settings, "%30[a-z_]=", name) != 1 || !strchr(*settings, '='))
            return *settings;
        strcat(name, "=");
        const char *known = strstr(work->settings, name);
        bool is_known = known && (known == work->settings || known[-1] == ' ');
        if (!is_known && strcmp(name, "stack_kib=") != 0)
            return *settings;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work *work = NULL;
    char *end;

    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return print_help();
    if (argc < 3)
        return fail_usage("missing argument", argc < 2 ? "work" : "workers");
    for (int i = 0; i < WORK_COUNT; i++)
        if (strcmp(works[i].name, argv[1]) == 0)
            work = &works[i];
    if (!work) {
        fail_usage("unknown work", argv[1]);
        return EXIT_SKIP;
    }
    long workers = strtol(argv[2], &end, 10);
    if (*end || end == argv[2] || workers < 1 || workers > WORKERS_MAX)
        return fail_usage("workers must be a number from 1 to 1024, not", argv[2]);
    wait_run run = {.workers = (unsigned)workers, .settings = argv + 3};
    const char *unknown = find_unknown(work, run.settings);
    if (unknown)
        return fail_usage("this work has no setting", unknown);

    int err = run_once(work, &run);
    if (err == -EINVAL)
        return fail_usage("this cannot be: settings of", argv[1]);
    if (err) {
        fprintf(stderr, PROGRAM ": %s: %s\n", work->name,
                err == -EBADMSG ? "wrong result" : strerror(-err));
        return EXIT_FAILURE;
    }
    printf("RESULT filch %s %u%s\n", work->name, run.workers, figures);
    return EXIT_SUCCESS;
}
