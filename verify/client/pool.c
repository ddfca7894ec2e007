/* SPDX-License-Identifier: MIT */
/*
 * A whole pool: created, used from one or two threads, destroyed; its workers are threads of the
 * model.
 *
 * A pool is too large for an exhaustive search. Programs with one user are searched with few
 * preemptions. In them, submit meets the end of a worker's search and its sleep; destroy meets
 * workers that start and sleep. All programs are walked at random, more often with --long. The
 * client checks the answer, and the checker reports races, sleepers left, and memory that is not
 * freed.
 *
 * "one thread": a pool has the thread that it was created with, and no other can be started. "few
 * threads": any start may fail. Tasks wait there, and other tasks and threads wait for them: the
 * pool's one thread is enough to fire its timers and to run its tasks.
 */
#include "base/fault.h"
#include "mc/mc.h"

#include <errno.h>
#include <filch/filch.h>
#include <stdio.h>

#define STACK_BYTES ((size_t)16 << 10)

static filch_pool *pool;
static unsigned workers;
static filch_spin_policy spin_policy;

FILCH_TASK(int, sum, (int, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, sum, n - 1);
    int right = FILCH_CALL(sum, n - 2);
    return FILCH_JOIN(left) + right;
}

static void create(void)
{
    filch_options options = {.size = sizeof options,
                             .workers = workers,
                             .stack_bytes = STACK_BYTES,
                             .spin = spin_policy};

    mc_check(filch_pool_create(&pool, &options) == 0, "a pool is created");
}

/* When allocations may fail. */
static void create_if_possible(void)
{
    filch_options options = {.size = sizeof options,
                             .workers = workers,
                             .stack_bytes = STACK_BYTES,
                             .spin = spin_policy};
    int err = filch_pool_create(&pool, &options);

    mc_check(err == 0 || ((err == -ENOMEM || err == -EAGAIN) && !pool),
             "a pool is created, or there is no memory, or no thread");
}

static void destroy(void)
{
    mc_check(filch_pool_destroy(pool) == 0, "the pool is destroyed");
}

/* ---- roles of the threads -------------------------------------------------------------------- */

static void run_sum(void)
{
    mc_check(FILCH_RUN(pool, sum, 3) == 2, "the sum is right");
}

static filch_atomic_u32 done;

static void count(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    filch_fetch_add_relaxed(&done, 1);
}

static void submit(void)
{
    mc_check(filch_submit(pool, count, NULL) == 0, "a task is submitted");
}

static void submit_and_wait(void)
{
    submit();
    mc_check(filch_pool_wait(pool) == 0, "all tasks have ended");
    mc_check(filch_load_relaxed(&done) >= 1, "ours has run");
}

static void check_two(void)
{
    destroy();
    mc_check(filch_load_relaxed(&done) == 2, "both tasks have run");
}

static void check_one(void)
{
    destroy();
    mc_check(filch_load_relaxed(&done) == 1, "the task has run");
}

/* Two pools whose tasks run tasks in each other. A strand waits for a job. A worker takes the
 * strand from the list of resumed strands and goes on with it. */
static filch_pool *other;

static void create_two(void)
{
    create();
    other = pool;
    create();
}

static void destroy_two(void)
{
    destroy();
    pool = other;
    check_two();
}

static void run_in(filch_frame *f, void *in)
{
    (void)f;
    mc_check(filch_run(in, count, NULL) == 0, "a task runs one in the other pool");
}

static void run_there_and_back(void)
{
    mc_check(filch_run(pool, run_in, other) == 0, "a task is run");
}

static void run_here_and_there(void)
{
    mc_check(filch_run(other, run_in, pool) == 0, "a task is run");
}

/* A task of one pool waits for a task of the other, which waits for a timer. */
static void nap(filch_frame *f, void *arg)
{
    mc_check(filch_sleep_ns(f, 1000) == 0, "a task sleeps");
    count(f, arg);
}

static void run_nap_in(filch_frame *f, void *in)
{
    (void)f;
    mc_check(filch_run(in, nap, NULL) == 0, "a task runs one in the other pool");
}

static void run_nap_there(void)
{
    mc_check(filch_run(pool, run_nap_in, other) == 0, "a task is run");
}

static void run_nap_here(void)
{
    mc_check(filch_run(other, nap, NULL) == 0, "a task is run");
}

/* A plain thread waits for a task that another thread submits, and that waits for a timer. */
static filch_future future;

static void nap_and_set(filch_frame *f, void *arg)
{
    nap(f, arg);
    mc_check(filch_future_set(&future, &future, 0), "the future is set once");
}

static void submit_setter(void)
{
    mc_check(filch_submit(pool, nap_and_set, NULL) == 0, "a task is submitted");
}

static void get_future(void)
{
    void *value;
    mc_check(filch_future_get(NULL, &future, &value) == 0 && value == &future,
             "a plain thread gets the value");
}

