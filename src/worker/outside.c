/* SPDX-License-Identifier: MIT */
/*
 * The ways into a pool from outside: a thread that has a task run takes a free seat and helps, or waits; others put something into a queue. Where no thread can be started, whoever comes from
 * outside does the work.
 *
 * Edges
 *   pending  filch_pool_end -> filch_pool_wait   carries all that the tasks did.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "worker/lookout.h"
#include "worker/steps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void filch_pool_begin(filch_pool *pool)
{
    /* relaxed: the caller may use the pool, so it is not being destroyed. */
    filch_fetch_add_relaxed(&pool->pending, 1);
}

void filch_pool_end(filch_pool *pool)
{
    /* release [pending]. The pool may be gone after this; waking needs only its address. */
    if (filch_fetch_add_release(&pool->pending, -1u) == (FILCH_POOL_AWAITED | 1))
        filch_futex_wake(&pool->pending, INT_MAX);
}

/* While we sat there, who looked for somebody to run something, or to be the lookout, may have found nobody asleep. */
static void give_seat_back(filch_pool *pool, filch_sleep *stack, unsigned seat)
{
    filch_sleep_push(stack, seat, FILCH_ROLE_RUNNING);
    if (filch_pool_look_everywhere(pool) || filch_lookout_is_missing(pool->workers[seat]))
        filch_pool_notify(pool, NULL);
}

/* Sit down on a free seat and work on `job`, or with NULL on what is in the inject queue. False: there is no seat,
 * or no strand. */
static bool visit(filch_pool *pool, filch_job *job)
{
    filch_sleep *stack = &pool->vacant;
    int seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    if (seat < 0) {
        stack = &pool->sleep;
        seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    }
    if (seat < 0)
        return false;
    bool has_strand = filch_worker_visit(pool->workers[seat], job);
    give_seat_back(pool, stack, (unsigned)seat);
    return has_strand;
}

static bool has_no_threads(filch_pool *pool)
{
    /* relaxed: both only grow in the direction that matters; whoever leaves a seat looks again. */
    return filch_load_relaxed(&pool->thread_count) == 0 &&
           filch_sleep_sleeper_count(&pool->sleep) == 0;
}

bool filch_pool_may_have_threads(filch_pool *pool)
{
    /* relaxed: it only grows. */
    return filch_load_relaxed(&pool->vacant_count) < pool->worker_count;
}

/* Where no thread can be started, those who come from outside do the work. */
static void visit_if_no_threads(filch_pool *pool)
{
    if (has_no_threads(pool) && !filch_worker_self_in(pool))
        while (filch_pool_has_queued(pool) && visit(pool, NULL))
            ;
}

uint64_t filch_pool_help(filch_pool *pool)
{
    /* relaxed: once there is a thread, there always is. One that is only about to be started does not count: it may fail, and who waits for it would wait for ever. */
    if (filch_load_relaxed(&pool->has_threads) || filch_visit_self())
        return FILCH_NEVER_NS;
    filch_pool_fire_timers(pool);
    visit_if_no_threads(pool);
    return has_no_threads(pool) ? 1000000 : 100000000;
}

/* Wait until the job is done. Where there are no threads, nobody else watches the timers. */
static void wait_outside(filch_pool *pool, filch_job *job)
{
    uint64_t ns;

    while (!filch_job_is_done(job) && (ns = filch_pool_help(pool)) != FILCH_NEVER_NS)
        filch_job_wait_for(job, ns);
    filch_worker_wait(job);
}

void filch_pool_inject(filch_pool *pool, filch_job *job)
{
    filch_queue_push(&pool->inject, &job->link);
    filch_pool_notify(pool, NULL);
    visit_if_no_threads(pool);
}

void filch_pool_resume(filch_pool *pool, filch_link *strands)
{
    if (!strands || (!strands->next && filch_pool_hand_over(pool, filch_strand_of_link(strands))))
        return;
    filch_queue_push_list(&pool->ready, strands);
    filch_pool_notify(pool, NULL);
    visit_if_no_threads(pool);
}

void filch_strand_resume(filch_strand *strand)
{
    filch_pool *pool = strand->pool;
    filch_worker *worker = filch_worker_self_in(pool);

    if (worker) {
        filch_lookout_notify(worker, filch_queue_push(&worker->ready, &strand->link));
        return;
    }
    /* The waiter keeps its pool alive until it goes on; from then on we do, until we have let go of it. */
    strand->link.next = NULL;
    filch_pool_begin(pool);
    filch_pool_resume(pool, &strand->link);
    filch_pool_end(pool);
}

