/* SPDX-License-Identifier: MIT */
/*
 * A job: a task outside a slot, run or submitted from outside or spawned into a scope. A thread
 * waits for its end in the kernel, a strand by leaving its stack.
 *
 *     PENDING --- a thread will sleep ---> AWAITED ---.
 *        |                                             +--> DONE, which wakes the waiter
 *        '------- a strand has left ----> SUSPENDED --'
 *
 * The worker that runs the job makes it DONE by one exchange, its last access to the job. The
 * waiter makes the other steps, each by one compare and swap. README.md has the edges.
 */
#ifndef FILCH_WORKER_JOB_H
#define FILCH_WORKER_JOB_H

#include "deque/queue.h"

#include <filch/pool.h>

enum filch_job_state {
    FILCH_JOB_PENDING,
    FILCH_JOB_AWAITED,   /* pending, and a thread sleeps until the job is done */
    FILCH_JOB_SUSPENDED, /* pending, and the strand that waits for it has left its stack */
    FILCH_JOB_DONE,
};

typedef struct filch_job filch_job;
struct filch_job {
    filch_link link; /* first: a link in a queue of jobs is the job */
    filch_fn *fn;
    void *arg;
    uintptr_t named;         /* the function that dumps and messages name; 0: fn */
    void *waiter;            /* if SUSPENDED: the strand that waits for this job, */
    filch_pool *waiter_pool; /* and its pool */
    filch_atomic_u32 state;  /* only of the job of a filch_run */

    /* Called when the task has ended, on its strand, as the last access to the job. NULL: this is
     * the job of a filch_run. */
    void (*end)(filch_job *job, filch_pool *pool);

    /* Called instead of running the job if there will be no memory for it. NULL: the job waits for
     * memory. */
    void (*refuse)(filch_job *job, filch_pool *pool);

    /* Inherited by the task. */
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

/* The same, for `ns` nanoseconds at most. */
void filch_job_wait_for(filch_job *job, uint64_t ns);

#endif
