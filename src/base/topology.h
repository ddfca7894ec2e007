/* SPDX-License-Identifier: MIT */
/*
 * The CPUs this process may run on, in the order in which workers should take them.
 *
 *     index    0  1  2  3 | 4  5  6  7      one CPU of each physical core first, their
 *     CPU      0  1  2  3 | 8  9 10 11      SMT siblings last; within both, CPUs that
 *     core     0  1  2  3 | 0  1  2  3      share a package and an L3 cache stand
 *     l3       0  0  2  2 | 0  0  2  2      together
 *
 * Each core, L3 cache and package is named after its smallest CPU. That number is unique in the
 * machine, unlike the kernel's own core numbers. Two CPUs are near if these names are equal.
 */
#ifndef FILCH_BASE_TOPOLOGY_H
#define FILCH_BASE_TOPOLOGY_H

#include <stddef.h>

typedef struct filch_cpu {
    unsigned id; /* the kernel's number, for sched_setaffinity */
    unsigned core;
    unsigned l3; /* the package, on a machine without L3 */
    unsigned package;
    unsigned sibling; /* 0: the first CPU of its core that we may use, 1: the second ... */
} filch_cpu;

typedef struct filch_topology {
    unsigned cpu_count; /* at least 1 */
    filch_cpu *cpus;
} filch_topology;

/* Read the affinity mask of the calling thread: the number of CPUs, and their ids in ascending
 * order. Returns 0, -ENOMEM, or the error of sched_getaffinity. */
int filch_topology_init(filch_topology *topology);

/*
 * Read cores and caches from `root`/sys ("" on a real system), and sort the CPUs in the order in
 * which workers take them. Without those files, all CPUs count as cores of one package. This reads
 * a dozen files for each CPU, so call it only when the order matters.
 */
void filch_topology_explore(filch_topology *topology, const char *root);

/* A positive decimal number and nothing else, as in FILCH_WORKERS; otherwise 0. */
unsigned filch_topology_parse_count(const char *text);

/* The CPUs at hand: `cpu_count`, or the cgroup quota if that is less. */
unsigned filch_topology_limit(unsigned cpu_count, const char *root);

/*
 * The number of workers to start by default: one for each CPU at hand. A positive number in the
 * environment variable FILCH_WORKERS overrides that. `why` becomes a sentence for people that
 * explains the number, and names settings that were ignored. *at_hand becomes the number of CPUs at
 * hand, or 0 if FILCH_WORKERS is set: then it was not read.
 */
unsigned filch_topology_default_workers(const filch_topology *topology, const char *root,
                                        unsigned *at_hand, char *why, size_t why_size);

void filch_topology_fini(filch_topology *topology);

#endif