void filch_pool_spawn(filch_pool *pool, filch_job *job)
{
    filch_worker *worker = filch_worker_self_in(pool);

    if (worker) {
        filch_queue_push(&worker->spawned, &job->link);
        filch_pool_notify(pool, worker);
    } else {
        filch_pool_begin(pool);
        filch_pool_inject(pool, job);
        filch_pool_end(pool);
    }
}

/* In a hook there is no strand to leave, and all other workers may be in theirs: do a worker's work, and look whether the job is done now and then. */
static void wait_in_hook(filch_worker *own, filch_job *job)
{
    /* relaxed: own variable. */
    while (!filch_load_relaxed(&filch_visit_self()->worker->strand) && !filch_job_is_done(job)) {
        filch_pool_fire_timers(own->pool);
        filch_worker_visit(own, NULL);
        filch_job_wait_for(job, 1000000);
    }
}

/* Run a task of a task of this pool, whose seat we hold, so that nobody else might ever come to run it. Without a strand
 * for it the one that we stand on has to do, which may be another pool's, in whose task we are: from its end on forks have no slots, and run when they are joined. */
static int run_inside(filch_worker *own, filch_job *job)
{
    if (filch_worker_visit(own, job)) {
        wait_in_hook(own, job);
        filch_worker_wait(job);
        return 0;
    }
    /* relaxed: own variable. */
    filch_strand *strand = filch_load_relaxed(&filch_visit_self()->worker->strand);
    if (!strand) /* called by a hook */
        return -ENOMEM;
    bool keeps_all = strand->keeps_all;
    strand->keeps_all = true;
    job->fn(strand->split.end, job->arg);
    strand->keeps_all = keeps_all;
    return 0;
}

int filch_run(filch_pool *pool, filch_fn *fn, void *arg)
{
    int err = pool && fn ? filch_pool_check(pool) : -EINVAL;
    if (err)
        return err;

    filch_job job = {.fn = fn, .arg = arg};
    filch_worker *own = filch_worker_self_in(pool);
    filch_pool_begin(pool);
    if (own) {
        err = run_inside(own, &job);
    } else {
        if (!visit(pool, &job))
            filch_pool_inject(pool, &job);
        else
            visit_if_no_threads(pool);
        wait_outside(pool, &job);
    }
    filch_pool_end(pool);
    return err;
}

/* A submitted job, and what was submitted by value. */
typedef struct submitted_job {
    filch_job job; /* first: end_submitted frees the job */
    _Alignas(max_align_t) unsigned char copy[];
} submitted_job;

static void end_submitted(filch_job *job, filch_pool *pool)
{
    free(job);
    filch_pool_end(pool);
}

/* With a copy of `bytes`, or without (0) and with the argument itself. */
static int submit(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes)
{
    int err = pool && fn ? filch_pool_check(pool) : -EINVAL;
    if (err)
        return err;
    if (bytes > PTRDIFF_MAX - sizeof(submitted_job))
        return -ENOMEM;
    submitted_job *submitted = filch_calloc(1, sizeof *submitted + bytes);
    if (!submitted)
        return -ENOMEM;
    if (bytes > 0)
        memcpy(submitted->copy, arg, bytes);
    submitted->job = (filch_job){
        .fn = fn, .arg = bytes > 0 ? submitted->copy : (void *)arg, .end = end_submitted};
    filch_pool_begin(pool);
    filch_pool_inject(pool, &submitted->job);
    return 0;
}

int filch_submit(filch_pool *pool, filch_fn *fn, void *arg)
{
    return submit(pool, fn, arg, 0);
}

int filch_submit_copy(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes)
{
    return arg || bytes == 0 ? submit(pool, fn, arg, bytes) : -EINVAL;
}

int filch_pool_wait(filch_pool *pool)
{
    if (!pool)
        return -EINVAL;
    if (filch_worker_self_in(pool))
        return -EDEADLK;
    filch_pool_check(pool);
    for (;;) {
        /* relaxed: a cas follows, and only after one that acquires do we return. */
        uint32_t pending = filch_load_relaxed(&pool->pending);
        if ((pending & ~FILCH_POOL_AWAITED) == 0) {
            /* acquire [pending]: the last one out puts the mark away, or a new task does not mind it. */
            filch_cas_acq_rel(&pool->pending, &pending, 0);
            return 0;
        }
        uint64_t ns = filch_pool_help(pool);
        struct timespec timeout = filch_timespec(ns);
        /* acq_rel [pending]: says only that somebody sleeps. */
        if ((pending & FILCH_POOL_AWAITED) ||
            filch_cas_acq_rel(&pool->pending, &pending, pending | FILCH_POOL_AWAITED))
            filch_futex_wait(&pool->pending, pending | FILCH_POOL_AWAITED,
                             ns == FILCH_NEVER_NS ? NULL : &timeout);
    }
}
