/* SPDX-License-Identifier: MIT */
/*
 * Calls that block: each call is made once, its caller sees its effects, and the lane's threads end
 * with the lane.
 *
 * One or two threads make calls in a lane of at most two threads (src/block/blocking.c is part of
 * this file). These threads may fail to start, or end after a long time without a call. A call, on
 * its caller's stack, and its effects are plain memory. The lane ends when all calls were made.
 * With two callers there are five threads, so that program is walked at random.
 *
 * In "left", the lane has a thread that is never free. No thread can be started for the first call,
 * but one for the second. That thread takes the first call, which waits for the second.
 */
#include "mc/mc.h"

#define pthread_self() ((pthread_t)mc_self())
#include "block/blocking.c"

static lane the_lane;
static int did[2]; /* plain: the effects of the calls */

static void setup(void)
{
    the_lane = (lane){.last = &the_lane.first, .thread_limit = 2};
}

static void setup_busy(void)
{
    setup();
    the_lane.thread_count = 1;
    the_lane.thread_limit = 3;
}

static int call_it(void *what)
{
    return ++*(int *)what;
}

/* filch_blocking, called by a thread. */
static void block(int (*fn)(void *), int *what)
{
    call c = {.fn = fn, .arg = what, .state = CALL_QUEUED};
    int before = *what;

    filch_lock_acquire(&the_lane.lock);
    bool is_queued = queue_call(&the_lane, &c);
    if (!is_queued)
        take_off(&the_lane, &c);
    filch_lock_release(&the_lane.lock);
    if (is_queued)
        mc_check(wait_for_end(NULL, &the_lane, &c, FILCH_NEVER_NS) == CALL_DONE,
                 "a call that was queued is made");
    else
        c.result = fn(what);
    mc_check(c.result == before + 1 && *what == before + 1, "it is made once");
}

static void block_once(void)
{
    block(call_it, &did[mc_self() - 1]);
}

static void block_twice(void)
{
    block_once();
    block_once();
}

/* One call waits for the other, for which a thread may fail to start once. */
static filch_atomic_u32 is_done;

static int wait_for_other(void *what)
{
    while (!filch_load_acquire(&is_done))
        filch_futex_wait(&is_done, 0, NULL);
    return ++*(int *)what;
}

static int let_other_go(void *what)
{
    filch_store_release(&is_done, 1);
    filch_futex_wake(&is_done, 1);
    return ++*(int *)what;
}

static void block_after(void)
{
    block(wait_for_other, &did[0]);
}

static void block_before(void)
{
    block(let_other_go, &did[1]);
}

static void finish(void)
{
    end_lane(&the_lane);
    mc_check(the_lane.thread_count == 0 && !the_lane.first, "nobody is left");
}

static void finish_busy(void)
{
    filch_lock_acquire(&the_lane.lock);
    the_lane.thread_count--;
    filch_lock_release(&the_lane.lock);
    finish();
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    /* All spins in the library are bounded, and may end without news. */
    options.spins = MC_ALWAYS;
    options.check_leaks = true;
    mc_options timed = options, failing = options;
    timed.timeouts = 1;
    failing.faults = 1;
    const mc_options two = mc_bounded(options, 2, 1), timed_two = mc_bounded(timed, 2, 1),
                     failing_two = mc_bounded(failing, 2, 1);
    mc_options walks = failing;
    if (walks.mode == MC_FULL)
        walks.mode = MC_RANDOM;
    if (walks.runs == 0)
        walks.runs = walks.is_long ? 1000000 : 20000;
    mc_options turns = walks;
    turns.timeouts = MC_ALWAYS;
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"blocking", setup, {block_once}, finish}, &two},
        {{"blocking, twice", setup, {block_twice}, finish}, &two},
        {{"blocking, twice, timed", setup, {block_twice}, finish}, &timed_two},
        {{"blocking, no threads", setup, {block_twice}, finish}, &failing_two},
        {{"blocking, in turn", setup, {block_after, block_before}, finish}, &turns},
        {{"blocking, left", setup_busy, {block_after, block_before}, finish_busy}, &turns},
        {{"blocking, two", setup, {block_twice, block_once}, finish}, &walks},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
