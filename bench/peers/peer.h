/* SPDX-License-Identifier: MIT */
/*
 * The protocol of the programs in this folder, for C and C++:
 *
 *     <program> <work> <workers> [size]
 *     RESULT <variant> <work> <workers> <nanoseconds> <checksum>
 *
 * Exit code 0; 2 for bad arguments; 77 if the runtime cannot do this work. The driver checks the
 * checksum.
 */
#ifndef PEER_H
#define PEER_H

#include "../workloads/kernels.h"
#include "../workloads/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEER_USAGE = 2, PEER_SKIP = 77, PEER_STACK_BYTES = 256 << 20 };

typedef struct peer_run {
    const char *work;
    int workers;
    long size;

    /* Filled in by the work. */
    uint64_t elapsed_ns;
    int64_t checksum;
    probe_wake_figures wake;
    bool is_unknown;
} peer_run;

static inline long peer_default_size(const char *work)
{
    static const struct {
        const char *work;
        long size;
    } sizes[] = {
        {"fib", 30},          {"nqueens", 13},   {"quicksort", 10000000}, {"matmul", 1024},
        {"uts", 2000},        {"for", 10000000}, {"small_for", 10000},    {"lumps", 2000000},
        {"hidden", 10000000}, {"flat", 1000000}, {"idle", 2000},          {"wake", 1000},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (strcmp(sizes[i].work, work) == 0)
            return sizes[i].size;
    return 0;
}

/* Returns 0, or PEER_USAGE after a message. */
static inline int peer_parse(peer_run *run, int argc, char **argv)
{
    memset(run, 0, sizeof *run);
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: %s <work> <workers> [size]\n", argv[0]);
        return PEER_USAGE;
    }
    run->work = argv[1];
    run->workers = atoi(argv[2]);
    run->size = argc == 4 ? atol(argv[3]) : peer_default_size(run->work);
    if (peer_default_size(run->work) == 0) {
        fprintf(stderr, "%s: unknown work '%s'\n", argv[0], run->work);
        return PEER_USAGE;
    }
    if (run->workers < 1 || run->size < 1) {
        fprintf(stderr, "%s: workers and size must be positive numbers\n", argv[0]);
        return PEER_USAGE;
    }
    if ((strcmp(run->work, "matmul") == 0 && !matmul_has_size(run->size)) ||
        (strcmp(run->work, "nqueens") == 0 && run->size > NQUEENS_MAX)) {
        fprintf(stderr, "%s: %s cannot have size %ld\n", argv[0], run->work, run->size);
        return PEER_USAGE;
    }
    return 0;
}

/* Print the result. Returns the exit code of the program. */
static inline int peer_finish(const char *variant, const peer_run *run)
{
    if (run->is_unknown) {
        fprintf(stderr, "%s: this runtime has no way to do '%s'\n", variant, run->work);
        return PEER_SKIP;
    }
    printf("RESULT %s %s %d ", variant, run->work, run->workers);
    if (run->wake.median_ns)
        printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", run->wake.median_ns,
               run->wake.p99_ns, run->wake.bare_median_ns, run->wake.bare_p99_ns);
    else
        printf("%" PRIu64 " %" PRId64 "\n", run->elapsed_ns, run->checksum);
    return 0;
}

static inline void *peer_allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

#endif
