/* SPDX-License-Identifier: MIT */
/*
 * A scope: close waits for all tasks, sees their effects, and touches the scope last; a
 * cancellation or a deadline reaches every waiting task.
 *
 * Workers are in filch_worker_main (worker_loop.h: the loop is part of this file). A thread from
 * outside or a task opens a scope, and frees it as soon as it is closed. The effects of the tasks
 * are plain. Nothing else ends the waits of the tasks in a cancelled scope, so a missed
 * cancellation is a deadlock. So is a deadline that no worker watches. If a worker watches it, an
 * execution may end there.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"
#include "wait/spawn.h"

#include <errno.h>
#include <filch/future.h>
#include <filch/scope.h>

/* A thread's clock comes this far only by a time-out. */
#define DEADLINE_NS 100000u
#define CLOCK_STEP_NS 1

static filch_pool *pool;
static filch_scope *scope;
static filch_future never = FILCH_FUTURE_INIT;
static int did[3]; /* plain: the effects of the tasks */
static int went_on;

static unsigned worker_count;

/* ---- tasks ----------------------------------------------------------------------------------- */

static int work_on(filch_frame *f, void *what)
{
    (void)f;
    (*(int *)what)++;
    return 0;
}

static int spawn_another(filch_frame *f, void *what)
{
    mc_check(filch_scope_spawn(f, scope, work_on, (int *)what + 1) == 0, "a task spawns another");
    (*(int *)what)++;
    return 0;
}

static int fail(filch_frame *f, void *what)
{
    (void)f;
    (*(int *)what)++;
    return -EIO;
}

static int wait_in_vain(filch_frame *f, void *what)
{
    mc_check(filch_future_get(f, &never, NULL) == -ECANCELED, "a wait in a cancelled scope ends");
    (*(int *)what)++;
    return 0;
}

/* The first wait is shielded, so a cancellation does not end it. */
static int wait_shielded(filch_frame *f, void *what)
{
    filch_frame *shield = filch_shield(f);
    mc_check(filch_sleep_until(f, 1) == 0, "a wait that is shielded is not cancelled");
    filch_unshield(f, shield);
    return wait_in_vain(f, what);
}

/* A scope of its own, in which a task waits. */
static int wait_for_inner(filch_frame *f, void *what)
{
    filch_scope *inner = malloc(sizeof *inner);

    mc_check(filch_scope_open(f, inner, NULL, NULL) == 0, "a scope is opened in a task");
    int err = filch_scope_spawn(f, inner, wait_in_vain, what);
    mc_check(err == 0, "a task is spawned");
    err = filch_scope_close(f, inner);
    mc_check(err == -ECANCELED, "a scope is cancelled with its closer");
    free(inner);
    return 0;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void open_scope(filch_frame *f, filch_scope_options options)
{
    options.size = sizeof options;
    scope = malloc(sizeof *scope);
    mc_check(filch_scope_open(f, scope, pool, &options) == 0, "a scope is opened");
}

static void spawn(filch_frame *f, filch_task_fn *fn, int *what)
{
    mc_check(filch_scope_spawn(f, scope, fn, what) == 0, "a task is spawned");
}

static void close_scope(filch_frame *f, int expected)
{
    int err = filch_scope_close(f, scope);
    mc_check(err == expected, "what close returns");
    free(scope);
}

static void use_one(filch_frame *f)
{
    open_scope(f, (filch_scope_options){0});
    spawn(f, work_on, &did[0]);
    close_scope(f, 0);
    mc_check(did[0] == 1, "the task has run");
}

static void use_more(filch_frame *f)
{
    open_scope(f, (filch_scope_options){0});
    spawn(f, spawn_another, &did[0]);
    close_scope(f, 0);
    mc_check(did[0] == 1 && did[1] == 1, "all tasks have run");
}

static void use_limited(filch_frame *f)
{
    open_scope(f, (filch_scope_options){.task_limit = 1});
    spawn(f, work_on, &did[0]);
    spawn(f, work_on, &did[1]);
    close_scope(f, 0);
    mc_check(did[0] == 1 && did[1] == 1, "both tasks have run");
}

static void use_failing(filch_frame *f)
{
    open_scope(f, (filch_scope_options){.cancel_on_error = true});
    spawn(f, fail, &did[0]);
    /* The error may come first. */
    int err = filch_scope_spawn(f, scope, wait_in_vain, &did[1]);
    mc_check(err == 0 || err == -ECANCELED, "a task is spawned or cancelled");
    close_scope(f, -EIO);
    mc_check(did[0] == 1, "the task that fails has run");
}

static void use_cancelled(filch_task_fn *fn)
{
    open_scope(NULL, (filch_scope_options){0});
    spawn(NULL, fn, &did[0]);
    filch_scope_cancel(scope);
    close_scope(NULL, -ECANCELED);
}

/* The deadline may come first. */
static void spawn_in_time(filch_frame *f, filch_task_fn *fn)
{
    int err = filch_scope_spawn(f, scope, fn, &did[0]);
    mc_check(err == 0 || err == -ECANCELED, "a task is spawned or cancelled");
}

static void use_deadline(filch_frame *f)
{
    open_scope(f, (filch_scope_options){.deadline_ns = DEADLINE_NS});
    spawn_in_time(f, wait_in_vain);
    close_scope(f, -ETIMEDOUT);
}

/* The scope is over before the deadline, or at the same time. */
static void use_deadline_in_vain(filch_frame *f)
{
    open_scope(f, (filch_scope_options){.deadline_ns = DEADLINE_NS});
    spawn_in_time(f, work_on);
    int err = filch_scope_close(f, scope);
    mc_check(err == 0 || err == -ETIMEDOUT, "what close returns");
    free(scope);
}

/* ---- from outside ---------------------------------------------------------------------------- */

static void outside_one(void)
{
    use_one(NULL);
}

static void outside_more(void)
{
    use_more(NULL);
}

static void outside_limited(void)
{
    use_limited(NULL);
}

static void outside_failing(void)
{
    use_failing(NULL);
}

static void outside_cancelled(void)
{
    use_cancelled(wait_in_vain);
}

static void outside_shielded(void)
{
    use_cancelled(wait_shielded);
}

static void outside_inner(void)
{
    use_cancelled(wait_for_inner);
}

static void outside_deadline(void)
{
    use_deadline(NULL);
}

static void outside_in_vain(void)
{
    use_deadline_in_vain(NULL);
}

/* The strand that ran a task of the scope is reused. */
static void look_at_scope(filch_frame *f, void *arg)
{
    (void)arg;
    mc_check(!filch_is_cancelled(f), "a filch_run belongs to no scope");
}

static void outside_then_run(void)
{
    open_scope(NULL, (filch_scope_options){0});
    spawn(NULL, work_on, &did[0]);
    filch_scope_cancel(scope);
    close_scope(NULL, -ECANCELED);
    mc_check(filch_run(pool, look_at_scope, NULL) == 0, "a task is run");
}

/* No other worker is awake, or comes. */
static void outside_deadline_alone(void)
{
    open_scope(NULL, (filch_scope_options){.deadline_ns = DEADLINE_NS});
    while (!filch_load_relaxed(&scope->mark))
        filch_pause();
    close_scope(NULL, -ETIMEDOUT);
}

/* ---- tasks that end at the same time, without workers ---------------------------------------- */

static filch_spawned *spawned[2];

static void setup_ends(void)
{
    pool = make_small_pool(1);
    open_scope(NULL, (filch_scope_options){0});
    for (int i = 0; i < 2; i++)
        mc_check(filch_spawn_task(NULL, scope, NULL, 0, &spawned[i]) == 0,
                 "there is memory for a task");
}

static void end_one(void)
{
    filch_spawned *own = spawned[mc_self() - 1];

    did[mc_self() - 1]++;
    own->job.end(&own->job, pool);
}

static void close_both(void)
{
    close_scope(NULL, 0);
    mc_check(did[0] == 1 && did[1] == 1, "who closes sees what all tasks did");
}

/* ---- in a task ------------------------------------------------------------------------------- */

static void inside_one(filch_strand *self)
{
    use_one(filch_split_slots(&self->split));
    went_on = 1;
}

static void inside_limited(filch_strand *self)
{
    use_limited(filch_split_slots(&self->split));
    went_on = 1;
}

static void inside_deadline(filch_strand *self)
{
    use_deadline(filch_split_slots(&self->split));
    went_on = 1;
}

static void (*body)(filch_strand *self);

static void setup_inside(void)
{
    pool = make_small_pool(worker_count);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], body);
    for (unsigned i = 1; i < worker_count; i++)
        filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
}

