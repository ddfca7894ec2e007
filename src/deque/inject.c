/* SPDX-License-Identifier: MIT */
#include "deque/inject.h"

void filch_inject_init(filch_inject *queue)
{
    filch_lock_init(&queue->lock);
    queue->first = NULL;
    queue->last = &queue->first;
    /* relaxed: nobody else knows the queue yet. */
    filch_store_relaxed(&queue->count, 0);
}

void filch_inject_push(filch_inject *queue, filch_job *job)
{
    job->next = NULL;
    filch_lock_acquire(&queue->lock);
    *queue->last = job;
    queue->last = &job->next;
    /* seq_cst [inject-or-sleep] */
    filch_fetch_add_seq_cst(&queue->count, 1);
    filch_lock_release(&queue->lock);
}

filch_job *filch_inject_take(filch_inject *queue)
{
    /* relaxed: a hint; whoever goes to sleep looks again with filch_inject_is_empty. */
    if (filch_load_relaxed(&queue->count) == 0)
        return NULL;
    filch_lock_acquire(&queue->lock);
    filch_job *job = queue->first;
    if (job) {
        queue->first = job->next;
        if (!queue->first)
            queue->last = &queue->first;
        /* relaxed: under the lock; only a count too low would hurt. */
        filch_fetch_add_relaxed(&queue->count, -1u);
    }
    filch_lock_release(&queue->lock);
    return job;
}

void filch_job_wait(filch_job *job)
{
    uint32_t state = FILCH_JOB_PENDING;
    /* acq_rel [job-done] */
    if (!filch_cas_acq_rel(&job->state, &state, FILCH_JOB_AWAITED) && state == FILCH_JOB_DONE)
        return;
    while (!filch_job_is_done(job))
        filch_futex_wait(&job->state, FILCH_JOB_AWAITED, NULL);
}
