/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait for a job. job.h has the states, README.md the edges.
 */
#include "worker/job.h"

#include "base/clock.h"

/* Mark the job AWAITED: the worker that completes it will wake this thread. False: it is done. */
static bool will_wake(filch_job *job)
{
    uint32_t state = FILCH_JOB_PENDING;
    /* acq_rel [job-done] */
    return filch_cas_acq_rel(&job->state, &state, FILCH_JOB_AWAITED) || state != FILCH_JOB_DONE;
}

void filch_job_wait(filch_job *job)
{
    if (!will_wake(job))
        return;
    while (!filch_job_is_done(job))
        filch_futex_wait(&job->state, FILCH_JOB_AWAITED, NULL);
}

void filch_job_wait_for(filch_job *job, uint64_t ns)
{
    struct timespec timeout = filch_timespec(ns);

    if (will_wake(job) && !filch_job_is_done(job))
        filch_futex_wait(&job->state, FILCH_JOB_AWAITED, &timeout);
}
