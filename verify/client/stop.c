/* SPDX-License-Identifier: MIT */
/*
 * The end of a pool, and a worker without memory: a worker going to sleep still ends with the pool,
 * and still runs a ready strand.
 *
 * The shipped workers are in filch_worker_main, each begun as a searcher by a notify; stop_threads
 * is that of src/worker/pool.c. Both files are part of this one. The search is exhaustive.
 *
 *     stop     all threads end, whether they search, go to sleep or sleep when the pool ends
 *     ready    there is no memory for a strand; a worker still runs a strand that may go on
 */
#include "worker_loop.h"

#include "worker/pool.c"
#include "worker/wake.c"

#include "mc/mc.h"
#include "small_pool.h"

static filch_strand *waiting;
static filch_pool *pool;
static unsigned worker_count;
static bool has_run;

/* ---- stop ------------------------------------------------------------------------------------ */

static void setup_stop(void)
{
    pool = make_small_pool(worker_count);
    for (unsigned i = 0; i < worker_count; i++) {
        pool->workers[i]->has_thread = false;
        filch_sleep_push(&pool->vacant, i, FILCH_ROLE_RUNNING);
    }
}

static void start_and_stop(void)
{
    for (unsigned i = 0; i < worker_count; i++) {
        filch_sleep_search(&pool->sleep, worker_count);
        start_vacant(pool, NULL);
    }
    stop_threads(pool);
}

/* ---- ready ----------------------------------------------------------------------------------- */

static void go_on(filch_strand *self)
{
    (void)self;
    has_run = true;
}

static void setup_ready(void)
{
    pool = make_small_pool(1);
    filch_worker_have_spare(pool->workers[0]);
    waiting = filch_worker_prepare(pool->workers[0], go_on, NULL, NULL);
    waiting->worker = pool->workers[0];
    /* No deque has so much room: no further strand can be made. */
    filch_kind_find(FILCH_DEQUE_CHASELEV, &pool->strands.kind);
    pool->strands.capacity = SIZE_MAX;
    filch_sleep_search(&pool->sleep, 1);
}

static void resume(void)
{
    filch_pool_resume(pool, &waiting->link);
}

static void work(void)
{
    filch_worker_main(pool->workers[0]);
}

static MC_OUTSIDE bool may_rest(void)
{
    return has_run;
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv), resting = options;
    mc_program stop = {"stop", setup_stop, {start_and_stop}, NULL};
    mc_program ready = {"ready, no memory", setup_ready, {resume, work}, NULL};
    mc_result total = {.name = "stop"};

    resting.may_rest = may_rest;
    worker_count = 1;
    mc_run_and_add(&total, &stop, &options);
    if (options.is_long) {
        stop.name = "stop two";
        worker_count = 2;
        mc_run_and_add(&total, &stop, &options);
    }
    mc_result r = mc_run(&ready, &resting);
    return mc_report(total) | (r.verdict == MC_SKIPPED ? 0 : mc_report(r));
}
