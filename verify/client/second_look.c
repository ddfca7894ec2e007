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
 * The second worker is asleep at first. So it must be woken, or find the tasks by its first or
 * second look, at whichever point it goes to sleep. Otherwise the first one would wait for ever,
 * which the checker reports.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <filch/task.h>

#include <stdio.h>
#include <string.h>

static filch_pool *pool;
static const char *script;
static filch_atomic_u32 run_count;
static int went_on;

static void run_task(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    filch_fetch_add_acq_rel(&run_count, 1);
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
            while (filch_load_acquire(&run_count) < forked)
                filch_pause();
        }
    }
    f = filch_join(f, bottom);
    mc_check(filch_load_acquire(&run_count) == forked, "each task has run once");
    mc_check(filch_split_now(&self->split) == 0, "the last join leaves the split at 0");
    went_on = 1;
}

static void setup(void)
{
    pool = make_small_pool(2);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], follow_script);
    filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
}

static void first(void)
{
    filch_worker_main(pool->workers[0]);
}

static void second(void)
{
    filch_seat_nap(&pool->workers[1]->seat, NULL);
    filch_worker_main(pool->workers[1]);
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

int main(int argc, char **argv)
{
    static const char *const scripts[] = {"fw", "ffw", "fwfw", "fjfw", "fwffw", "ffjfw"};
    mc_options options = mc_arguments(argc, argv);
    mc_result total = {.name = "second look"};

    options.may_rest = may_rest;
    options.timeouts = 3;
    options.clock_step_ns = 1;
    options = mc_bounded(options, 1, 1);
    for (unsigned i = 0; i < (options.is_long ? 6 : 4); i++) {
        char name[40];
        mc_program program = {name, setup, {first, second}, NULL};

        snprintf(name, sizeof name, "second look %s", scripts[i]);
        script = scripts[i];
        mc_run_and_add(&total, &program, &options);
    }
    return mc_report(total);
}
