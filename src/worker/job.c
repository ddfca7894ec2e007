/* SPDX-License-Identifier: MIT */
/*
 * The edges are in job.h.
 */
#include "worker/job.h"

void filch_job_wait(filch_job *job)
{
    uint32_t state = FILCH_JOB_PENDING;
    /* acq_rel [job-done] */
    if (!filch_cas_acq_rel(&job->state, &state, FILCH_JOB_AWAITED) && state == FILCH_JOB_DONE)
        return;
    while (!filch_job_is_done(job))
        filch_futex_wait(&job->state, FILCH_JOB_AWAITED, NULL);
}
