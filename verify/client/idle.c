/* SPDX-License-Identifier: MIT */
/*
 * What comes while a worker goes idle is found: by who goes to sleep, by the last who leaves the searchers, or by the one that is woken for it.
 *
 * T1 makes something known, by the function that ships (src/worker/worker.c is part of this file):
 *
 *     r  resumes a strand, as a task of worker 0; R  as a plain thread        i  injects a job; s  spawns one, as a task of worker 0
 *     w  leaves a strand that waits, with a task that can be stolen            y  leaves one that yields; p  passes one on, as a guest does
 *     g  goes on with one that has waited, and still has a task that can be stolen
 *     h  takes half of what worker 1 has ready, which goes on with the rest of it before it sleeps
 *     c  leaves one that waits for a stolen child, with an older task in a deque that is claimed from
 *     t  starts a timer, and goes on with something else; T  starts one from outside, as a scope does        f  ends what is due
 *
 * T2 is worker 1. It goes to sleep (s), as filch_worker_main does after its last search; or it was the only searcher, has found something and says so (l), while T3, worker 2,
 * sleeps. Nobody takes what has come, so it has to be seen in every execution: by the sleeper, which then is woken or watches; or T3 is woken. One that sleeps on is a
 * deadlock. Without memory for a strand (n) the sleeper looks only for strands that may go on, and for timers. With a lookout (o) T2 lies in bed and looks; it was manned before anything came. All of it in full, but for h.
 */
#include "worker/worker.c"

#include "mc/mc.h"

static const char *deque_name;
#define SMALL_POOL_DEQUE deque_name
#include "small_pool.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_NS ((uint64_t)1 << 40)

static filch_pool *pool;
static filch_strand *strand;
static filch_job job;
static filch_timer timer;
static filch_atomic_u32 never;
static filch_slot child, older;
static filch_link ready[3]; /* stand for strands */
static bool is_over; /* of T2, or of T3 where there is one */

static char what, how;
static bool is_searching; /* T2 is counted as searcher at first */

static void do_nothing(filch_strand *self)
{
    (void)self;
    for (;;)
        filch_futex_wait(&never, 0, NULL);
}

/* ---- T1 ---------------------------------------------------------------------------------------- */

static void make_known(void)
{
    filch_worker *worker = pool->workers[0];
    const filch_visit visit = {.worker = worker};

    if (!strchr("RiTf", what))
        set_self(&visit);
    switch (what) {
    case 'r':
    case 'R':
        filch_strand_resume(strand);
        break;
    case 'i':
        filch_pool_inject(pool, &job);
        break;
    case 's':
        filch_pool_spawn(pool, &job);
        break;
    case 'w':
        await_end(worker, strand);
        break;
    case 'y':
        worker->leave = FILCH_LEAVE_TO_YIELD;
        leave(worker, strand);
        break;
    case 'h':
        take_half(worker, &pool->workers[1]->ready, &worker->ready);
        /* It may have come too late: */
        if (filch_queue_is_empty(&worker->ready))
            filch_pool_inject(pool, &job);
        break;
    case 'c':
        worker->waits_for = &child;
        await_child(worker, strand);
        break;
    case 'p':
        worker->next = strand;
        pass_on(worker);
        break;
    case 'g':
        run(worker, strand);
        break;
    case 't':
        if (filch_timer_start(&pool->timers, &timer, DEADLINE_NS))
            pay_watch(worker);
        break;
    case 'T':
        if (filch_timer_start(&pool->timers, &timer, DEADLINE_NS))
            filch_pool_notify(pool, NULL);
        break;
    case 'f':
        filch_pool_fire_timers(pool);
        break;
    }
}

/* ---- T2 and T3 --------------------------------------------------------------------------------- */

