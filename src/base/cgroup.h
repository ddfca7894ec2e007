/* SPDX-License-Identifier: MIT */
/*
 * How many CPUs the cgroups of this process let it use.
 *
 * A process sits at the end of a path of cgroups, each of which may carry a quota: so
 * many microseconds of CPU time per period. The smallest on the way to the root counts.
 */
#ifndef FILCH_BASE_CGROUP_H
#define FILCH_BASE_CGROUP_H

#include <stddef.h>

/*
 * Set `*cpus` to the smallest quota in whole CPUs, rounded up; 0 means there is none.
 *
 * `root` stands before every path: "" on a real system, in a test a directory with its
 * own proc and sys. `why` becomes half a sentence for people: "cgroup quota 1.5 CPUs
 * (/pod)". Files that are missing or make no sense are no quota; `why` tells the latter.
 *
 * 0 or -ENOMEM.
 */
int filch_cgroup_cpus(const char *root, unsigned *cpus, char *why, size_t why_size);

#endif
