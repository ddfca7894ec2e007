/* SPDX-License-Identifier: MIT */
/*
 * The interface between main.c and the works of filch-bench-wait. Each work checks its own result.
 */
#ifndef BENCH_WAIT_H
#define BENCH_WAIT_H

#include "../workloads/probe.h"

#include <filch/filch.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct wait_run {
    filch_pool *pool; /* its threads have started, and the cores are warm */
    unsigned workers;
    char **settings; /* "name=value", as on the command line; NULL at the end */
} wait_run;

/* The value of a setting, or its default. Exits with 2 if a number is invalid or below `least`. */
long wait_number(const wait_run *run, const char *name, long least, long otherwise);
const char *wait_text(const wait_run *run, const char *name, const char *otherwise);

/* Add a figure to the result line. */
void wait_figure(const char *name, double value);

/* Run once. Returns 0 or -errno; -EBADMSG: the result is wrong. */
int wait_mapreduce(const wait_run *run);
int wait_overhead(const wait_run *run);
int wait_mix(const wait_run *run);
int wait_sleepers(const wait_run *run);
int wait_complete(const wait_run *run);
int wait_pingpong(const wait_run *run);
int wait_mutex(const wait_run *run);
int wait_channel(const wait_run *run);

/* ---- kernel.c -------------------------------------------------------------------------------- */

/* fib(n), recursively and without tasks. */
long serial_fib(long n);

/* fib(n) without recursion, to check results. */
long known_fib(long n);

/* Block this thread in the kernel for `ns`. */
void block_ns(uint64_t ns);

#endif
