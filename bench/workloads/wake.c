/* SPDX-License-Identifier: MIT */
/*
 * wake: the time from a submit to an idle pool until the first instruction of the task. For
 * comparison: the bare wake-up of a thread that sleeps on a futex. The size is the number of
 * samples.
 */
#include "bench.h"

#include <errno.h>

#if BENCH_FILCH

static void note_start(filch_frame *f, void *unused)
{
    (void)f;
    (void)unused;
    probe_wake_started();
}

static void submit(void *pool)
{
    /* An error shows up as a task that never starts. */
    (void)filch_submit(pool, note_start, NULL);
}

int bench_wake(bench_run *run)
{
    int err = probe_wake(run->size, submit, run->pool, &run->wake);
    if (err)
        return err;
    return filch_pool_wait(run->pool);
}

#else

int bench_wake(bench_run *run)
{
    (void)run;
    return -ENOTSUP;
}

#endif
