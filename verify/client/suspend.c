/* SPDX-License-Identifier: MIT */
/*
 * A strand that waits: thieves steal its tasks meanwhile, every strand that may go on does, and no
 * worker sleeps while there is either.
 *
 * Workers are in filch_worker_main (worker_loop.h: the loop is part of this file): the first begins
 * with a strand, the second asleep. The strand forks a task or not, then waits for a future. The
 * names of the programs below say how each goes on. A thread from outside may run the task: as a
 * guest, which leaves when there is nothing to help with. A strand that is not resumed, or a task
 * that no worker takes, leaves a thread waiting for ever.
 *
 * To miss the work that a strand leaves behind when it goes on takes two preemptions or more. That
 * program is walked at random.
 */
#include "worker_loop.h"

#include "mc/mc.h"
#include "small_pool.h"

#include <errno.h>
#include <filch/future.h>
#include <filch/task.h>

/* A thread's clock comes this far only by a time-out. */
#define DEADLINE_NS 100000u
#define CLOCK_STEP_NS 1

static filch_pool *pool;
static filch_future future = FILCH_FUTURE_INIT;
static int payload, runs; /* plain: of the thread that sets the future; of the task */
static filch_atomic_u32 has_run, gone_on;
static int went_on; /* plain: of the strand */

static unsigned worker_count;
static bool has_ready; /* the first worker begins with strands that may go on */
static bool is_short;  /* there is no memory for another strand; both workers begin with one */
static bool is_busy;   /* the first worker has something else to do; the second is awake */
static void (*body)(filch_strand *self);

static void set(void)
{
    payload = 1;
    filch_future_set(&future, &payload, 0);
}

static void await(filch_frame *f)
{
    void *value;
    int err = filch_future_get(f, &future, &value);
    mc_check(err == 0 && *(int *)value == 1, "the strand sees what it waited for");
}

static void run_task(filch_frame *f, void *is_set)
{
    (void)f;
    runs++;
    filch_store_release(&has_run, 1);
    if (is_set)
        set();
}

/* ---- roles of the first strand --------------------------------------------------------------- */

static void only_wait(filch_strand *self)
{
    await(filch_split_slots(&self->split));
    went_on = 1;
}

/* The task completes the future that the strand waits for: a thief must steal it from the waiting
 * strand. */
static void wait_for_task(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;

    f = filch_fork(f, run_task, &runs);
    await(f);
    filch_join(f, mark);
    mc_check(runs == 1, "the task has run once");
    went_on = 1;
}

static void wait_and_join(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;

    f = filch_fork(f, run_task, NULL);
    await(f);
    filch_join(f, mark);
    mc_check(runs == 1, "the task has run once");
    went_on = 1;
}

/* The same without memory for a strand to run the task on: the waiting strand gets an error, and
 * runs the task at its join. Then the other waiters go on. */
static void wait_in_vain(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;

    f = filch_fork(f, run_task, &runs);
    mc_check(filch_future_get(f, &future, NULL) == -ENOMEM, "who waits for its own task is told");
    f = filch_join(f, mark);
    await(f);
    filch_store_release(&gone_on, 1);
}

static void wait_for_the_other(filch_strand *self)
{
    await(filch_split_slots(&self->split));
    while (!filch_load_acquire(&gone_on))
        filch_pause();
    went_on = 1;
}

/* The strand goes on without a fork or a join, and its task is still there for thieves. */
static void wait_and_work(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;

    f = filch_fork(f, run_task, NULL);
    await(f);
    while (!filch_load_acquire(&has_run))
        filch_pause();
    filch_join(f, mark);
    mc_check(runs == 1, "the task has run once");
    went_on = 1;
}

