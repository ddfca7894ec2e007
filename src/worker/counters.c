/* SPDX-License-Identifier: MIT */
/*
 * Read the counters of filch/trace.h: each worker writes its own, and a reader adds them up.
 */
#include "base/options.h"
#include "worker/worker.h"

#include <errno.h>
#include <string.h>

static void add(filch_counters *sum, const filch_worker *worker)
{
    /* relaxed: a count that its worker keeps changing. */
#define ADD(name) sum->name += filch_load_relaxed(&worker->counters[FILCH_COUNT_##name]);
    FILCH_COUNTERS(ADD)
}

/* The caller's struct may be of an older or a newer header: `to->size` says how long it is. */
static void copy_out(filch_counters *to, const filch_counters *sum)
{
    size_t size = to->size, known = sizeof *sum;

    memset((char *)to + sizeof to->size, 0, size - sizeof to->size);
    memcpy((char *)to + sizeof to->size, (const char *)sum + sizeof sum->size,
           (size < known ? size : known) - sizeof to->size);
}

/* The workers from `first` to before `end`. */
static int read_counters(const filch_pool *pool, unsigned first, unsigned end,
                         filch_counters *counters)
{
    filch_counters sum = {.size = sizeof sum};

    if (!counters || counters->size < sizeof counters->size ||
        counters->size > FILCH_LARGEST_STRUCT_BYTES)
        return -EINVAL;
    for (unsigned i = first; i < end; i++)
        add(&sum, pool->workers[i]);
    copy_out(counters, &sum);
    return 0;
}

int filch_worker_counters(const filch_pool *pool, unsigned worker_index, filch_counters *counters)
{
    if (!pool || worker_index >= pool->worker_count)
        return -EINVAL;
    return read_counters(pool, worker_index, worker_index + 1, counters);
}

int filch_pool_counters(const filch_pool *pool, filch_counters *counters)
{
    return pool ? read_counters(pool, 0, pool->worker_count, counters) : -EINVAL;
}
