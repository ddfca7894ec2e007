/* SPDX-License-Identifier: MIT */
/*
 * What a work of filch-bench-wait looks like to main.c. Each is one file of this folder, and checks its own result.
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

/* The value of a setting, or its default. A number that is none, or below `least`, ends the program. */
long wait_number(const wait_run *run, const char *name, long least, long otherwise);
const char *wait_text(const wait_run *run, const char *name, const char *otherwise);

/* Add a figure to the line of results. */
void wait_figure(const char *name, double value);

/* Run once. 0, or -errno; -EBADMSG: the result is wrong. */
int wait_mapreduce(const wait_run *run);
int wait_overhead(const wait_run *run);
int wait_mix(const wait_run *run);
int wait_sleepers(const wait_run *run);
int wait_complete(const wait_run *run);
int wait_pingpong(const wait_run *run);
int wait_mutex(const wait_run *run);
int wait_channel(const wait_run *run);

/* ---- kernel.c ---------------------------------------------------------------------------------- */

/* fib(n) as a program without tasks computes it. */
long serial_fib(long n);

/* The same without recursion: what results are checked with. */
long known_fib(long n);

/* Keep this thread in the kernel for so long. */
void block_ns(uint64_t ns);

#endif
