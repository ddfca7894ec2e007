/* SPDX-License-Identifier: MIT */
/*
 * Memory that one thread hands over to another, other than forked tasks: the receiver sees all that
 * the giver wrote.
 *
 *   - the end of a job, to a thread or a strand that waits for it;
 *   - the strand, to the worker that takes it from the queue;
 *   - a spare strand, over the shelf;
 *   - the end of the last job, to the thread that may destroy the pool;
 *   - a pool made anew in the child of a fork();
 *   - a task that is claimed.
 *
 * The shipped functions play each of them (worker_loop.h: the loop is part of this file) on a pool
 * without threads. The search is exhaustive, except for the program with a sleeper. The memory that
 * is handed over is plain: without the order that the operation promises, the checker finds a race.
 */
#include "worker_loop.h"

#include "base/fault.h"
#include "mc/mc.h"
#include "small_pool.h"

#include <errno.h>
#include <stdio.h>

static filch_pool *pool;
static filch_job *job;
static int result; /* of the job; plain */
/* How often the waiting strand went on; plain: it belongs to the worker that runs the strand. */
static int went_on;
static filch_strand *first;

/* ---- a job ends ------------------------------------------------------------------------------ */

static void setup_job(void)
{
    pool = make_small_pool(2);
    job = calloc(1, sizeof *job);
}

static void end_job(void)
{
    result = 42;
    finish_job(job);
}

static void wait_for_job(void)
{
    filch_job_wait(job);
    mc_check(result == 42, "who waits for a job sees what it did");
    free(job);
}

/* ---- a strand waits for it ------------------------------------------------------------------- */

static void wait_on_strand(filch_strand *self)
{
    (void)self;
    filch_worker_wait(job);
    mc_check(result == 42, "a strand that waits for a job sees what it did");
    went_on++;
    free(job);
}

static void setup_strand(void)
{
    setup_job();
    filch_worker_have_spare(pool->workers[0]);
    first = filch_worker_prepare(pool->workers[0], wait_on_strand, NULL, NULL);
    filch_pool_begin(pool);
}

static void setup_sleeper(void)
{
    setup_strand();
    filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
}

/* The loop of a worker that begins with a strand, or with none, until it sleeps for good. */
static void work(filch_worker *worker, filch_strand *strand)
{
    const filch_visit visit = {.worker = worker};

    set_self(&visit);
    for (;;) {
        while (strand || (strand = filch_worker_find(worker, false))) {
            filch_worker_run(worker, strand);
            strand = NULL;
        }
        filch_worker_shelve_spare(worker);
        filch_sleep_push(&pool->sleep, worker->index, FILCH_ROLE_RUNNING);
        filch_pool_notify_if_work(pool);
        filch_seat_nap(&worker->seat, NULL);
        filch_sleep_found(&pool->sleep);
    }
}

static void first_worker(void)
{
    work(pool->workers[0], first);
}

/* This worker was asleep: setup has pushed its seat. */
static void second_worker(void)
{
    filch_seat_nap(&pool->workers[1]->seat, NULL);
    filch_sleep_found(&pool->sleep);
    work(pool->workers[1], NULL);
}

static MC_OUTSIDE bool has_gone_on(void)
{
    return went_on == 1;
}

/* ---- the shelf ------------------------------------------------------------------------------- */

static void setup_shelf(void)
{
    pool = make_small_pool(2);
    filch_worker_have_spare(pool->workers[0]);
}

/* The second time, a strand is on the shelf already, unless it was taken. */
static void shelve(void)
{
    filch_worker *worker = pool->workers[0];

    for (uintptr_t i = 1; i <= 2; i++) {
        filch_worker_have_spare(worker);
        worker->spare->argument = (void *)i;
        filch_worker_shelve_spare(worker);
    }
}

static void take_shelved(void)
{
    filch_strand *strand = take_from_shelf(pool->workers[0]);

    if (strand)
        mc_check(strand->argument && (strand->argument = NULL) == NULL,
                 "a strand is taken once, as it was left");
}

/* ---- the end of the last job ----------------------------------------------------------------- */

static int touched[2];

static void setup_pending(void)
{
    pool = make_small_pool(2);
    filch_pool_begin(pool);
    filch_pool_begin(pool);
}

static void end_one(void)
{
    touched[mc_self() - 1] = 1;
    filch_pool_end(pool);
}

