/* SPDX-License-Identifier: MIT */
/*
 * No task waits while a worker is idle, even if its forker comes to no fork or join.
 *
 * Two workers are in filch_worker_main (worker_loop.h: the loop is part of this file). The first
 * runs a task that follows a script:
 *
 *     f  forks a task
 *     j  joins the newest
 *     w  waits, without a fork or a join, until all its tasks but those that it has joined have run
 *
 * The other workers are asleep at first. So they must be woken, or find the tasks by their first or
 * second look, at whichever point they go to sleep. Otherwise the first one would wait for ever,
 * which the checker reports.
 *
 * In the programs "together", a task waits until all have begun. So each needs a worker of its own:
 * also when the first worker has taken tasks back to run one of them, or when a worker has found a
 * task, and counts on a third one that sleeps. With three workers the search is random, and the
 * last thread is the keeper.
 */
#include "worker_loop.h"

#include "worker/keeper.c"

#include "mc/mc.h"
#include "small_pool.h"

#include <filch/task.h>

#include <stdio.h>
#include <string.h>

static filch_pool *pool;
static const char *script;
static unsigned worker_count;
static uint32_t together; /* a task waits until so many have begun */
static filch_atomic_u32 run_count;
static int went_on;

static void await_runs(uint32_t count)
{
    while (filch_load_acquire(&run_count) < count)
        filch_pause();
}

static void run_task(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    filch_fetch_add_acq_rel(&run_count, 1);
    await_runs(together);
}

static void follow_script(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *bottom = f;
    unsigned forked = 0;

    for (const char *c = script; *c; c++) {
        if (*c == 'f') {
            f = filch_fork(f, run_task, NULL);
            forked++;
        } else if (*c == 'j') {
            f = filch_join(f, f - 1);
        } else {
            await_runs(forked);
        }
    }
    f = filch_join(f, bottom);
    mc_check(filch_load_acquire(&run_count) == forked, "each task has run once");
    mc_check(filch_split_now(&self->split) == 0, "the last join leaves the split at 0");
    went_on = 1;
}

static void setup(void)
{
    pool = make_small_pool(worker_count);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], follow_script);
    for (unsigned i = worker_count; i-- > 1;)
        filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
}

static void first(void)
{
    filch_worker_main(pool->workers[0]);
}

static void other(filch_worker *worker)
{
    filch_seat_nap(&worker->seat, NULL);
    filch_worker_main(worker);
}

static void second(void)
{
    other(pool->workers[1]);
}

static void third(void)
{
    other(pool->workers[2]);
}

/* The keeper, for one pool. */
static void keep(void)
{
    for (;;) {
        uint32_t rung = filch_load_acquire(&bell);
        sleep_until(rung, filch_second_look_for_rest(pool));
    }
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *script;
        unsigned workers;
        uint32_t together;
    } programs[] = {{"fw", 2, 0}, {"ffw", 2, 0}, {"fwfw", 2, 0}, {"fjfw", 2, 0},  {"ff", 2, 2},
                    {"ff", 3, 2}, {"ffw", 3, 2}, {"fff", 3, 3},  {"fwffw", 2, 0}, {"ffjfw", 2, 0}};
    const unsigned short_count = 7, long_count = sizeof programs / sizeof programs[0];
    mc_options options = mc_arguments(argc, argv);
    mc_result total = {.name = "second look"};

    options.may_rest = may_rest;
    options.timeouts = 3;
    options.clock_step_ns = 1;
    mc_options walks = options;
    options = mc_bounded(options, 1, 1);
    walks.mode = MC_RANDOM;
    if (walks.runs == 0)
        walks.runs = walks.is_long ? 1000000 : 3000;
    for (unsigned i = 0; i < (options.is_long ? long_count : short_count); i++) {
        char name[40];
        mc_program program = {name, setup, {first, second, third, keep}, NULL};

        script = programs[i].script;
        worker_count = programs[i].workers;
        together = programs[i].together;
        if (worker_count == 2)
            program.threads[2] = NULL;
        snprintf(name, sizeof name, "second look %s%s %u", together ? "together " : "", script,
                 worker_count);
        mc_run_and_add(&total, &program, worker_count == 2 ? &options : &walks);
    }
    return mc_report(total);
}
