/* SPDX-License-Identifier: MIT */
/*
 * A strand is run: what runs on it, and what becomes of it when it has left its stack.
 *
 * Edges (src/sleep/README.md and src/join/README.md say more)
 *   task-done        run_stolen -> await_child
 *   job-done         finish_job -> await_job, filch_job_wait
 *   strand-waits     await_child, await_job -> run_stolen, finish_job
 *   strand-shown     filch_worker_run -> steal in find.c, filch_pool_look_everywhere in look.c
 *   strand-or-sleep  filch_worker_run x filch_pool_look_everywhere in look.c
 */
#include "worker/loop.h"

#include "strand/inherit.h"
#include "worker/lookout.h"
#include "worker/source.h"

/* ---- what runs on it --------------------------------------------------------------------------- */

static void run_stolen(filch_strand *self)
{
    filch_slot *task = self->argument;
    /* relaxed: claimed by [task-ready]; all that the forker may have done since is to say that it waits. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_AWAITED;

    ((filch_thunk *)thunk)(filch_split_slots(&self->split), task);

    if (self->at_end)
        self->at_end(self);
    /* release [task-done], acquire [strand-waits]. The slot is its forker's again after this. */
    uintptr_t state = filch_exchange_acq_rel(&task->state, FILCH_TASK_DONE);
    if (state & FILCH_TASK_AWAITED)
        self->worker->next = filch_strand_of(task);
}

/* The last touch of a job that somebody waits for, unless it is a strand: that goes on when we say so. */
static void finish_job(filch_job *job)
{
    /* release [job-done], acquire [strand-waits] */
    switch (filch_exchange_acq_rel(&job->state, FILCH_JOB_DONE)) {
    case FILCH_JOB_AWAITED:
        /* The job may be gone; waking needs only its address. */
        filch_futex_wake(&job->state, 1);
        break;
    case FILCH_JOB_SUSPENDED: {
        /* The waiter keeps its pool alive until it goes on; from then on we do, until we have let go of it. */
        filch_pool *pool = job->waiter_pool;
        filch_strand *waiter = job->waiter;
        waiter->link.next = NULL;
        filch_pool_begin(pool);
        filch_pool_resume(pool, &waiter->link);
        filch_pool_end(pool);
        break;
    }
    }
}

static void run_job(filch_strand *self)
{
    filch_job *job = self->argument;
    filch_pool *pool = self->worker->pool;

    job->fn(filch_split_slots(&self->split), job->arg);

    if (self->at_end)
        self->at_end(self);
    if (job->end)
        job->end(job, pool);
    else
        finish_job(job);
}

static filch_strand *prepare(filch_worker *worker, void (*body)(filch_strand *), void *argument,
                             void *root)
{
    filch_strand *strand = worker->spare;
    worker->spare = NULL;
    strand->body = body;
    strand->argument = argument;
    strand->open_forks = 0;
    strand->keeps_all = false;
    strand->at_end = NULL;
    /* relaxed: a hint for guests that choose whom to help. */
    filch_store_relaxed(&strand->root, root);
    return strand;
}

filch_strand *filch_worker_prepare_job(filch_worker *worker, filch_link *link)
{
    filch_job *job = (filch_job *)link;
    filch_strand *strand = prepare(worker, run_job, job, job);

    filch_strand_begin_task(strand, job->scope, job->locals);
    filch_count(worker, FILCH_COUNT_injected);
    return strand;
}

filch_strand *filch_worker_prepare_stolen(filch_worker *worker, filch_slot *task)
{
    /* relaxed: its strand's root cannot change while the task is ours. */
    filch_strand *strand =
        prepare(worker, run_stolen, task, filch_load_relaxed(&filch_strand_of(task)->root));

    filch_strand_inherit(strand, task);
    filch_count(worker, FILCH_COUNT_stolen);
    return strand;
}

/* ---- it leaves its stack ----------------------------------------------------------------------- */

bool filch_strand_can_leave(const filch_strand *strand)
{
    /* In the child of a fork() made by its task there is no loop to leave the strand to. */
    return strand && strand->worker && filch_pool_is_alive(strand->pool);
}

void filch_worker_leave(filch_strand *strand, enum filch_leave why, void *what)
{
    filch_worker *worker = strand->worker;

    worker->leave = why;
    worker->waits_for = what;
    if (why == FILCH_LEAVE_FOR_CHILD || why == FILCH_LEAVE_FOR_JOB)
        /* relaxed: for those who look from outside. */
        filch_store_relaxed(&strand->waits_at,
                            why == FILCH_LEAVE_FOR_CHILD ? "a stolen task" : "a filch_run");
    filch_strand_leave(strand);
    /* relaxed: as above. */
    filch_store_relaxed(&strand->waits_at, NULL);
}

void filch_worker_wait(filch_job *job)
{
    const filch_visit *visit = filch_visit_self();
    /* relaxed: own variable. */
    filch_strand *strand = visit ? filch_load_relaxed(&visit->worker->strand) : NULL;

    if (!filch_strand_can_leave(strand))
        filch_job_wait(job);
    else if (!filch_job_is_done(job))
        filch_worker_leave(strand, FILCH_LEAVE_FOR_JOB, job);
}