static void begin_and_end(void)
{
    filch_pool_begin(pool);
    end_one();
    touched[mc_self() - 1] = 2;
    filch_pool_end(pool);
}

static void wait_for_all(void)
{
    mc_check(filch_pool_wait(pool) == 0, "all jobs have ended");
    mc_check(touched[0] > 0 && touched[1] > 0, "who waits for all sees what they did");
}

static void wait_and_free(void)
{
    wait_for_all();
    free(pool);
}

/* ---- a pool made anew in the child of a fork() ----------------------------------------------- */

static void setup_forked(void)
{
    pool = make_small_pool(1);
    filch_strand_give(&pool->strands, filch_strand_take(&pool->strands));
    filch_store_relaxed(pool->alive, 0);
    pool->workers[0]->spin_halvings = 3;
}

static void use_forked(void)
{
    mc_check(filch_pool_check(pool) == 0, "the pool is made anew");
    mc_check(filch_pool_wait(pool) == 0, "the pool is usable again");
    mc_check(pool->workers[0]->spin_halvings == 0 && !pool->inject.first, "it was made anew");
    mc_check(filch_pool_is_alive(pool), "and is alive");
}

/* The thread of the pool may fail to start. The next call tries again. */
static void try_forked(void)
{
    int err = filch_pool_check(pool);

    mc_check(err == 0 || err == -EAGAIN, "the pool is made anew, or there is no thread for it");
    mc_check(err || filch_pool_is_alive(pool), "the pool is alive");
}

/* End the thread, if the pool has one. */
static void stop_forked(void)
{
    int seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_RUNNING, false);

    mc_check((seat == 0) == filch_pool_is_alive(pool), "a pool that is alive has a thread");
    if (seat == 0)
        filch_seat_call(&pool->workers[0]->seat, FILCH_BED_ENDED);
}

/* Look only while no other thread makes it anew. */
static void look_at_forked(void)
{
    if (filch_pool_is_alive(pool))
        mc_check(pool->workers[0]->spin_halvings == 0, "a pool that is alive was made anew");
}

/* ---- a task that is offered ------------------------------------------------------------------ */

static filch_slot slot;
/* Plain: the forker writes a task before the offer, and the claiming thread reads it. */
static int tasks_forked;

static void setup_offer(void)
{
    filch_store_relaxed(&slot.state, 0);
}

/* Queue entries that are claimed. A forker offers a slot, then claims it itself or loses it to
 * another thread. The forker reuses the slot once it is its own. */
static void fork_and_claim(void)
{
    for (int i = 1; i <= 2; i++) {
        tasks_forked = i;
        filch_task_offer(&slot);
        if (!filch_task_claim(&slot))
            return;
    }
}

/* A thread with an old entry: it may find the second task in the slot. */
static void claim(void)
{
    if (filch_task_claim(&slot))
        mc_check(tasks_forked > 0, "who claims a task sees it");
}

/* ---- programs -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv), resting = options;
    resting.may_rest = has_gone_on;
    mc_options bounded = mc_bounded(resting, options.is_long ? 2 : 1, 1), no_thread = options;
    no_thread.faults = 1;
    no_thread.fault_kinds = 1u << FILCH_FAULT_THREAD;
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"job, thread", setup_job, {end_job, wait_for_job}, NULL}, &options},
        {{"job, strand", setup_strand, {end_job, first_worker}, NULL}, &resting},
        {{"shelf", setup_shelf, {shelve, take_shelved}, NULL}, &options},
        {{"shelf, two", setup_shelf, {shelve, take_shelved, take_shelved}, NULL}, &options},
        {{"pending", setup_pending, {end_one, end_one, wait_and_free}, NULL}, &options},
        {{"pending, more", setup_pending, {end_one, begin_and_end, wait_for_all}, NULL}, &options},
        {{"pending, two", setup_pending, {end_one, end_one, wait_for_all, wait_for_all}, NULL},
         &options},
        {{"forked", setup_forked, {use_forked, use_forked, look_at_forked}, stop_forked}, &options},
        {{"forked, no thread", setup_forked, {try_forked, try_forked}, stop_forked}, &no_thread},
        {{"offer", setup_offer, {fork_and_claim, claim, claim}, NULL}, &options},
        {{"job, strand, sleeper", setup_sleeper, {end_job, first_worker, second_worker}, NULL},
         &bounded},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
