/* SPDX-License-Identifier: MIT */
/*
 * The machine that the library sees in the model: two CPUs, and an environment that fails when the
 * client lets it.
 *
 * This file replaces src/base/topology.c and cgroup.c, which read /sys, src/base/barrier.c,
 * src/base/thread_clock.c, and src/worker/dump_signal.c, which handles a signal.
 */
#include "base/barrier.h"
#include "base/fault.h"
#include "base/thread_clock.h"
#include "base/topology.h"
#include "mc/libc.h"
#include "worker/dump_signal.h"
#include "worker/timer.h"

#include <errno.h>
#include <limits.h>
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

/* Only the client `crowd` has more workers than may be awake. */
unsigned filch_topology_limit(unsigned cpu_count, const char *root)
{
    (void)root;
    return cpu_count > 0 ? UINT_MAX : 0;
}

unsigned filch_topology_parse_count(const char *text)
{
    (void)text;
    return 0;
}

filch_thread_clock filch_thread_clock_self(void)
{
    return 1;
}

uint64_t filch_thread_clock_ns(filch_thread_clock clock)
{
    return clock;
}

bool filch_thread_clock_is_blocked(filch_thread_clock clock)
{
    return clock != FILCH_NO_THREAD;
}

void filch_thread_clock_add_cpus(filch_thread_clock clock, filch_thread_cpus *cpus)
{
    (void)clock, (void)cpus;
}

/* Only the client `crowd` has more workers than may be awake. */
unsigned filch_thread_cpus_count(const filch_thread_cpus *cpus)
{
    (void)cpus;
    return UINT_MAX;
}

unsigned filch_topology_default_workers(const filch_topology *topology, const char *root,
                                        unsigned *at_hand, char *why, size_t why_size)
{
    *at_hand = UINT_MAX;
    (void)root;
    snprintf(why, why_size, "%u workers: one for each CPU of the model", topology->cpu_count);
    return topology->cpu_count;
}

void filch_topology_fini(filch_topology *topology)
{
    free(topology->cpus);
}
