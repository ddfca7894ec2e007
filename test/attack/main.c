/* SPDX-License-Identifier: MIT */
/*
 * attack: run random programs one after another, each in a child process, and report those that go
 * wrong. `attack --help` lists the options.
 */
#include "supervise.h"

#include <getopt.h>
#include <signal.h>
#include <sys/resource.h>

/* Kinds of options that have no letter. */
enum {
    OPTION_ONLY = 1000,
    OPTION_WITHOUT,
    OPTION_WITH,
    OPTION_SHRINK,
    OPTION_BUDGET,
    OPTION_DEPTH,
    OPTION_WORKERS,
    OPTION_POOLS,
    OPTION_THREADS,
    OPTION_DEQUE,
    OPTION_IO,
    OPTION_SUBMITTED,
    OPTION_SIZE,
    OPTION_OPS,
    OPTION_PRINT,
    OPTION_LIMIT,
    OPTION_TRACE,
    OPTION_TRIES,
    OPTION_KEEP,
};

static void print_parts(FILE *out)
{
    fprintf(out, "operations:");
    for (unsigned i = 0; i < PART_COUNT; i++)
        fprintf(out, "%s %s",
                i == OPERATION_COUNT ? "\nsurroundings:"
                : i == FIRST_FAULT   ? "\nfaults:"
                                     : "",
                part_names[i]);
    fprintf(out, "\n");
}

static void help(void)
{
    printf(
        "usage: attack [options]\n"
        "Run random programs while system calls fail, and check what they have counted.\n"
        "  --seed N         the first seed [from the clock]\n"
        "  --count N        how many seeds to run, counting up from the first\n"
        "  --seconds S      without --count: how long to run seeds [10]\n"
        "  --jobs J         how many programs to run at once [1]\n"
        "  --only PARTS     operations to run: tree,scope\n"
        "  --without PARTS  operations, surroundings and faults to leave out; `faults`: all\n"
        "  --with PARTS     parts to run that this build leaves out otherwise\n"
        "  --budget N       number of operations of a program [%u]\n"
        "  --depth N        how deep operations may nest [%u]\n"
        "  --workers, --pools, --threads N   at most N of these\n"
        "  --submitted N    at most N - 1 tasks submitted at the start\n"
        "  --size N         at most N tasks, entries or bytes in one operation\n"
        "  --ops IDS        run these operations only, as --shrink prints them\n"
        "  --deque D, --io W  one deque, one way of I/O, whatever the seed chooses\n"
        "  --limit S        seconds without progress until a program hangs; more with load [%u]\n"
        "  --shrink SEED    find the smallest program that still fails, and print it\n"
        "  --tries N        for --shrink: how many runs without a failure make a program good "
        "[5];\n"
        "                   more if the seed fails only sometimes\n"
        "  --print          print each program that has run in pseudo-C; one, without --count\n"
        "  --trace          print each operation\n"
        "  --keep-going     go on after a failure\n",
        DEFAULT_BUDGET, DEFAULT_DEPTH, DEFAULT_LIMIT_S);
    print_parts(stdout);
}

static uint64_t parse_parts(char *text)
{
    uint64_t parts = 0;
    char *rest = text, *name;

    while ((name = strsep(&rest, ","))) {
        unsigned i = 0;
        if (strcmp(name, "faults") == 0) {
            for (i = FIRST_FAULT; i < PART_COUNT; i++)
                parts |= 1ull << i;
            continue;
        }
        while (i < PART_COUNT && strcmp(part_names[i], name) != 0)
            i++;
        if (i == PART_COUNT) {
            fprintf(stderr, "attack: there is no '%s'\n", name);
            print_parts(stderr);
            exit(2);
        }
        parts |= 1ull << i;
    }
    return parts;
}

/* Parts that are left out, unless --with asks for them. */
static uint64_t parts_left_out(void)
{
    uint64_t parts = 0;

    /* In the child of a fork() with several threads, ThreadSanitizer does not work, and
     * AddressSanitizer may wait for a lock of its allocator that another thread held. */
    if (ATTACK_TSAN || ATTACK_ASAN)
        parts |= 1ull << PART_child;
    return parts;
}

static unsigned parse_number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 0);

    if (*end || !*text || value == 0 || value > 1000000) {
        fprintf(stderr, "attack: '%s' is no number from 1 to 1000000\n", text);
        exit(2);
    }
    return (unsigned)value;
}

