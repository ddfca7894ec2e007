/* SPDX-License-Identifier: MIT */
#include "worker/thread.h"

#include <sched.h>
#include <stdio.h>

/* The kernel keeps 15 characters: shorten the pool's name, not the number. */
static void set_name(const filch_worker *worker)
{
    char name[16], number[12];
    int digits = snprintf(number, sizeof number, "/%u", worker->index);
    snprintf(name, sizeof name, "%.*s%s", 15 - digits, worker->pool->options.name, number);
    pthread_setname_np(pthread_self(), name);
}

/* On one CPU, or on all that the pool may use: a thread is started by whoever has work for it, and that one may have
 * been kept to a single CPU. A CPU that went away meanwhile is no reason to fail. */
static void set_affinity(const filch_worker *worker)
{
    const filch_topology *topology = &worker->pool->topology;
    unsigned largest = 0;

    for (unsigned i = 0; i < topology->cpu_count; i++)
        if (topology->cpus[i].id > largest)
            largest = topology->cpus[i].id;
    cpu_set_t *set = CPU_ALLOC(largest + 1);
    size_t bytes = CPU_ALLOC_SIZE(largest + 1);
    if (!set)
        return;
    CPU_ZERO_S(bytes, set);
    for (unsigned i = 0; i < topology->cpu_count; i++)
        if (!worker->pool->options.pin || i == worker->index % topology->cpu_count)
            CPU_SET_S(topology->cpus[i].id, bytes, set);
    pthread_setaffinity_np(pthread_self(), bytes, set);
    CPU_FREE(set);
}

void filch_thread_start(filch_worker *worker, filch_overflow *overflow)
{
    const filch_options *options = &worker->pool->options;

    set_name(worker);
    set_affinity(worker);
    if (options->report_overflow)
        filch_overflow_enter(overflow);
    if (options->on_start)
        options->on_start(options->hook_context, worker->index);
}

void filch_thread_stop(filch_worker *worker, filch_overflow *overflow)
{
    const filch_options *options = &worker->pool->options;

    if (options->on_stop)
        options->on_stop(options->hook_context, worker->index);
    if (options->report_overflow)
        filch_overflow_leave(overflow);
}
