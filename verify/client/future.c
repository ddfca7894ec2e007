/* SPDX-License-Identifier: MIT */
/*
 * A future, from both sides: a waiter sees the value, which is set only once, and frees the future
 * as soon as no other thread waits.
 *
 * Threads and a strand await it, one or two at a time, with and without a deadline, or poll it. One
 * or two threads set it. A waiter that is alone frees the future when it goes on. A worker in
 * filch_worker_main runs the strand (worker_loop.h: the loop is part of this file). It sleeps
 * meanwhile, and watches the deadline.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <errno.h>
#include <filch/future.h>

/* A thread's clock comes this far only by a time-out. */
#define DEADLINE_NS 100000u
#define CLOCK_STEP_NS 1

static filch_pool *pool;
static filch_future *future;
static int payload[2]; /* plain: the data behind the value */
static filch_atomic_u32 first_count;
static int went_on; /* plain: the strand's */

static void setup(void)
{
    future = calloc(1, sizeof *future);
    filch_future_init(future);
}

static void set(void)
{
    const int who = mc_self() - 1;

    payload[who] = 1;
    if (filch_future_set(future, &payload[who], 0))
        filch_fetch_add_relaxed(&first_count, 1);
}

static void check_value(int err, const int *value)
{
    mc_check(err == 0 && *value == 1, "who has awaited sees what was set, and all before");
}

static void await_plain(filch_frame *f)
{
    void *value;
    int err = filch_future_get(f, future, &value);
    check_value(err, value);
}

static void await_shortly(filch_frame *f)
{
    void *value;
    int err = filch_future_get_until(f, future, &value, DEADLINE_NS);

    if (err != -ETIMEDOUT)
        check_value(err, value);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void await_in_thread(void)
{
    await_plain(NULL);
}

static void await_and_free(void)
{
    await_plain(NULL);
    free(future);
}

/* Now only the thread that sets the future may touch it. After another wait it is the waiter's
 * again. */
static void await_shortly_and_free(void)
{
    await_shortly(NULL);
    await_and_free();
}

static void try_and_free(void)
{
    void *value;
    int err;

    while ((err = filch_future_try_get(future, &value)) == -EAGAIN)
        filch_pause();
    check_value(err, value);
    free(future);
}

static void finish(void)
{
    mc_check(filch_load_relaxed(&first_count) == 1, "it is completed once");
}

/* ---- a strand -------------------------------------------------------------------------------- */

static void run_and_free(filch_strand *self)
{
    await_plain(filch_split_slots(&self->split));
    free(future);
    went_on = 1;
}

static void run_shortly(filch_strand *self)
{
    await_shortly(filch_split_slots(&self->split));
    run_and_free(self);
}

static void run_beside(filch_strand *self)
{
    await_plain(filch_split_slots(&self->split));
    went_on = 1;
}

static void make_pool(void (*body)(filch_strand *))
{
    setup();
    pool = make_small_pool(1);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], body);
}

static void setup_strand(void)
{
    make_pool(run_and_free);
}

static void setup_shortly(void)
{
    make_pool(run_shortly);
}

static void setup_beside(void)
{
    make_pool(run_beside);
}

static void work(void)
{
    filch_worker_main(pool->workers[0]);
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

/* ---- programs -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv), timed = options, resting = options;
    timed.timeouts = timed.spurious = 1;
    timed.clock_step_ns = CLOCK_STEP_NS;
    resting.may_rest = may_rest;
    mc_options resting_timed = resting;
    resting_timed.timeouts = 1;
    resting_timed.clock_step_ns = CLOCK_STEP_NS;
    mc_options bounded = mc_bounded(resting, 2, 1), few = mc_bounded(resting, 1, 1);
    mc_options bounded_timed = mc_bounded(resting_timed, 1, 1);
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"future", setup, {set, await_and_free}, finish}, &options},
        {{"future, timed", setup, {set, await_shortly_and_free}, finish}, &timed},
        {{"future, tried", setup, {set, try_and_free}, finish}, &options},
        {{"future, two setters", setup, {set, set, await_in_thread}, finish}, &bounded},
        {{"future, two waiters", setup, {set, await_in_thread, await_in_thread}, finish}, &few},
        {{"future, strand", setup_strand, {set, work}, NULL}, &resting},
        {{"future, strand and thread", setup_beside, {set, work, await_in_thread}, NULL}, &few},
        {{"future, strand, timed", setup_shortly, {set, work}, NULL}, &bounded_timed},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
