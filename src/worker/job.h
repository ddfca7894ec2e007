/* SPDX-License-Identifier: MIT */
/*
 * A task from outside, and how somebody waits for its end: a thread in the kernel, or a strand that is left.
 *
 *     PENDING --- a thread will sleep ---> AWAITED ----.
 *        |                                              +--> DONE, which wakes the waiter
 *        '------- a strand was left ----> SUSPENDED ---'
 *
 * The one who runs the job makes it DONE by one exchange, which is its last touch. The waiter makes the other steps, each by one cas.
 *
 * Edges
 *   job-done      finish_job in src/worker/run.c -> filch_job_wait, filch_job_is_done, await_job
 *                 carries all that the job did.
 *   strand-waits  await_job -> finish_job: who the waiter is (src/wait/README.md).
 */
#ifndef FILCH_WORKER_JOB_H
#define FILCH_WORKER_JOB_H

#include "deque/queue.h"

#include <filch/pool.h>

enum filch_job_state {
    FILCH_JOB_PENDING,
    FILCH_JOB_AWAITED,   /* pending, and a thread sleeps until it is done */
    FILCH_JOB_SUSPENDED, /* pending, and the strand that waits for it was left */
    FILCH_JOB_DONE,
};

typedef struct filch_job filch_job;
struct filch_job {
    filch_link link; /* first: in the inject queue it is the job */
    filch_fn *fn;
    void *arg;
    void *waiter;            /* the strand that waits for this job */
    filch_pool *waiter_pool; /* and its pool */
    filch_atomic_u32 state;  /* of a job somebody waits for */

    /* Called at its end, on its strand, as the last touch; NULL: it is that of a filch_run. */
    void (*end)(filch_job *job, filch_pool *pool);

    /* Called in place of it all, where there will be no memory to run it on; NULL: it waits for some. */
    void (*refuse)(filch_job *job, filch_pool *pool);

    /* What the task inherits. */
    struct filch_scope *scope;
    struct filch_binding *locals;
};

static inline bool filch_job_is_done(filch_job *job)
{
    /* acquire [job-done] */
    return filch_load_acquire(&job->state) == FILCH_JOB_DONE;
}

/* Block this thread until the job is done. */
void filch_job_wait(filch_job *job);

/* The same, but for so long at most. */
void filch_job_wait_for(filch_job *job, uint64_t ns);

#endif