/* All workers sleep. */
static void setup(void)
{
    pool = make_small_pool(worker_count);
    for (unsigned i = 0; i < worker_count; i++)
        filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
}

static void work(void)
{
    filch_worker *worker = pool->workers[mc_self() - 1];

    if (!worker->next)
        filch_seat_nap(&worker->seat, NULL);
    filch_worker_main(worker);
}

static void (*outside_body)(void);

static void run_outside(void)
{
    outside_body();
    went_on = 1;
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

/* ---- programs -------------------------------------------------------------------------------- */

static int code;

static void run_one(const char *name, mc_options options, unsigned workers, void (*outside)(void),
                    void (*inside)(filch_strand *))
{
    mc_program program = {.name = name, .setup = outside ? setup : setup_inside};
    unsigned at = 0;

    worker_count = workers;
    body = inside;
    while (at < workers)
        program.threads[at++] = work;
    outside_body = outside;
    if (outside)
        program.threads[at] = run_outside;
    mc_result r = mc_run(&program, &options);
    code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    options.may_rest = may_rest;
    mc_options timed = options;
    timed.timeouts = 1;
    timed.clock_step_ns = CLOCK_STEP_NS;
    mc_options one = mc_bounded(options, 1, 1), two = mc_bounded(options, 2, 1);
    mc_options one_timed = mc_bounded(timed, 1, 1);

    const mc_program ends = {"scope, ends", setup_ends, {end_one, end_one, close_both}, NULL};
    mc_result r = mc_run(&ends, &options);
    code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    run_one("scope", two, 1, outside_one, NULL);
    run_one("scope, then run", one, 1, outside_then_run, NULL);
    run_one("scope, spawns", one, 1, outside_more, NULL);
    run_one("scope, limit", one, 1, outside_limited, NULL);
    run_one("scope, error", one, 1, outside_failing, NULL);
    run_one("scope, cancelled", two, 1, outside_cancelled, NULL);
    run_one("scope, shielded", one, 1, outside_shielded, NULL);
    run_one("scope, inner", one, 1, outside_inner, NULL);
    run_one("scope, deadline", one_timed, 1, outside_deadline, NULL);
    run_one("scope, deadline in vain", one_timed, 1, outside_in_vain, NULL);
    run_one("scope, deadline alone", one_timed, 1, outside_deadline_alone, NULL);
    run_one("scope in a task", one, 2, NULL, inside_one);
    run_one("scope in a task, limit", one, 2, NULL, inside_limited);
    run_one("scope in a task, deadline", one_timed, 1, NULL, inside_deadline);
    return code;
}