static void parse_operations(settings *s, char *text)
{
    char *rest = text, *id, *end;

    while ((id = strsep(&rest, ","))) {
        if (s->only_count == ONLY_MAX) {
            fprintf(stderr, "attack: --ops has room for %u operations\n", ONLY_MAX);
            exit(2);
        }
        s->only[s->only_count++] = (uint32_t)strtoul(id, &end, 16);
        if (*end || !*id) {
            fprintf(stderr, "attack: '%s' is no operation\n", id);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 't'},
        {"jobs", required_argument, NULL, 'j'},
        {"only", required_argument, NULL, OPTION_ONLY},
        {"without", required_argument, NULL, OPTION_WITHOUT},
        {"with", required_argument, NULL, OPTION_WITH},
        {"shrink", required_argument, NULL, OPTION_SHRINK},
        {"budget", required_argument, NULL, OPTION_BUDGET},
        {"depth", required_argument, NULL, OPTION_DEPTH},
        {"workers", required_argument, NULL, OPTION_WORKERS},
        {"pools", required_argument, NULL, OPTION_POOLS},
        {"threads", required_argument, NULL, OPTION_THREADS},
        {"deque", required_argument, NULL, OPTION_DEQUE},
        {"io", required_argument, NULL, OPTION_IO},
        {"submitted", required_argument, NULL, OPTION_SUBMITTED},
        {"size", required_argument, NULL, OPTION_SIZE},
        {"ops", required_argument, NULL, OPTION_OPS},
        {"print", no_argument, NULL, OPTION_PRINT},
        {"limit", required_argument, NULL, OPTION_LIMIT},
        {"tries", required_argument, NULL, OPTION_TRIES},
        {"trace", no_argument, NULL, OPTION_TRACE},
        {"keep-going", no_argument, NULL, OPTION_KEEP},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    run r = {.program = argv[0],
             .first = {.seed = (uint64_t)time(NULL) * 1000,
                       .parts = ((1ull << PART_COUNT) - 1) & ~parts_left_out(),
                       .budget = DEFAULT_BUDGET,
                       .depth = DEFAULT_DEPTH,
                       .worker_limit = 1000,
                       .pool_limit = POOLS_MAX,
                       .thread_limit = 1000,
                       .loose_limit = 1000,
                       .size_limit = 1000000},
             .jobs = 1,
             .limit_s = DEFAULT_LIMIT_S,
             .tries = 5};
    const uint64_t all_operations = (1ull << OPERATION_COUNT) - 1;
    bool is_to_shrink = false;
    int letter;

    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (letter) {
        case OPTION_SHRINK:
            is_to_shrink = true;
            r.first.seed = strtoull(optarg, NULL, 0);
            break;
        case 's':
            r.first.seed = strtoull(optarg, NULL, 0);
            break;
        case 'n':
            r.count = parse_number(optarg);
            break;
        case 't':
            r.seconds = parse_number(optarg);
            break;
        case 'j':
            r.jobs = parse_number(optarg);
            break;
        case OPTION_ONLY:
            r.first.parts &= ~all_operations | parse_parts(optarg);
            break;
        case OPTION_WITHOUT:
            r.first.parts &= ~parse_parts(optarg);
            break;
        case OPTION_WITH:
            r.first.parts |= parse_parts(optarg);
            break;
        case OPTION_BUDGET:
            r.first.budget = parse_number(optarg);
            break;
        case OPTION_DEPTH:
            r.first.depth = parse_number(optarg);
            break;
        case OPTION_WORKERS:
            r.first.worker_limit = parse_number(optarg);
            break;
        case OPTION_POOLS:
            r.first.pool_limit = parse_number(optarg);
            break;
        case OPTION_THREADS:
            r.first.thread_limit = parse_number(optarg) - 1;
            break;
        case OPTION_SUBMITTED:
            r.first.loose_limit = parse_number(optarg) - 1;
            break;
        case OPTION_SIZE:
            r.first.size_limit = parse_number(optarg);
            break;
        case OPTION_OPS:
            parse_operations(&r.first, optarg);
            break;
        case OPTION_PRINT:
            r.prints = true;
            break;
        case OPTION_DEQUE:
            r.first.deque = optarg;
            break;
        case OPTION_IO:
            r.first.io = optarg;
            break;
        case OPTION_LIMIT:
            r.limit_s = parse_number(optarg);
            break;
        case OPTION_TRIES:
            r.tries = parse_number(optarg);
            break;
        case OPTION_TRACE:
            r.first.is_traced = true;
            break;
        case OPTION_KEEP:
            r.keeps_going = true;
            break;
        case 'h':
            help();
            return 0;
        default:
            return 2;
        }
    if (is_to_shrink)
        return shrink(&r);
    if (r.seconds == 0 && r.prints && r.count == 0)
        r.count = 1;
    if (r.seconds == 0)
        r.seconds = 10;
    return run_seeds(&r);
}
