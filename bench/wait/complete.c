/* SPDX-License-Identifier: MIT */
/*
 * complete: the time from filch_future_set by a plain thread until the waiting task runs, in an
 * otherwise idle pool. For comparison: the bare wake-up of a thread that sleeps on a futex
 * (workloads/probe.h).
 */
#include "wait.h"

#include <errno.h>
#include <stdlib.h>

typedef struct bell_row {
    filch_future *futures;
    long count;
    long next; /* only the completing thread uses it */
} bell_row;

FILCH_TASK(int, listen, (bell_row *, bells))
{
    int err = 0;
    for (long i = 0; i < bells->count && !err; i++) {
        err = filch_future_get(FILCH_HERE, &bells->futures[i], NULL);
        probe_wake_started();
    }
    return err;
}

static void complete(void *context)
{
    bell_row *bells = context;
    filch_future_set(&bells->futures[bells->next++], NULL, 0);
}

int wait_complete(const wait_run *run)
{
    long samples = wait_number(run, "samples", 1, 1000);
    bell_row bells = {.futures = calloc((size_t)samples, sizeof *bells.futures), .count = samples};
    probe_wake_figures wake = {0};

    if (!bells.futures)
        return -ENOMEM;
    for (long i = 0; i < samples; i++)
        filch_future_init(&bells.futures[i]);
    int err = FILCH_SUBMIT(run->pool, listen, &bells);
    if (err)
        goto free_futures;
    err = probe_wake(samples, complete, &bells, &wake);
    while (bells.next < samples) /* after a time-out: complete the rest, so that the task ends */
        complete(&bells);
    int wait_err = filch_pool_wait(run->pool);
    err = err ? err : wait_err;
    wait_figure("median_ns", (double)wake.median_ns);
    wait_figure("p99_ns", (double)wake.p99_ns);
    wait_figure("bare_median_ns", (double)wake.bare_median_ns);
    wait_figure("bare_p99_ns", (double)wake.bare_p99_ns);

free_futures:
    free(bells.futures);
    return err;
}
