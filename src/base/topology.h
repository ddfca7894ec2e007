/* SPDX-License-Identifier: MIT */
/*
 * The CPUs this process may run on, in the order in which workers should take them.
 *
 *     index    0  1  2  3 | 4  5  6  7      one CPU of each physical core first, their
 *     CPU      0  1  2  3 | 8  9 10 11      SMT siblings last; within both, those that
 *     core     0  1  2  3 | 0  1  2  3      share a package and an L3 cache stand
 *     l3       0  0  2  2 | 0  0  2  2      together
 *
 * A core, an L3 cache, a package is called by the smallest CPU that belongs to it, which
 * is unique in the machine, as the kernel's own core numbers are not. Two CPUs are near
 * when those names are equal.
 */
#ifndef FILCH_BASE_TOPOLOGY_H
#define FILCH_BASE_TOPOLOGY_H

#include <stddef.h>

typedef struct filch_cpu {
    unsigned id; /* the kernel's number, for sched_setaffinity */
    unsigned core;
    unsigned l3; /* the package, on a machine without one */
    unsigned package;
    unsigned sibling; /* 0: the first we may use of its core, 1: the second ... */
} filch_cpu;

typedef struct filch_topology {
    unsigned cpu_count; /* at least 1 */
    filch_cpu *cpus;
} filch_topology;

/* Read the affinity mask of the calling thread: how many CPUs there are, and their ids, ascending. 0, -ENOMEM, or what
 * sched_getaffinity failed with. */
int filch_topology_init(filch_topology *topology);

/*
 * Read cores and caches from `root`/sys ("" on a real system), and bring the CPUs into the order in which workers take them. Without
 * those files all CPUs are cores of one package. A dozen files for each CPU: only for who needs to know.
 */
void filch_topology_explore(filch_topology *topology, const char *root);

/*
 * The number of workers that fits: one for each CPU, but not more than the cgroup quota.
 * A positive number in the environment variable FILCH_WORKERS overrides both. `why`
 * becomes a sentence for people that tells how this came about, and what was ignored.
 */
unsigned filch_topology_default_workers(const filch_topology *topology, const char *root, char *why,
                                        size_t why_size);

void filch_topology_fini(filch_topology *topology);

#endif
