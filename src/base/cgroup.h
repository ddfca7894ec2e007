/* SPDX-License-Identifier: MIT */
/*
 * How many CPUs the cgroups of this process let it use.
 *
 * A process is at the end of a path of cgroups. Each cgroup may have a quota: microseconds of CPU
 * time per period. The smallest quota on the path to the root counts.
 */
#ifndef FILCH_BASE_CGROUP_H
#define FILCH_BASE_CGROUP_H

#include <stddef.h>

/*
 * Set *cpus to the smallest quota in whole CPUs, rounded up; 0 means there is no quota.
 *
 * `root` is put before every path: "" on a real system, in a test a directory with its own proc and
 * sys. `why` becomes half a sentence for people: "cgroup quota 1.5 CPUs (/pod)". A missing or
 * invalid file counts as no quota; `why` mentions an invalid one.
 *
 * Returns 0 or -ENOMEM.
 */
int filch_cgroup_cpus(const char *root, unsigned *cpus, char *why, size_t why_size);

#endif
