/* SPDX-License-Identifier: MIT */
/*
 * One variant, one workload, one measured run:
 *
 *     filch-bench-filch <work> <workers> [size]
 *
 * prints a line for the driver, or for a script:
 *
 *     RESULT <variant> <work> <workers> <nanoseconds> <checksum>
 *     RESULT <variant> wake <workers> <median> <p99> <bare median> <bare p99>
 *
 * Exit code 0; 1 when the run failed or the checksum is wrong; 2 for bad arguments; 77 when this
 * variant has no such workload.
 */
#include "bench.h"
#include "expected.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, EXIT_SKIP = 77, WORKERS_MAX = 1024 };

static const struct work {
    const char *name;
    int (*run)(bench_run *run);
    long default_size;
    const char *size_means;
} works[] = {
    {"fib", bench_fib, 40, "n"},
    {"nqueens", bench_nqueens, 13, "rows of the board, at most 15"},
    {"quicksort", bench_quicksort, 10 * 1000 * 1000, "elements"},
    {"matmul", bench_matmul, 1024, "rows, 32 times a power of two"},
    {"uts", bench_uts, 2000, "children of the root"},
    {"for", bench_for, 10 * 1000 * 1000, "iterations"},
    {"small_for", bench_small_for, 10 * 1000, "elements"},
    {"lumps", bench_lumps, 2 * 1000 * 1000, "sines in a long iteration"},
    {"hidden", bench_hidden, 10 * 1000 * 1000, "iterations"},
    {"flat", bench_flat, 10 * 1000 * 1000, "tasks"},
    {"idle", bench_idle, 2000, "milliseconds"},
    {"wake", bench_wake, 1000, "samples"},
    {"pool", bench_pool, 100, "pools"},
    {"first", bench_first, 100, "pools"},
};

enum { WORK_COUNT = sizeof works / sizeof works[0] };

static int fail_usage(const char *problem, const char *argument)
{
    fprintf(stderr,
            "filch-bench-" BENCH_VARIANT ": %s '%s' (filch-bench-" BENCH_VARIANT " --help)\n",
            problem, argument);
    return EXIT_USAGE;
}

static int print_help(void)
{
    puts("usage: filch-bench-" BENCH_VARIANT " <work> <workers> [size]\n"
         "Run one workload once and print how long it took. filch-bench compares the "
         "variants.\n");
    for (int i = 0; i < WORK_COUNT; i++)
        printf("  %-10s size: %s [%ld]\n", works[i].name, works[i].size_means,
               works[i].default_size);
    return EXIT_SUCCESS;
}

static const struct work *find_work(const char *name)
{
    for (int i = 0; i < WORK_COUNT; i++)
        if (strcmp(works[i].name, name) == 0)
            return &works[i];
    return NULL;
}

/* Returns 0 unless `text` is a whole number from 1 to `max`. */
static long parse_count(const char *text, long max)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || end == text || value < 1 || value > max ? 0 : value;
}

#if BENCH_FILCH

static int start_pool(bench_run *run)
{
    return filch_pool_create(
        &run->pool, &(filch_options){.size = sizeof(filch_options), .workers = run->workers});
}

/* bench/deque/pools reads these. */
static void print_counters(const filch_pool *pool)
{
    filch_counters c = {.size = sizeof c};

    if (getenv("BENCH_COUNTERS") && filch_pool_counters(pool, &c) == 0)
        printf("COUNTERS stolen %" PRIu64 " lost %" PRIu64 " empty %" PRIu64 "\n", c.stolen, c.lost,
               c.empty);
}

static int stop_pool(bench_run *run)
{
    print_counters(run->pool);
    return filch_pool_destroy(run->pool);
}

#else

static int start_pool(bench_run *run)
{
    run->pool = NULL;
    return 0;
}

static int stop_pool(bench_run *run)
{
    (void)run;
    return 0;
}

#endif

static int run_once(const struct work *work, bench_run *run)
{
    int err = start_pool(run);
    if (err)
        return err;
    err = bench_warm_up(run->pool);
    if (!err)
        err = work->run(run);
    int stop_err = stop_pool(run);
    return err ? err : stop_err;
}

static bool has_right_checksum(const char *name, const bench_run *run)
{
    int64_t right;
    if (run->checksum == KERNEL_WRONG) {
        fprintf(stderr, "filch-bench-" BENCH_VARIANT ": %s: wrong result\n", name);
        return false;
    }
    if (expected_checksum(name, run->size, &right) && run->checksum != right) {
        fprintf(stderr,
                "filch-bench-" BENCH_VARIANT ": %s: checksum %" PRId64 ", not %" PRId64 "\n", name,
                run->checksum, right);
        return false;
    }
    return true;
}

static void print_result(const char *name, const bench_run *run)
{
    printf("RESULT " BENCH_VARIANT " %s %u ", name, run->workers);
    if (run->wake.median_ns)
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", run->wake.median_ns,
               run->wake.p99_ns, run->wake.bare_median_ns, run->wake.bare_p99_ns);
    else
        printf("%" PRIu64 " %" PRId64 "\n", run->elapsed_ns, run->checksum);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return print_help();
    if (argc < 3)
        return fail_usage("missing argument", argc < 2 ? "work" : "workers");
    if (argc > 4)
        return fail_usage("unexpected argument", argv[4]);
    const struct work *work = find_work(argv[1]);
    if (!work)
        return fail_usage("unknown work", argv[1]);
    bench_run run = {.size = work->default_size};
    run.workers = (unsigned)parse_count(argv[2], WORKERS_MAX);
    if (!run.workers)
        return fail_usage("workers must be a number from 1 to 1024, not", argv[2]);
    if (argc == 4)
        run.size = parse_count(argv[3], INT32_MAX);
    if (!run.size)
        return fail_usage("size must be a positive number, not", argv[3]);

    int err = run_once(work, &run);
    if (err == -EINVAL && argc == 4)
        return fail_usage("this work cannot have the size", argv[3]);
    if (err) {
        fprintf(stderr, "filch-bench-" BENCH_VARIANT ": %s: %s\n", work->name,
                err == -ENOTSUP ? "no such work in this variant" : strerror(-err));
        return err == -ENOTSUP ? EXIT_SKIP : EXIT_FAILURE;
    }
    if (!has_right_checksum(work->name, &run))
        return EXIT_FAILURE;
    print_result(work->name, &run);
    return EXIT_SUCCESS;
}
