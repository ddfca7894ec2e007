/* SPDX-License-Identifier: MIT */
/*
 * No timer is forgotten: a worker watches it, even if others go to sleep, are woken for something
 * else, or have other work.
 *
 * Two workers are in filch_worker_main (worker_loop.h: the loop is part of this file), the second
 * asleep at first. A strand of the first sleeps until a deadline. The rest of the work ends only
 * after that: it is in the first worker's queue, or is injected or resumed from outside. If no
 * worker will wake up at the deadline, the checker reports a deadlock. Otherwise the execution goes
 * on or ends there. Programs with a third thread are too large, and are walked at random.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <errno.h>
#include <filch/scope.h>

/* A thread's clock comes this far only by a time-out. */
#define LATE_NS 400000u
#define EARLY_NS 100000u
#define CLOCK_STEP_NS 1

static filch_pool *pool;
static filch_atomic_u32 has_gone_on;
static filch_job job;
static filch_strand *waiting; /* for something from outside */
static filch_scope *scope;
static int went_on;
static bool has_other;

static void sleep_until(filch_strand *self)
{
    mc_check(filch_sleep_until(filch_split_slots(&self->split), LATE_NS) == 0, "time is up");
    filch_store_release(&has_gone_on, 1);
    went_on = 1;
}

static void wait_for_it(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    while (!filch_load_acquire(&has_gone_on))
        filch_pause();
}

static void wait_on_strand(filch_strand *self)
{
    wait_for_it(NULL, self);
}

static void end_job(filch_job *ended, filch_pool *in)
{
    (void)ended, (void)in;
}

static void setup(void)
{
    pool = make_small_pool(2);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], sleep_until);
    filch_worker_have_spare(pool->workers[0]);
    waiting = filch_worker_prepare(pool->workers[0], wait_on_strand, NULL, NULL);
    filch_strand_begin_task(waiting, NULL, NULL);
    if (has_other)
        filch_queue_push(&pool->workers[0]->ready, &waiting->link);
    filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
    job = (filch_job){.fn = wait_for_it, .end = end_job};
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

/* This job keeps one of the workers busy for ever. */
static void inject(void)
{
    filch_pool_inject(pool, &job);
}

/* The same, but the woken worker need not search for it. */
static void resume(void)
{
    waiting->link.next = NULL;
    filch_pool_resume(pool, &waiting->link);
}

/* A timer from outside, due before the other, and stopped or not. */
static void start_early(void)
{
    filch_scope_options options = {.size = sizeof options, .deadline_ns = EARLY_NS};

    scope = malloc(sizeof *scope);
    mc_check(filch_scope_open(NULL, scope, pool, &options) == 0, "a scope is opened");
    int err = filch_scope_close(NULL, scope);
    mc_check(err == 0 || err == -ETIMEDOUT, "it is closed before its deadline, or not");
    free(scope);
}

/* The thread waits for the deadline itself. */
static int sleep_longer(filch_frame *f, void *arg)
{
    (void)arg;
    mc_check(filch_sleep_until(f, 10 * LATE_NS) == -ECANCELED,
             "the deadline of the scope comes first");
    return 0;
}

static void wait_for_early(void)
{
    filch_scope_options options = {.size = sizeof options, .deadline_ns = EARLY_NS};

    scope = malloc(sizeof *scope);
    mc_check(filch_scope_open(NULL, scope, pool, &options) == 0, "a scope is opened");
    int err = filch_scope_spawn(NULL, scope, sleep_longer, NULL);
    mc_check(err == 0 || err == -ECANCELED, "a task is spawned or cancelled");
    err = filch_scope_close(NULL, scope);
    mc_check(err == -ETIMEDOUT, "it is closed after its deadline");
    free(scope);
}

/* ---- a watcher in bed, alone ----------------------------------------------------------------- */

static filch_timer stopped, later;

/* The timer that it wakes up for was stopped meanwhile; the next one is due later. */
static void setup_in_vain(void)
{
    pool = make_small_pool(1);
    filch_pool_begin(pool);
    filch_worker_have_spare(pool->workers[0]);
    later.strand = filch_worker_prepare(pool->workers[0], wait_on_strand, NULL, NULL);
    later.turn = filch_wait_open(&later.strand->wait, false);
    filch_wait_park(&later.strand->wait);
    filch_timer_start(&pool->timers, &later, LATE_NS);
    filch_timer_start(&pool->timers, &stopped, EARLY_NS);
    filch_sleep_push(&pool->sleep, 0, FILCH_ROLE_RUNNING);
}

static void watch_in_vain(void)
{
    filch_worker *worker = pool->workers[0];
    uint64_t until_ns = filch_timers_watch(&pool->timers, worker);

    filch_timer_stop(&pool->timers, &stopped);
    mc_check(filch_worker_sleep(worker, until_ns, false), "it is called");
    mc_check(take_ready(&pool->ready) == later.strand, "for what was due later");
    went_on = 1;
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

static int code;

static void run_one(const char *name, mc_options options, bool other, void (*outside)(void))
{
    mc_program program = {name, setup, {first, second, outside}, NULL};

    has_other = other;
    mc_result r = mc_run(&program, &options);
    code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    options.may_rest = may_rest;
    options.timeouts = 1;
    options.clock_step_ns = CLOCK_STEP_NS;
    mc_options one = mc_bounded(options, 1, 1), walks = options;
    if (walks.mode == MC_FULL)
        walks.mode = MC_RANDOM;
    if (walks.runs == 0)
        walks.runs = walks.is_long ? 1000000 : 20000;

    mc_options twice = options;
    twice.timeouts = 2;
    const mc_program in_vain = {"timer, in vain", setup_in_vain, {watch_in_vain}, NULL};
    mc_result r = mc_run(&in_vain, &twice);
    code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    run_one("timer", one, false, NULL);
    run_one("timer, other strand", one, true, NULL);
    run_one("timer, job", walks, false, inject);
    run_one("timer, resumed", walks, false, resume);
    run_one("timer, early", walks, false, start_early);
    run_one("timer, early, awaited", walks, false, wait_for_early);
    return code;
}
