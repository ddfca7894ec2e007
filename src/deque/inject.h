/* SPDX-License-Identifier: MIT */
/*
 * The inject queue: tasks that come from outside the pool, first in, first out.
 *
 * A lock and a list: it is used once per task from outside, and then for a few nanoseconds.
 *
 * Edges
 *   inject-or-sleep  filch_inject_push: count  x  filch_inject_is_empty
 *                    with the sleep word (src/sleep/README.md).
 *   job-done         finish_job in src/worker/worker.c -> filch_job_wait, filch_job_is_done
 *                    carries all that the job did.
 */
#ifndef FILCH_DEQUE_INJECT_H
#define FILCH_DEQUE_INJECT_H

#include "base/lock.h"

#include <filch/pool.h>

enum filch_job_state {
    FILCH_JOB_PENDING,
    FILCH_JOB_AWAITED,   /* pending, and a thread sleeps until it is done */
    FILCH_JOB_SUSPENDED, /* pending, and the strand that waits for it was left */
    FILCH_JOB_DONE,
};

/* A task from outside. */
typedef struct filch_job filch_job;
struct filch_job {
    filch_fn *fn;
    void *arg;
    void *waiter;            /* the strand that waits for this job */
    filch_pool *waiter_pool; /* and its pool */
    filch_job *next;        /* under the queue's lock */
    bool is_submitted;      /* malloc'ed by filch_submit; otherwise on the stack of filch_run */
    filch_atomic_u32 state; /* of a job somebody waits for */
};

typedef struct filch_inject {
    filch_lock lock;
    filch_job *first, **last;
    filch_atomic_u32 count;
} filch_inject;

void filch_inject_init(filch_inject *queue);
void filch_inject_push(filch_inject *queue, filch_job *job);

/* The oldest job, or NULL. */
filch_job *filch_inject_take(filch_inject *queue);

static inline bool filch_inject_is_empty(filch_inject *queue)
{
    /* seq_cst [inject-or-sleep] */
    return filch_load_seq_cst(&queue->count) == 0;
}

static inline bool filch_job_is_done(filch_job *job)
{
    /* acquire [job-done] */
    return filch_load_acquire(&job->state) == FILCH_JOB_DONE;
}

/* Block this thread until the job is done. */
void filch_job_wait(filch_job *job);

#endif
