/* SPDX-License-Identifier: MIT */
/*
 * The ways into a pool from outside. A thread in filch_run takes a free seat and helps, or waits.
 * Other calls queue a job or a strand.
 *
 * Edges
 *   pending  filch_pool_end -> filch_pool_wait   carries all effects of the tasks.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "strand/unwind.h"
#include "worker/crowd.h"
#include "worker/lookout.h"
#include "worker/second_look.h"
#include "worker/steps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void filch_pool_begin(filch_pool *pool)
{
    /* relaxed: the caller has the right to use the pool, so it is not being destroyed. */
    filch_fetch_add_relaxed(&pool->pending, 1);
}

void filch_pool_end(filch_pool *pool)
{
    /* release [pending]. The pool may be freed after this; waking needs only its address. */
    if (filch_fetch_add_release(&pool->pending, -1u) == (FILCH_POOL_AWAITED | 1))
        filch_futex_wake(&pool->pending, INT_MAX);
}

/* While the guest held the seat, a thread that looked for a worker to wake, or for a lookout, may
 * have found none. So look for work once more. */
static void give_seat_back(filch_pool *pool, filch_sleep *stack, unsigned seat)
{
    filch_worker *worker = pool->workers[seat];

    filch_sleep_push(stack, seat, FILCH_ROLE_RUNNING);
    if (filch_pool_needs_worker(pool, worker) || filch_second_look_is_needed(pool, worker))
        filch_pool_notify(pool, NULL);
}

/* Take a free seat, if possible one without a thread, and work on `job`. False: there is no free
 * seat, or no strand. */
static bool visit(filch_pool *pool, filch_job *job)
{
    filch_sleep *stack = &pool->vacant;
    bool is_counted = filch_crowd_count_guest(pool);
    int seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    if (seat < 0) {
        stack = &pool->sleep;
        seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    }
    bool has_strand = false;
    if (seat >= 0) {
        filch_crowd_enter_guest(pool->workers[seat]);
        has_strand = filch_worker_visit(pool->workers[seat], job);
        filch_crowd_leave(pool->workers[seat]);
        give_seat_back(pool, stack, (unsigned)seat);
    }
    if (is_counted)
        filch_crowd_uncount_guest(pool);
    return has_strand;
}

void filch_pool_inject(filch_pool *pool, filch_job *job)
{
    filch_queue_push(&pool->inject, &job->link);
    filch_pool_notify(pool, NULL);
}

void filch_pool_resume(filch_pool *pool, filch_link *strands)
{
    if (!strands || (!strands->next && filch_pool_hand_over(pool, filch_strand_of_link(strands))))
        return;
    filch_queue_push_list(&pool->ready, strands);
    filch_pool_notify(pool, NULL);
}

void filch_strand_resume(filch_strand *strand)
{
    filch_pool *pool = strand->pool;
    filch_worker *worker = filch_worker_self_in(pool);

    if (worker) {
        filch_lookout_notify(worker, filch_queue_push(&worker->ready, &strand->link));
        return;
    }
    /* The waiter keeps its pool alive until it is resumed. From then on filch_pool_begin does,
     * until filch_pool_end. */
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

/* In a hook there is no strand to leave, and all other workers may be in their hooks. So do a
 * worker's work, and now and then check whether the job is done. */
static void wait_in_hook(filch_worker *own, filch_job *job)
{
    /* relaxed: own variable. */
    while (!filch_load_relaxed(&filch_visit_self()->worker->strand) && !filch_job_is_done(job)) {
        filch_pool_fire_timers(own->pool);
        filch_worker_visit(own, NULL);
        filch_job_wait_for(job, 1000000);
    }
}

/* filch_run called inside this pool. This thread holds the seat, and perhaps no other worker ever
 * becomes free to run the job, so it runs the job itself. Without memory for a strand, the job runs
 * on the caller's strand, which may belong to another pool. Then the job's frame is the end of the
 * region: its forks get no slots, and run when they are joined. */
static FILCH_NOT_INLINED int run_inside(filch_worker *own, filch_job *job)
{
    if (filch_worker_visit(own, job)) {
        wait_in_hook(own, job);
        filch_worker_wait(job);
        return 0;
    }
    /* relaxed: own variable. */
    filch_strand *strand = filch_load_relaxed(&filch_visit_self()->worker->strand);
    if (!strand) /* called in a hook */
        return -ENOMEM;
    bool keeps_all = strand->keeps_all;
    strand->keeps_all = true;
    job->fn(strand->split.end, job->arg);
    FILCH_STOP_UNWIND();
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
        filch_worker_wait(&job);
    }
    filch_pool_end(pool);
    return err;
}

/* A submitted job, and a copy of its argument. */
typedef struct submitted_job {
    filch_job job; /* first: end_submitted frees the job */
    _Alignas(max_align_t) unsigned char copy[];
} submitted_job;

static void end_submitted(filch_job *job, filch_pool *pool)
{
    free(job);
    filch_pool_end(pool);
}

/* Submit with a copy of `bytes` bytes of the argument; if 0, with the argument itself. */
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
    /* In a forked child that has not used the pool, the tasks belong to the parent. */
    if (!filch_pool_is_alive(pool))
        return 0;
    for (;;) {
        /* relaxed: a compare and swap follows, and acquires before this returns. */
        uint32_t pending = filch_load_relaxed(&pool->pending);
        if ((pending & ~FILCH_POOL_AWAITED) == 0) {
            /* acquire [pending]: clears AWAITED. If this fails, another waiter has cleared the
             * mark, or a new task was counted; the mark does not disturb that count. */
            filch_cas_acq_rel(&pool->pending, &pending, 0);
            return 0;
        }
        /* acq_rel [pending]: the mark says only that a thread sleeps. */
        if ((pending & FILCH_POOL_AWAITED) ||
            filch_cas_acq_rel(&pool->pending, &pending, pending | FILCH_POOL_AWAITED))
            filch_futex_wait(&pool->pending, pending | FILCH_POOL_AWAITED, NULL);
    }
}
