/* SPDX-License-Identifier: MIT */
/*
 * filch-bench-files: duplicate files, found by tasks that read.
 *
 *     filch-bench-files make <folder> [<seed>] [<setting>=<value>...]
 *         make a tree, and print its duplicates
 *     filch-bench-files find <workers> [<option>...] <folder>
 *         find the duplicates once
 *     filch-bench-files forget <folder>
 *         drop the files from the kernel's cache
 *
 * `make` and `find` print a line for `compare`, or for a script. The words from groups= to
 * checksum= are the same in both:
 *
 *     RESULT make <seed> files=<n> directories=<n> bytes=<n> near=<n>
 *            groups=<n> ... checksum=<hex>
 *     RESULT <filch|blocking> find <workers> ns=<n> <figure>=<value>...
 *            groups=<n> ... checksum=<hex>
 *
 * Exit code 0; 1 for a failure; 2 for bad arguments. Unreadable files are reported on stderr and
 * counted (failures=), and are no error.
 */
#include "dups.h"

#include "../workloads/probe.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PROGRAM "filch-bench-files"

enum { EXIT_USAGE = 2, WORKERS_MAX = 1024, HASH_BITS = 64 };

static const char *const deques[] = {"split",    "locked",    "global",   "abp",
                                     "chaselev", "bwos_lifo", "bwos_fifo"};

static int print_help(void)
{
    puts("usage: " PROGRAM " make <folder> [<seed>] [kib=262144] [directories=600] [files=2500]\n"
         "       " PROGRAM
         " find <workers> [--deque <kind>] [--blocking] [--list] [--hash-bits <n>] <folder>\n"
         "       " PROGRAM " forget <folder>\n"
         "Make a tree with duplicate files, or find the duplicates. bench/dups/compare does both.\n"
         "\n"
         "      --deque <kind>     split, locked, global, abp, chaselev, bwos_lifo, bwos_fifo;\n"
         "                         as in FILCH_DEQUE\n"
         "      --blocking         the same tasks with system calls that block the worker\n"
         "      --list             also print the duplicates, group by group\n"
         "      --hash-bits <n>    bits of a hash that count; with fewer, more files are compared\n"
         "                         [64]");
    return EXIT_SUCCESS;
}

static int fail_usage(const char *problem, const char *argument)
{
    fprintf(stderr, PROGRAM ": %s '%s' (" PROGRAM " --help)\n", problem, argument);
    return EXIT_USAGE;
}

static int fail(const char *what, int err)
{
    fprintf(stderr, PROGRAM ": %s: %s\n", what, strerror(-err));
    return EXIT_FAILURE;
}

static bool parse(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    return !errno && *text >= '0' && *text <= '9' && !*end && *value >= least && *value <= most;
}

/* ---- make ------------------------------------------------------------------------------------ */

static int make(char **arguments)
{
    dups_plan plan = {.seed = 1, .kib = 256 << 10, .directories = 600, .files = 2500};
    const struct {
        const char *name;
        uint64_t *value;
    } settings[] = {
        {"kib=", &plan.kib}, {"directories=", &plan.directories}, {"files=", &plan.files}};
    const char *folder = *arguments++;

    if (*arguments && !strchr(*arguments, '=') && !parse(*arguments++, 0, UINT64_MAX, &plan.seed))
        return fail_usage("the seed must be a number, not", arguments[-1]);
    for (; *arguments; arguments++) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
            size_t length = strlen(settings[i].name);
            if (strncmp(*arguments, settings[i].name, length) == 0)
                is_known = parse(*arguments + length, 1, UINT32_MAX, settings[i].value);
        }
        if (!is_known)
            return fail_usage("this cannot be:", *arguments);
    }
    int err = dups_make(folder, &plan);
    return err ? fail(folder, err) : EXIT_SUCCESS;
}

/* ---- find ------------------------------------------------------------------------------------ */

/* fib(27) = 196418 takes half a millisecond. */
enum { WARM_UP_SIZE = 27, WARM_UP_RESULT = 196418 };

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