static void go_to_sleep(void)
{
    filch_worker *worker = pool->workers[1];

    while (filch_queue_take(&worker->ready))
        ;
    filch_sleep_push(&pool->sleep, worker->index, is_searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
    uint64_t until_ns = filch_timers_watch(&pool->timers, worker);
    bool is_lookout = filch_lookout_begin(worker);
    if (how == 's')
        filch_pool_notify_if_work(pool);
    else if (look_for_ready(pool))
        filch_pool_notify(pool, worker);
    while (is_lookout)
        is_lookout = filch_lookout_look(worker);
    if (until_ns == FILCH_NEVER_NS)
        filch_seat_sleep(&worker->seat);
    is_over = true;
}

static void look_out(void)
{
    filch_worker *worker = pool->workers[1];

    while (filch_lookout_look(worker))
        ;
    filch_seat_sleep(&worker->seat);
    is_over = true;
}

static void leave_searchers(void)
{
    stop_searching(pool->workers[1]);
}

static void sleep_on(void)
{
    filch_seat_sleep(&pool->workers[2]->seat);
    is_over = true;
}

static MC_OUTSIDE bool may_rest(void)
{
    return is_over;
}

/* ---- programs ---------------------------------------------------------------------------------- */

static void setup(void)
{
    deque_name = what == 'c' ? "bwos_fifo:2:1" : "split";
    pool = make_small_pool(how == 'l' ? 3 : 2);
    filch_pool_begin(pool); /* as long as its tasks */
    have_spare(pool->workers[0]);
    strand = prepare(pool->workers[0], do_nothing, NULL, NULL);
    filch_strand_begin_task(strand, NULL, NULL);
    strand->worker = pool->workers[0];
    if (what == 'w' || what == 'g')
        filch_split_publish(&strand->split, 1);
    if (what == 'w')
        filch_wait_open(&strand->wait, false);
    for (int i = 0; what == 'h' && i < 3; i++)
        filch_queue_push(&pool->workers[1]->ready, &ready[i]);
    if (what == 'c') {
        filch_store_relaxed(&child.state, (uintptr_t)do_nothing);
        mc_check(strand->kind->push(strand->deque, &older) == 0, "there is room for a task");
    }
    if (what == 'g')
        filch_parked_add(&pool->workers[0]->parked, strand);
    if (what == 'f') {
        timer.strand = strand;
        timer.turn = filch_wait_open(&strand->wait, false);
        filch_wait_park(&strand->wait);
        filch_timer_start(&pool->timers, &timer, 1);
    }
    if (how == 'l')
        filch_sleep_push(&pool->sleep, 2, FILCH_ROLE_RUNNING);
    if (how == 'o') {
        filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
        filch_queue_push(&pool->workers[0]->ready, &job.link);
        mc_check(filch_lookout_begin(pool->workers[1]), "there is something to look out for");
        filch_queue_take(&pool->workers[0]->ready);
    }
    if (is_searching || how == 'l')
        filch_sleep_search(&pool->sleep, 1);
}

static int run_all(const char *name, const mc_options *options, char receiver, const char *all)
{
    mc_result total = {.name = name};
    char program_name[40];
    mc_program program = {.name = program_name, .setup = setup, .threads = {make_known}};

    how = receiver;
    program.threads[1] = how == 'l' ? leave_searchers : how == 'o' ? look_out : go_to_sleep;
    program.threads[2] = how == 'l' ? sleep_on : NULL;
    for (; *all; all++)
        for (unsigned searching = 0; searching <= (how == 's' || how == 'n'); searching++) {
            what = *all;
            is_searching = searching;
            snprintf(program_name, sizeof program_name, "%s %c%s", name, what, searching ? " a" : "");
            mc_run_and_add(&total, &program, options);
        }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    options.may_rest = may_rest;
    const mc_options two = mc_bounded(options, 2, 1);
    return run_all("idle, half", &two, 's', "h") | run_all("idle, sleeps", &options, 's', "rRiswypgctTf") | run_all("idle, leaves", &options, 'l', "rRiswypgctTf") |
           run_all("idle, no memory", &options, 'n', "rRyptTf") | run_all("idle, looks out", &options, 'o', "ryR");
}
