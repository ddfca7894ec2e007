/* SPDX-License-Identifier: MIT */
#include "worker/thread.h"

#include "strand/unwind.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The kernel keeps 15 characters: shorten the pool's name, not the suffix. */
static void set_name(const filch_pool *pool, const char *rest)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s%s", 15 - (int)strlen(rest), pool->options.name, rest);
    pthread_setname_np(pthread_self(), name);
}

#define ANY_CPU UINT_MAX

/* Let the thread run on one CPU of the topology, or on all CPUs that the pool may use. A thread
 * inherits the CPUs of the thread that started it, which may have been pinned. Errors are ignored:
 * a CPU may have gone offline meanwhile. */
static void set_affinity(const filch_pool *pool, unsigned cpu)
{
    const filch_topology *topology = &pool->topology;
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
        if (cpu == ANY_CPU || i == cpu)
            CPU_SET_S(topology->cpus[i].id, bytes, set);
    pthread_setaffinity_np(pthread_self(), bytes, set);
    CPU_FREE(set);
}

typedef void hook_fn(void *context, unsigned worker_index);

FILCH_NOT_INLINED void filch_thread_call_hook(hook_fn *hook, const filch_worker *worker)
{
    if (!hook)
        return;
    hook(worker->pool->options.hook_context, worker->index);
    FILCH_STOP_UNWIND();
}

void filch_thread_start(const filch_worker *worker)
{
    char number[12];

    /* The keeper, which may have started this thread, blocks all signals. */
    pthread_sigmask(SIG_SETMASK, &worker->pool->blocked, NULL);
    snprintf(number, sizeof number, "/%u", worker->index);
    set_name(worker->pool, number);
    set_affinity(worker->pool, worker->pool->options.pin
                                   ? worker->index % worker->pool->topology.cpu_count
                                   : ANY_CPU);
}

void filch_thread_assist(const filch_pool *pool)
{
    set_name(pool, "/call");
    set_affinity(pool, ANY_CPU);
}