static void print_figures(filch_pool *pool, const dups_search *search, unsigned workers,
                          const struct rusage *before, const struct rusage *after,
                          const filch_counters *counted)
{
    const char *way = search->is_blocking ? "blocking" : filch_pool_io(pool);
    filch_counters counters = {.size = sizeof counters};

    filch_pool_counters(pool, &counters);
    printf("RESULT %s find %u ns=%" PRIu64 " walk_ns=%" PRIu64 " hash_ns=%" PRIu64
           " check_ns=%" PRIu64,
           search->is_blocking ? "blocking" : "filch", workers,
           search->walk_ns + search->hash_ns + search->check_ns, search->walk_ns, search->hash_ns,
           search->check_ns);
    printf(" tasks=%" PRIu64 " stolen=%" PRIu64 " io_stolen=%" PRIu64 " suspensions=%" PRIu64,
           search->tasks, search->stolen, search->moved,
           counters.suspensions - counted->suspensions);
    printf(" voluntary=%ld involuntary=%ld io=%s", after->ru_nvcsw - before->ru_nvcsw,
           after->ru_nivcsw - before->ru_nivcsw, way);
    printf(" failures=%" PRIu64 " files=%" PRIu64 " directories=%" PRIu64 " bytes=%" PRIu64,
           search->failures, search->files, search->directories, search->bytes);
    dups_answer_print(&search->answer);
    puts("");
}

static int find_with(unsigned workers, dups_search *search)
{
    filch_options options = {.size = sizeof options, .workers = workers};
    struct rusage before, after;
    filch_counters counted = {.size = sizeof counted};
    filch_pool *pool;
    int err = filch_pool_create(&pool, &options);

    if (err)
        return err;
    err = warm_up(pool);
    filch_pool_counters(pool, &counted);
    getrusage(RUSAGE_SELF, &before);
    if (!err)
        err = dups_find(pool, search);
    getrusage(RUSAGE_SELF, &after);
    if (!err)
        print_figures(pool, search, workers, &before, &after, &counted);
    int destroy_err = filch_pool_destroy(pool);
    return err ? err : destroy_err;
}

/* A capacity and a block size may follow the name, as in FILCH_DEQUE. */
static bool is_deque(const char *text)
{
    size_t length = strcspn(text, ":");

    for (size_t i = 0; i < sizeof deques / sizeof deques[0]; i++)
        if (strlen(deques[i]) == length && strncmp(deques[i], text, length) == 0)
            return true;
    return false;
}

static int find(int argc, char **argv)
{
    static const struct option options[] = {{"deque", required_argument, NULL, 'd'},
                                            {"blocking", no_argument, NULL, 'b'},
                                            {"list", no_argument, NULL, 'l'},
                                            {"hash-bits", required_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    dups_search search = {.hash_bits = HASH_BITS};
    uint64_t workers, bits;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            search.is_blocking = true;
        else if (option == 'l')
            search.list = stdout;
        else if (option == 'h' && parse(optarg, 0, HASH_BITS, &bits))
            search.hash_bits = (unsigned)bits;
        else if (option == 'd' && is_deque(optarg))
            setenv("FILCH_DEQUE", optarg, true);
        else
            return fail_usage(option == '?' ? "unknown option, or nothing behind it:"
                                            : "this cannot be:",
                              option == '?' ? argv[optind - 1] : optarg);
    }
    if (argc - optind != 2)
        return fail_usage("find takes the number of workers and a folder, not",
                          argc > optind ? argv[argc - 1] : "nothing");
    if (!parse(argv[optind], 1, WORKERS_MAX, &workers))
        return fail_usage("workers must be a number from 1 to 1024, not", argv[optind]);
    search.folder = argv[optind + 1];
    int err = find_with((unsigned)workers, &search);
    return err ? fail(search.folder, err) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "nothing";

    if (strcmp(command, "--help") == 0)
        return print_help();
    if (strcmp(command, "make") == 0 && argc > 2)
        return make(argv + 2);
    if (strcmp(command, "find") == 0 && argc > 2)
        return find(argc - 1, argv + 1);
    if (strcmp(command, "forget") == 0 && argc == 3) {
        int err = dups_forget(argv[2]);
        return err ? fail(argv[2], err) : EXIT_SUCCESS;
    }
    return fail_usage(argc > 1 ? "unknown command, or not all it takes:" : "no command:", command);
}
