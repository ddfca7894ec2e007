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

/* A CPU that went away since the pool was created is no reason to fail. */
static void pin(const filch_worker *worker)
{
    const filch_topology *topology = &worker->pool->topology;
    unsigned id = topology->cpus[worker->index % topology->cpu_count].id;
    cpu_set_t *set = CPU_ALLOC(id + 1);
    size_t bytes = CPU_ALLOC_SIZE(id + 1);

    if (!set)
        return;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(id, bytes, set);
    pthread_setaffinity_np(pthread_self(), bytes, set);
    CPU_FREE(set);
}

void filch_thread_start(filch_worker *worker)
{
    const filch_options *options = &worker->pool->options;

    set_name(worker);
    if (options->pin)
        pin(worker);
    if (options->report_overflow)
        filch_overflow_enter(&worker->overflow);
    if (options->on_start)
        options->on_start(options->hook_context, worker->index);
}

void filch_thread_stop(filch_worker *worker)
{
    const filch_options *options = &worker->pool->options;

    if (options->on_stop)
        options->on_stop(options->hook_context, worker->index);
    if (options->report_overflow)
        filch_overflow_leave(&worker->overflow);
}
