/* SPDX-License-Identifier: MIT */
/*
 * Run a strand: the code on the strand, how it leaves its stack, and how the loop handles it after
 * that. README.md has the edges. stolen.c runs stolen tasks, and has the wait for them.
 */
#include "worker/steps.h"

#include "strand/exceptions.h"
#include "strand/inherit.h"
#include "strand/unwind.h"
#include "worker/lookout.h"
#include "worker/misuse.h"
#include "worker/source.h"

/* ---- on the strand --------------------------------------------------------------------------- */

/* The job of a filch_run is done: wake its waiter. After the exchange the waiter may free the job.
 * A SUSPENDED waiter cannot: that strand goes on only when this thread resumes it. */
static void finish_job(filch_job *job)
{
    /* release [job-done], acquire [strand-waits] */
    switch (filch_exchange_acq_rel(&job->state, FILCH_JOB_DONE)) {
    case FILCH_JOB_AWAITED:
        /* The job may be freed by now; waking needs only its address. */
        filch_futex_wake(&job->state, 1);
        break;
    case FILCH_JOB_SUSPENDED: {
        /* The waiter keeps its pool alive until it is resumed. From then on filch_pool_begin does,
         * until filch_pool_end. */
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

static FILCH_NOT_INLINED void run_job(filch_strand *self)
{
    filch_job *job = self->argument;
    filch_pool *pool = self->worker->pool;

    job->fn(filch_split_slots(&self->split), job->arg);
    FILCH_STOP_UNWIND();

    /* The child of a fork() may return from a task to filch_run, if its own thread called that. */
    if (filch_has_ended_wrongly(self))
        filch_misuse_at_end(self, filch_job_function(job), self->worker->root == job);
    if (self->at_end)
        self->at_end(self);
    if (job->end)
        job->end(job, pool);
    else
        finish_job(job);
}

bool filch_worker_is_job(void (*body)(filch_strand *))
{
    return body == run_job;
}

filch_strand *filch_worker_prepare(filch_worker *worker, void (*body)(filch_strand *),
                                   void *argument, void *root)
{
    filch_strand *strand = worker->spare;
    worker->spare = NULL;
    strand->body = body;
    strand->argument = argument;
    strand->open_forks = 0;
    strand->keeps_all = false;
    strand->at_end = NULL;
    /* relaxed: a hint for guests that choose a victim. */
    filch_store_relaxed(&strand->root, root);
    return strand;
}

filch_strand *filch_worker_prepare_job(filch_worker *worker, filch_link *link,
                                       enum filch_counter counter)
{
    filch_job *job = (filch_job *)link;
    filch_strand *strand = filch_worker_prepare(worker, run_job, job, job);

    filch_strand_begin_task(strand, job->scope, job->locals);
    filch_count(worker, counter, 1);
    return strand;
}

/* ---- the strand leaves its stack ------------------------------------------------------------- */

bool filch_strand_can_leave(const filch_strand *strand)
{
    /* In a child of a fork() that the task made, there is no loop to return to. */
    return strand && strand->worker && filch_pool_is_alive(strand->pool);
}

void filch_worker_leave(filch_strand *strand, enum filch_leave why, void *what)
{
    filch_worker *worker = strand->worker;

    worker->leave = why;
    worker->waits_for = what;
    if (why == FILCH_LEAVE_FOR_CHILD || why == FILCH_LEAVE_FOR_JOB)
        filch_strand_waits(
            strand, why == FILCH_LEAVE_FOR_CHILD ? FILCH_WAITS_CHILD : FILCH_WAITS_JOB, what);
    filch_strand_leave(strand);
    filch_strand_waits_no_more(strand);
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

/* ---- the strand has left its stack ----------------------------------------------------------- */

/* The strand waits for the job of a filch_run. If the job is done, the strand goes on. */
static void await_job(filch_worker *worker, filch_strand *strand)
{
    filch_job *job = worker->waits_for;
    uint32_t state = FILCH_JOB_PENDING;

    filch_count(worker, FILCH_COUNT_suspensions, 1);
    job->waiter = strand;
    job->waiter_pool = worker->pool;
    /* release [strand-waits]; acquire [job-done] */
    if (!filch_cas_acq_rel(&job->state, &state, FILCH_JOB_SUSPENDED))
        worker->next = strand;
}

/* The strand waits for the end of strand->wait. If it has public tasks, park it, so that thieves
 * find them. Do that first: after filch_wait_park another worker may resume the strand. */
static void await_end(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    bool has_public = filch_strand_has_public(strand);

    filch_count(worker, FILCH_COUNT_suspensions, 1);
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
        filch_stolen_await(worker, strand);
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
            /* The guest leaves, so any worker of the pool may go on with the strand. */
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

/* ---- the loop runs it ------------------------------------------------------------------------ */

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
    /* The strand's first fork checks for idle workers: those that went to sleep before the store
     * below did not see this strand. */
    filch_strand_arm(strand);
    /* release [strand-shown], seq_cst [strand-or-sleep] */
    filch_store_seq_cst(&worker->strand, strand);
    /* A strand that waited may still have public tasks, or private ones if it waited in filch_run.
     * A worker that looked meanwhile found it neither parked nor here. */
    if (filch_strand_has_tasks(strand))
        filch_pool_notify(worker->pool, worker);

    filch_exceptions own;
    filch_exceptions *current = filch_exceptions_enter(strand, &own);
    filch_strand_enter(strand, &worker->native);
    filch_exceptions_leave(current, strand, &own, worker->leave == FILCH_LEAVE_ENDED);

    /* relaxed: thieves may still see the strand for a while, without tasks. */
    filch_store_relaxed(&worker->strand, NULL);
    leave(worker, strand);
}