static filch_atomic_u32 accepted;

static void submit_if_possible(void)
{
    int err = pool ? filch_submit(pool, count, NULL) : -ENOMEM;

    mc_check(err == 0 || err == -ENOMEM, "a task is submitted, or there is no memory");
    filch_fetch_add_relaxed(&accepted, err == 0);
}

static void run_if_possible(void)
{
    int err = pool ? filch_run(pool, count, NULL) : -ENOMEM;

    mc_check(err == 0 || err == -ENOMEM, "a task is run, or there is no memory");
    filch_fetch_add_relaxed(&accepted, err == 0);
}

static void check_accepted(void)
{
    if (pool)
        destroy();
    mc_check(filch_load_relaxed(&done) == filch_load_relaxed(&accepted),
             "what was accepted has run");
}

/* ---- programs -------------------------------------------------------------------------------- */

static const struct {
    mc_program program;
    unsigned workers;
    filch_spin_policy spin;
    unsigned faults;      /* of each thread, or MC_ALWAYS */
    unsigned fault_kinds; /* only these */
} programs[] = {
    {{"pool run", create, {run_sum}, destroy}, 2, FILCH_SPIN_POWER, 0, 0},
    {{"pool run, spinning", create, {run_sum}, destroy}, 2, FILCH_SPIN_BALANCED, 0, 0},
    {{"pool two runs", create, {run_sum, run_sum}, destroy}, 2, FILCH_SPIN_POWER, 0, 0},
    {{"pool submit", create, {submit}, check_one}, 1, FILCH_SPIN_POWER, 0, 0},
    {{"pool submit, wait", create, {submit_and_wait}, check_one}, 2, FILCH_SPIN_BALANCED, 0, 0},
    {{"pool two submit", create, {submit, submit}, check_two}, 2, FILCH_SPIN_POWER, 0, 0},
    {{"pool run, submit", create, {run_sum, submit}, check_one}, 2, FILCH_SPIN_POWER, 0, 0},
    {{"pool in pool", create_two, {run_there_and_back, run_here_and_there}, destroy_two},
     1,
     FILCH_SPIN_POWER,
     0,
     0},
    {{"pool submit, one thread", create, {submit, submit}, check_two},
     2,
     FILCH_SPIN_POWER,
     MC_ALWAYS,
     1u << FILCH_FAULT_THREAD},
    {{"pool run, one thread", create, {run_sum, submit}, check_one},
     2,
     FILCH_SPIN_POWER,
     MC_ALWAYS,
     1u << FILCH_FAULT_THREAD},
    {{"pool run, few threads", create, {run_sum, submit}, check_one},
     3,
     FILCH_SPIN_POWER,
     2,
     1u << FILCH_FAULT_THREAD},
    {{"nap in pool, one thread", create_two, {run_nap_there, run_nap_here}, destroy_two},
     2,
     FILCH_SPIN_POWER,
     MC_ALWAYS,
     1u << FILCH_FAULT_THREAD},
    {{"nap in pool, few threads", create_two, {run_nap_there, run_nap_here}, destroy_two},
     2,
     FILCH_SPIN_POWER,
     2,
     1u << FILCH_FAULT_THREAD},
    {{"future, one thread", create, {get_future, submit_setter}, check_one},
     2,
     FILCH_SPIN_POWER,
     MC_ALWAYS,
     1u << FILCH_FAULT_THREAD},
    {{"pool submit, faults",
      create_if_possible,
      {submit_if_possible, submit_if_possible},
      check_accepted},
     2,
     FILCH_SPIN_POWER,
     2,
     0},
    {{"pool run, faults",
      create_if_possible,
      {run_if_possible, submit_if_possible},
      check_accepted},
     2,
     FILCH_SPIN_POWER,
     2,
     0},
};

static int run(const mc_program *program, const mc_options *options)
{
    mc_result result = mc_run(program, options);
    return result.verdict == MC_SKIPPED ? 0 : mc_report(result);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    int failures = 0;

    if (options.mode == MC_FULL && options.max_executions == 0 && options.max_seconds == 0)
        options.mode = MC_RANDOM;
    if (options.runs == 0)
        options.runs = options.is_long ? 1000000 : 3000;
    options.spins = MC_ALWAYS;
    options.timeouts = MC_ALWAYS;
    options.check_leaks = true;
    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        workers = programs[i].workers;
        spin_policy = programs[i].spin;
        options.fault_kinds = programs[i].fault_kinds;
        options.faults = programs[i].faults;
        options.is_setup_sound = programs[i].fault_kinds != 0;
        failures += run(&programs[i].program, &options);
        if (options.mode == MC_RANDOM && !programs[i].program.threads[1]) {
            mc_options all = options;
            all.mode = MC_FULL;
            all = mc_bounded(all, 1, 1);
            failures += run(&programs[i].program, &all);
        }
    }
    return failures > 0;
}