/* ---- it has left it ---------------------------------------------------------------------------- */

/* Of a strand that waits for a stolen child the older tasks were stolen before, unless its deque is one that is claimed from: thieves may have come for the
 * child first, and what it waits for may be done by one that is left. */
static bool show_older(filch_strand *strand)
{
    const filch_kind *kind = strand->kind;

    if (!kind || !kind->is_claimed)
        return false;
    if (kind->show)
        kind->show(strand->deque);
    return kind->has_public(strand->deque);
}

/* To wait for a stolen child. */
static void await_child(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    filch_slot *child = worker->waits_for;
    /* acquire [task-done] */
    uintptr_t state = filch_load_acquire(&child->state);
    bool has_public = state != FILCH_TASK_DONE && show_older(strand);

    filch_count(worker, FILCH_COUNT_suspensions);
    if (has_public)
        filch_parked_add(&worker->parked, strand);
    /* release [strand-waits]: from here on the strand belongs to whoever completes the child.
     * acquire [task-done]: or it is complete. Or it was given back, and the join takes it itself. */
    if (state == FILCH_TASK_DONE || (state & FILCH_TASK_OFFERED) ||
        !filch_cas_acq_rel(&child->state, &state, state | FILCH_TASK_AWAITED))
        worker->next = strand;
    if (has_public)
        filch_pool_notify(pool, worker);
}

/* The same for a filch_run in a task. */
static void await_job(filch_worker *worker, filch_strand *strand)
{
    filch_job *job = worker->waits_for;
    uint32_t state = FILCH_JOB_PENDING;

    filch_count(worker, FILCH_COUNT_suspensions);
    job->waiter = strand;
    job->waiter_pool = worker->pool;
    /* release [strand-waits]; acquire [job-done] */
    if (!filch_cas_acq_rel(&job->state, &state, FILCH_JOB_SUSPENDED))
        worker->next = strand;
}

/* To wait for the end of strand->wait. Tasks that it leaves behind can be stolen, and so are shown before anybody can resume it. */
static void await_end(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    bool has_public = filch_strand_has_public(strand);

    filch_count(worker, FILCH_COUNT_suspensions);
    if (has_public)
        filch_parked_add(&worker->parked, strand);
    if (!filch_wait_park(&strand->wait))
        worker->next = strand;
    if (has_public)
        filch_pool_notify(pool, worker);
}

static void leave(filch_worker *worker, filch_strand *strand)
{
    enum filch_leave why = worker->leave;

    worker->leave = FILCH_LEAVE_ENDED;
    worker->has_waited |= why == FILCH_LEAVE_TO_WAIT || why == FILCH_LEAVE_TO_YIELD;
    switch (why) {
    case FILCH_LEAVE_FOR_CHILD:
        await_child(worker, strand);
        break;
    case FILCH_LEAVE_FOR_JOB:
        await_job(worker, strand);
        break;
    case FILCH_LEAVE_TO_WAIT:
        await_end(worker, strand);
        break;
    case FILCH_LEAVE_TO_YIELD:
        if (filch_strand_has_public(strand))
            filch_parked_add(&worker->parked, strand);
        if (worker->is_visited) {
            /* The guest leaves. */
            filch_queue_push(&worker->pool->ready, &strand->link);
            filch_pool_notify(worker->pool, worker);
        } else {
            filch_lookout_notify(worker, filch_queue_push(&worker->ready, &strand->link));
        }
        break;
    case FILCH_LEAVE_ENDED:
        if (worker->spare)
            filch_magazine_give(&worker->free, &worker->pool->strands, strand);
        else
            worker->spare = strand;
        break;
    }
}

/* ---- the loop runs it -------------------------------------------------------------------------- */

void filch_worker_pay_watch(filch_worker *worker)
{
    filch_pool *pool = worker->pool;

    if (!worker->owes_watch)
        return;
    worker->owes_watch = false;
    filch_source_show(worker);
    if (filch_timers_is_unwatched(&pool->timers) ||
        (filch_source_is_alone(worker) && !filch_lookout_is_manned(pool)))
        filch_pool_notify(pool, worker);
}

void filch_worker_run(filch_worker *worker, filch_strand *strand)
{
    filch_worker_pay_watch(worker);
    filch_parked_remove(strand);
    strand->worker = worker;
    /* The first fork looks whether somebody is idle: who went to sleep meanwhile did not see this strand. */
    filch_strand_arm(strand);
    /* release [strand-shown], seq_cst [strand-or-sleep] */
    filch_store_seq_cst(&worker->strand, strand);
    /* Of a strand that waited, tasks may still be there. Who looked meanwhile found it neither among those that wait nor here. */
    if (filch_strand_has_public(strand))
        filch_pool_notify(worker->pool, worker);

    filch_strand_enter(strand, &worker->native);

    /* relaxed: thieves may find it for a while yet, and empty. */
    filch_store_relaxed(&worker->strand, NULL);
    leave(worker, strand);
}