static void yield_and_join(filch_strand *self)
{
    filch_frame *f = filch_split_slots(&self->split), *mark = f;

    f = filch_fork(f, run_task, NULL);
    mc_check(filch_yield(f) == 0, "it goes on after the others");
    filch_join(f, mark);
    mc_check(runs == 1, "the task has run once");
    went_on = 1;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool is_asleep(unsigned worker_index)
{
    return !is_busy && !is_short && (worker_index > 0 || (!body && !has_ready));
}

static void setup(void)
{
    pool = make_small_pool(worker_count);
    filch_pool_begin(pool);
    if (body)
        begin_with(pool->workers[0], body);
    else if (has_ready)
        filch_sleep_search(&pool->sleep, worker_count);
    for (unsigned i = 0; i < worker_count; i++)
        if (is_asleep(i))
            filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
    if (is_busy)
        filch_sleep_search(&pool->sleep, worker_count);
}

static void work(void)
{
    filch_worker *worker = pool->workers[mc_self() - 1];

    if (is_asleep(worker->index))
        filch_seat_nap(&worker->seat, NULL);
    else if (has_ready)
        filch_pool_notify(pool, worker); /* for the strands in its queue */
    filch_worker_main(worker);
}

static MC_OUTSIDE bool may_rest(void)
{
    return went_on == 1;
}

/* ---- all strands that there are wait --------------------------------------------------------- */

static void setup_no_memory(void)
{
    pool = make_small_pool(2);
    filch_pool_begin(pool);
    begin_with(pool->workers[0], wait_in_vain);
    begin_with(pool->workers[1], wait_for_the_other);
    /* Another strand would need a deque, and no deque has so much room. */
    for (unsigned i = 0; i < 2; i++)
        filch_magazine_empty(&pool->workers[i]->free, &pool->strands);
    while (filch_strands_have_free(&pool->strands))
        filch_strand_take(&pool->strands);
    filch_kind_find(FILCH_DEQUE_CHASELEV, &pool->strands.kind);
    pool->strands.capacity = SIZE_MAX;
}

/* ---- strands that may go on, in the queue of a worker ---------------------------------------- */

#define READY 3

/* The first strand to go on waits until all have. */
static void go_on(filch_strand *self)
{
    (void)self;
    if (filch_fetch_add_acq_rel(&gone_on, 1) == 0)
        while (filch_load_acquire(&gone_on) < 2)
            filch_pause();
    if (filch_fetch_add_acq_rel(&has_run, 1) == READY - 1)
        went_on = 1;
}

static void setup_ready(void)
{
    setup();
    for (int i = 0; i < READY; i++) {
        filch_worker_have_spare(pool->workers[0]);
        filch_strand *strand = filch_worker_prepare(pool->workers[0], go_on, NULL, NULL);
        filch_strand_begin_task(strand, NULL, NULL);
        filch_queue_push(&pool->workers[0]->ready, &strand->link);
    }
}

/* ---- a worker that has something else to do, while the other one gives up searching ---------- */

static void wait_until_it_has_run(filch_strand *self)
{
    (void)self;
    while (!filch_load_acquire(&has_run))
        filch_pause();
}

static void setup_busy(void)
{
    setup();
    filch_worker_have_spare(pool->workers[0]);
    filch_strand *strand =
        filch_worker_prepare(pool->workers[0], wait_until_it_has_run, NULL, NULL);
    filch_strand_begin_task(strand, NULL, NULL);
    filch_queue_push(&pool->workers[0]->ready, &strand->link);
}

/* ---- the list of those that wait with tasks, alone ------------------------------------------- */

static filch_strand *listed;
static filch_parked another;

static void setup_listed(void)
{
    pool = make_small_pool(2);
    listed = filch_strand_take(&pool->strands);
}

static void setup_with_task(void)
{
    setup_listed();
    filch_split_publish(&listed->split, 1);
}

static void setup_without(void)
{
    setup_listed();
    filch_parked_add(&pool->workers[0]->parked, listed);
}

/* await_end does this. */
static void park_and_notify(void)
{
    filch_parked_add(&pool->workers[0]->parked, listed);
    filch_pool_notify(pool, pool->workers[0]);
}

static void sleep_unless_parked(void)
{
    filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
    if (filch_parked_is_empty(&pool->workers[0]->parked))
        filch_seat_nap(&pool->workers[1]->seat, NULL);
}

/* The strand goes on, and waits again, on another worker. */
static void take_off_and_add(void)
{
    filch_parked_remove(listed);
    filch_parked_add(&another, listed);
}

static void find_nothing(void)
{
    filch_slot *task;
    mc_check(!filch_parked_steal(&pool->workers[0]->parked, NULL, &task),
             "there is nothing to steal");
}

static void finish_without(void)
{
    mc_check(filch_parked_is_empty(&pool->workers[0]->parked), "a strand is in one list");
    mc_check(another.first == listed && !listed->parked_next, "the one that it was put into last");
}

/* ---- no memory for another strand ------------------------------------------------------------ */

static void setup_short(void)
{
    setup_with_task();
    filch_wait_open(&listed->wait, false);
    filch_parked_add(&pool->workers[0]->parked, listed);
    filch_wait_park(&listed->wait);
}

/* filch_worker_main does this. */
static void stop_working(void)
{
    filch_sleep_push(&pool->sleep, mc_self() - 1, FILCH_ROLE_RUNNING);
    filch_pool_refuse(pool, 0);
}

static void end_wait(void)
{
    filch_link *strands =
        filch_wait_end(&listed->wait, (uint64_t)1 << FILCH_WAIT_TURN_SHIFT, 0) == FILCH_WAIT_RESUME
            ? &listed->link
            : NULL;
    if (strands)
        strands->next = NULL;
    filch_pool_resume(pool, strands);
}

static void finish_short(void)
{
    mc_check(filch_wait_outcome(&listed->wait) == FILCH_WAIT_NO_MEMORY,
             "whose tasks nobody can run is told");
    mc_check(take_resumed_strand(pool) == &listed->link && !take_resumed_strand(pool),
             "and goes on, once");
}

/* While this strand may go on, the pool waits for it, and refuses no task. */
static filch_link may_go_on;

static filch_job not_begun;

static void refuse(filch_job *job, filch_pool *of)
{
    (void)job, (void)of;
    mc_check(false, "as long as somebody goes on, no task is refused");
}

static void setup_short_ready(void)
{
    setup_short();
    not_begun.refuse = refuse;
    filch_queue_push(&pool->inject, &not_begun.link);
    filch_queue_push(&pool->workers[1]->ready, &may_go_on);
}

static void finish_patient(void)
{
    mc_check(filch_wait_is_open(filch_load_relaxed(&listed->wait.word)),
             "as long as somebody goes on, nobody is told");
}

static void finish_ended(void)
{
    mc_check(take_resumed_strand(pool) == &listed->link && !take_resumed_strand(pool),
             "it goes on once, whoever ends its wait");
}

static int run_lists(const mc_options *options)
{
    const mc_program programs[] = {
        {"parked, or sleep", setup_with_task, {park_and_notify, sleep_unless_parked}, NULL},
        {"parked, again", setup_without, {take_off_and_add, find_nothing}, finish_without},
        {"refused", setup_short, {stop_working, stop_working}, finish_short},
        {"refused, one works", setup_short, {stop_working}, finish_patient},
        {"refused, one may go on", setup_short_ready, {stop_working, stop_working}, finish_patient},
        {"refused, or ended", setup_short, {stop_working, stop_working, end_wait}, finish_ended},
        {"parked, again, two thieves",
         setup_without,
         {take_off_and_add, find_nothing, find_nothing},
         finish_without},
    };
    int failures = 0;

    const mc_options two = mc_bounded(*options, 2, 1);

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        /* The last worker to sleep decides, which a small bound shows; --long goes further. */
        bool is_wide = programs[i].threads[0] == stop_working && programs[i].threads[1];
        mc_result r = mc_run(&programs[i], is_wide ? &two : options);
        failures |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return failures;
}

/* ---- guests ---------------------------------------------------------------------------------- */

static void run_waiting(filch_frame *f, void *arg)
{
    (void)arg;
    await(f);
}

static void run_sleeping(filch_frame *f, void *arg)
{
    (void)arg;
    mc_check(filch_sleep_until(f, DEADLINE_NS) == 0, "time is up");
}

static void visit_waiting(void)
{
    mc_check(filch_run(pool, run_waiting, NULL) == 0, "a task is run");
    went_on = 1;
}

static void visit_sleeping(void)
{
    mc_check(filch_run(pool, run_sleeping, NULL) == 0, "a task is run");
    went_on = 1;
}

/* ---- programs -------------------------------------------------------------------------------- */

static int code;

static void run_one(const char *name, mc_options options, unsigned workers,
                    void (*strand)(filch_strand *), void (*one)(void), void (*other)(void))
{
    mc_program program = {.name = name,
                          .setup = is_short        ? setup_no_memory
                                   : is_busy       ? setup_busy
                                   : one || strand ? setup
                                                   : setup_ready};
    unsigned at = 0;

    worker_count = workers;
    body = strand;
    has_ready = !one && !strand;
    while (at < workers)
        program.threads[at++] = work;
    if (one)
        program.threads[at++] = one;
    if (other)
        program.threads[at] = other;
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
    mc_options looking = timed;
    looking.timeouts = 4; /* of the lookout, until it has seen everything */
    mc_options one = mc_bounded(options, 1, 1), timed_one = mc_bounded(timed, 1, 1),
               walks = options;
    if (walks.mode == MC_FULL)
        walks.mode = MC_RANDOM;
    if (walks.runs == 0)
        walks.runs = walks.is_long ? 1000000 : 20000;

    mc_options lists = options;
    lists.may_rest = NULL;
    code |= run_lists(&lists);
    run_one("suspend, task, alone", options, 1, wait_for_task, NULL, NULL);
    run_one("suspend, yield, alone", options, 1, yield_and_join, NULL, NULL);
    run_one("suspend, yield", one, 2, yield_and_join, NULL, NULL);
    run_one("suspend, task", one, 2, wait_for_task, NULL, NULL);
    is_short = true;
    run_one("suspend, no memory", one, 2, wait_in_vain, NULL, NULL);
    is_short = false;
    run_one("suspend, ready", mc_bounded(looking, 1, 1), 2, NULL, NULL, NULL);
    is_busy = true;
    run_one("suspend, busy", walks, 2, wait_for_task, NULL, NULL);
    is_busy = false;
    run_one("suspend, set", one, 2, only_wait, set, NULL);
    run_one("suspend, join", one, 2, wait_and_join, set, NULL);
    run_one("suspend, work", walks, 2, wait_and_work, set, NULL);
    run_one("suspend, guest", one, 1, NULL, set, visit_waiting);
    run_one("suspend, guest sleeps", timed_one, 1, NULL, visit_sleeping, NULL);
    return code;
}
