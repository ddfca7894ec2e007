/* SPDX-License-Identifier: MIT */
/*
 * The machine that the library sees in the model: two CPUs, and an environment that fails when the
 * client lets it.
 *
 * This file replaces src/base/topology.c and cgroup.c, which read /sys, src/base/barrier.c, and
 * src/worker/dump_signal.c, which handles a signal.
 */
#include "base/barrier.h"
#include "base/fault.h"
#include "base/topology.h"
#include "mc/libc.h"
#include "worker/dump_signal.h"
#include "worker/timer.h"

#include <errno.h>
#include <stdio.h>

#define CPUS 2

bool filch_fault(enum filch_fault_kind kind)
{
    return mc_may_fault(kind);
}

void filch_dump_read_environment(void)
{
}

uint64_t filch_dump_serve(bool is_ending)
{
    (void)is_ending;
    return FILCH_NEVER_NS;
}

bool filch_dump_forked(void)
{
    return false;
}

void filch_barrier_prepare(void)
{
}

void filch_barrier_prepare_early(void)
{
}

bool filch_barrier_all(void)
{
    mc_barrier_all();
    return true;
}

int filch_topology_init(filch_topology *topology)
{
    topology->cpu_count = CPUS;
    topology->cpus = filch_fault(FILCH_FAULT_MALLOC) ? NULL : calloc(CPUS, sizeof *topology->cpus);
    if (!topology->cpus)
        return -ENOMEM;
    for (unsigned i = 0; i < CPUS; i++)
        topology->cpus[i] = (filch_cpu){.id = i, .core = i};
    return 0;
}

void filch_topology_explore(filch_topology *topology, const char *root)
{
    (void)topology;
    (void)root;
}

unsigned filch_topology_default_workers(const filch_topology *topology, const char *root, char *why,
                                        size_t why_size)
{
    (void)root;
    snprintf(why, why_size, "%u workers: one for each CPU of the model", topology->cpu_count);
    return topology->cpu_count;
}

void filch_topology_fini(filch_topology *topology)
{
    free(topology->cpus);
}
