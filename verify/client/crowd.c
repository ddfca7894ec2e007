/* SPDX-License-Identifier: MIT */
/*
 * More workers than may be awake: no job waits while a worker is absent, and none is left behind
 * when workers go to sleep or are not woken.
 *
 * One worker may be awake at a time. T1 is worker 0, in filch_worker_main (worker_loop.h: the loop
 * is part of this file). It runs a task that follows a script:
 *
 *     i  injects a job
 *     b  blocks in the kernel until all jobs have run
 *
 * T2 is worker 1, which sleeps at first; T3 is the keeper's look at this pool, again and again. In
 * programs with two callers, T2 is a plain thread that injects a job, too, and worker 1 is T4.
 *
 * An execution ends when all sleep. Then all jobs have run.
 */
#include "worker_loop.h"

#include "worker/crowd.c"
#include "worker/keeper.c"

#include "mc/mc.h"
#include "small_pool.h"

#include <stdio.h>
#include <string.h>

#define JOBS_MAX 3

static filch_pool *pool;
static const char *script;
static bool has_caller;
static filch_job jobs[JOBS_MAX];
static filch_atomic_u32 run_count;
static uint32_t job_count;

static void run_one(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    filch_fetch_add_acq_rel(&run_count, 1);
    filch_futex_wake(&run_count, 1);
}

static void inject(filch_job *job)
{
    *job = (filch_job){.fn = run_one};
    filch_pool_inject(pool, job);
}

static void follow_script(filch_strand *self)
{
    (void)self;
    for (const char *c = script; *c; c++) {
        if (*c == 'i') {
            inject(&jobs[c - script]);
            continue;
        }
        for (uint32_t seen; (seen = filch_load_acquire(&run_count)) < job_count;)
            filch_futex_wait(&run_count, seen, NULL);
    }
}

static void setup(void)
{
    pool = make_small_pool(2);
    filch_store_relaxed(&pool->surplus, 1);
    begin_with(pool->workers[0], follow_script);
    filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
    /* As the thread that woke worker 0. */
    filch_crowd_watch(pool);
    job_count = has_caller;
    for (const char *c = script; *c; c++)
        job_count += *c == 'i';
}

static void worker_0(void)
{
    filch_worker_main(pool->workers[0]);
}

static void worker_1(void)
{
    filch_seat_nap(&pool->workers[1]->seat, NULL);
    filch_worker_main(pool->workers[1]);
}

static void keep(void)
{
    for (;;) {
        uint32_t rung = filch_load_acquire(&bell);
        sleep_until(rung, filch_crowd_look(pool));
    }
}

static void call(void)
{
    inject(&jobs[JOBS_MAX - 1]);
}

static MC_OUTSIDE bool may_rest(void)
{
    return *(uint32_t *)&run_count == job_count;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *script;
        bool has_caller;
    } programs[] = {{"ib", false}, {"i", false}, {"", true}, {"b", true}, {"iib", false}};
    mc_options options = mc_arguments(argc, argv);
    mc_result total = {.name = "crowd"};

    options.may_rest = may_rest;
    options.timeouts = 4;
    options.clock_step_ns = LAST_LOOK_NS;
    options = mc_bounded(options, 1, 1);
    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        char name[40];
        mc_program program = {name, setup, {worker_0, worker_1, keep}, NULL};

        script = programs[i].script;
        has_caller = programs[i].has_caller;
        if (has_caller)
            program.threads[3] = call;
        snprintf(name, sizeof name, "crowd %s%s", script, has_caller ? ", called" : "");
        mc_run_and_add(&total, &program, &options);
    }
    return mc_report(total);
}
