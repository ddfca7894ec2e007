/* SPDX-License-Identifier: MIT */
#include "worker/thread.h"

#include "strand/unwind.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The kernel keeps 15 characters: shorten the pool's name, not the suffix. */
static void set_name(const filch_pool *pool, const char *rest)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s%s", 15 - (int)strlen(rest), pool->options.name, rest);
    pthread_setname_np(pthread_self(), name);
}

/* ---- the creator ----------------------------------------------------------------------------- */

void filch_thread_note_creator(filch_pool *pool)
{
    struct sched_param param = {0};
    int policy = sched_getscheduler(0);

    sched_getparam(0, &param);
    pool->creator = (filch_creator){
        .policy = policy,
        .priority = param.sched_priority,
        .nice = getpriority(PRIO_PROCESS, 0),
    };
    if (policy & SCHED_RESET_ON_FORK)
        pool->creator.policy = -1;
    pthread_sigmask(SIG_SETMASK, NULL, &pool->creator.blocked);
}

/* A thread inherits from the thread that starts it: from the keeper, which blocks all signals, or
 * from a thread in filch_run. Errors are ignored: the process may have no right to a higher
 * priority. */
static void be_like_creator(const filch_pool *pool)
{
    const filch_creator *creator = &pool->creator;
    struct sched_param param = {0};

    pthread_sigmask(SIG_SETMASK, &creator->blocked, NULL);
    if (creator->policy < 0)
        return;
    sched_getparam(0, &param);
    if (sched_getscheduler(0) != creator->policy || param.sched_priority != creator->priority) {
        param.sched_priority = creator->priority;
        sched_setscheduler(0, creator->policy, &param);
    }
    if (getpriority(PRIO_PROCESS, 0) != creator->nice)
        setpriority(PRIO_PROCESS, 0, creator->nice);
}

/* ---- start ----------------------------------------------------------------------------------- */

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

    be_like_creator(worker->pool);
    snprintf(number, sizeof number, "/%u", worker->index);
    set_name(worker->pool, number);
    bool is_pinned = worker->pool->options.pin && worker->index < worker->pool->topology.cpu_count;
    set_affinity(worker->pool, is_pinned ? worker->index : ANY_CPU);
}

void filch_thread_assist(const filch_pool *pool, const char *suffix)
{
    be_like_creator(pool);
    set_name(pool, suffix);
    set_affinity(pool, ANY_CPU);
}
