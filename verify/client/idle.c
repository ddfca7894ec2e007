/* SPDX-License-Identifier: MIT */
/*
 * Work that comes while a worker goes idle is found: by that worker, by the last searcher that
 * leaves, or by a worker woken for it.
 *
 * T1 makes work known, by the shipped function (worker_loop.h: the loop is part of this file):
 *
 *     r  resumes a strand, as a task of worker 0; R  as a plain thread
 *     i  injects a job; s  spawns one, as a task of worker 0
 *     w  leaves a strand that waits, with a task that can be stolen
 *     y  leaves one that yields, Y  as a guest; p  passes one on, as a guest does
 *     g  goes on with one that has waited, and still has a task that can be stolen
 *     h  takes half of the ready strands of worker 1, which runs the rest of them before it sleeps
 *     c  leaves one that waits for a stolen child, with an older task in a deque with claims
 *     t  starts a timer, and goes on with other work; T  starts one from outside, as a scope does
 *     f  ends the waits whose timers are due
 *
 * T2 is worker 1:
 *
 *   - s  it goes to sleep, as filch_worker_main does after its last search;
 *   - l  it was the only searcher, has found work and says so, while T3, worker 2, sleeps;
 *   - o  it is the lookout, in bed, from before the work came;
 *   - v  it goes to sleep, while T3 injects a job, too. Each of T1 and T3 may count on a thread
 *        that the other one tries to start for worker 2. No thread can be started.
 *
 *   - k  a thread could not be started for worker 1 (T2), and T3, the keeper, tries again. T2 is a
 *        waker; a resumer that hands a strand over (K); or a guest that leaves the seat (q).
 *        All starts fail. T3 ends after two attempts to start a thread for the work. If T1 counts
 *        on T3, which finds no work, T3 sleeps on.
 *
 * No thread takes the work. So in every execution either the sleeper sees it, and is woken or
 * watches, or T3 is woken. If a thread sleeps on, the checker reports a deadlock.
 *
 * Without memory for a strand (n), the sleeper looks only for strands that may go on, and for
 * timers. If T3 has the only strand, T3 gives it up meanwhile (m). T3 is then worker 0 and goes to
 * sleep, or is a guest whose seat has no thread. T2 or T3 must see the job.
 *
 * The search is exhaustive, except for h, v, k, K and q.
 */
#include "worker_loop.h"

#include "worker/keeper.c"

#include "base/fault.h"
#include "mc/mc.h"

static const char *deque_name;
#define SMALL_POOL_DEQUE deque_name
#include "small_pool.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_NS ((uint64_t)1 << 40)

static filch_pool *pool;
static filch_strand *strand, *other_strand;
static filch_job job, other_job;
static filch_timer timer;
static filch_atomic_u32 never;
static filch_slot child, older;
static filch_link ready[3]; /* stand for strands */
static bool is_over;        /* T2's, or T3's if there is one */
static bool is_guest;       /* T3 */

static char what, how;
static bool is_searching; /* T2 counts as a searcher at first */

/* Another strand would need a deque, and there is no memory for one. */
static int fail(void *deque, size_t capacity, size_t block)
{
    (void)deque, (void)capacity, (void)block;
    return -1;
}

/* The pool has a strand for the job, in one place or another. */
static void refuse(filch_job *refused, filch_pool *of)
{
    (void)refused, (void)of;
    mc_check(false, "a task for which there is a strand is not refused");
}

static const filch_kind too_large = {.bytes = 1, .init = fail};

static void do_nothing(filch_strand *self)
{
    /* relaxed: the worker that ran the strand wrote it, on this thread. */
    mc_check(!filch_load_relaxed(&self->parked_in),
             "a strand that runs is not in the list of those that wait");
    for (;;)
        filch_futex_wait(&never, 0, NULL);
}

/* ---- T1 -------------------------------------------------------------------------------------- */

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
    case 'Y':
        worker->is_visited = true;
        /* fall through */
    case 'y':
        worker->leave = FILCH_LEAVE_TO_YIELD;
        leave(worker, strand);
        break;
    case 'h':
        take_half(worker, &pool->workers[1]->ready, &worker->ready, FILCH_COUNT_strands_stolen);
        /* The worker may have come too late: */
        if (filch_queue_is_empty(&worker->ready))
            filch_pool_inject(pool, &job);
        break;
    case 'c':
        worker->waits_for = &child;
        filch_stolen_await(worker, strand);
        break;
    case 'p':
        worker->next = strand;
        pass_on(worker);
        break;
    case 'g':
        filch_worker_run(worker, strand);
        break;
    case 't':
        worker->owes_watch = filch_timer_start(&pool->timers, &timer, DEADLINE_NS);
        filch_worker_pay_watch(worker);
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

/* ---- T2 and T3 ------------------------------------------------------------------------------- */

static void go_to_sleep(void)
{
    filch_worker *worker = pool->workers[1];

    while (filch_queue_take(&worker->ready))
        ;
    filch_sleep_push(&pool->sleep, worker->index,
                     is_searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
    uint64_t until_ns = filch_timers_watch(&pool->timers, worker);
    bool is_lookout = filch_lookout_begin(worker);
    filch_worker_look_once_more(worker, how == 's' || how == 'v');
    while (is_lookout)
        is_lookout = filch_lookout_look(worker);
    if (until_ns == FILCH_NEVER_NS)
        filch_seat_nap(&worker->seat, NULL);
    is_over = true;
}

/* The same in the order of filch_worker_main, when it may lack a strand. */
static void sleep_without(filch_worker *worker, enum filch_sleep_role role)
{
    bool may_run = filch_worker_have_spare(worker);
    filch_worker_shelve_spare(worker);
    filch_sleep_push(&pool->sleep, worker->index, role);
    if (!filch_worker_look_once_more(worker, may_run))
        filch_pool_refuse(pool, 0);
    filch_seat_nap(&worker->seat, NULL);
    is_over = true;
}

static void sleep_as_searcher(void)
{
    sleep_without(pool->workers[1], FILCH_ROLE_SEARCHING);
}

static void give_strand_up(void)
{
    filch_worker *worker = pool->workers[0];

    if (!is_guest) {
        sleep_without(worker, FILCH_ROLE_RUNNING);
        return;
    }
    filch_worker_shelve_spare(worker);
    filch_sleep_push(&pool->vacant, worker->index, FILCH_ROLE_RUNNING);
    filch_pool_notify_if_work(pool);
}

static void look_out(void)
{
    filch_worker *worker = pool->workers[1];

    while (filch_lookout_look(worker))
        ;
    filch_seat_nap(&worker->seat, NULL);
    is_over = true;
}

static void inject_another(void)
{
    filch_pool_inject(pool, &other_job);
}

static void leave_searchers(void)
{
    stop_searching(pool->workers[1]);
}

static void sleep_on(void)
{
    filch_seat_nap(&pool->workers[2]->seat, NULL);
    is_over = true;
}

/* No thread can be started. Until now there is no work but that of T1. */
static void try_start(void)
{
    if (how == 'q') {
        filch_sleep_push(&pool->vacant, 1, FILCH_ROLE_RUNNING);
        if (filch_pool_needs_worker(pool, pool->workers[1]))
            filch_pool_notify(pool, NULL);
    } else if (how == 'K') {
        mc_check(!filch_pool_hand_over(pool, other_strand), "no thread takes the strand");
    } else {
        filch_pool_notify(pool, NULL);
    }
}

static void keep(void)
{
    for (int tries = 0; tries < 2;) {
        uint32_t rung = filch_load_acquire(&bell);

        if (filch_pool_retry(pool) == FILCH_NEVER_NS) {
            sleep_until(rung, FILCH_NEVER_NS);
            continue;
        }
        mc_check(filch_pool_retry(pool) == FILCH_NEVER_NS, "the time for the next attempt comes");
        tries++;
    }
    is_over = true;
}

static MC_OUTSIDE bool may_rest(void)
{
    return is_over;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void setup(void)
{
    deque_name = what == 'c' ? "bwos_fifo:2:1" : "split";
    pool = make_small_pool(how == 'l' || how == 'v' ? 3 : 2);
    filch_pool_begin(pool); /* until the tasks end */
    filch_worker_have_spare(pool->workers[0]);
    strand = filch_worker_prepare(pool->workers[0], do_nothing, NULL, NULL);
    filch_strand_begin_task(strand, NULL, NULL);
    strand->worker = pool->workers[0];
    if (how == 'm') {
        /* No thread can be started for the guest's seat. */
        filch_store_relaxed(&pool->put_off, 1);
        pool->workers[0]->spare = strand;
        job.refuse = refuse;
        pool->strands.kind = &too_large;
    }
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
    if (how == 'v')
        filch_sleep_push(&pool->vacant, 2, FILCH_ROLE_RUNNING);
    if (how == 'k' || how == 'K')
        filch_sleep_push(&pool->vacant, 1, FILCH_ROLE_RUNNING);
    if (how == 'o') {
        filch_sleep_push(&pool->sleep, 1, FILCH_ROLE_RUNNING);
        filch_queue_push(&pool->workers[0]->ready, &job.link);
        mc_check(filch_lookout_begin(pool->workers[1]), "there is something to look out for");
        filch_queue_take(&pool->workers[0]->ready);
    }
    if (is_searching || how == 'l' || how == 'm')
        filch_sleep_search(&pool->sleep, 1);
}

static int run_all(const char *name, const mc_options *options, char receiver, const char *all)
{
    mc_result total = {.name = name};
    char program_name[40];
    mc_program program = {.name = program_name, .setup = setup, .threads = {make_known}};

    how = receiver;
    bool is_kept = strchr("kKq", how) != NULL;
    program.threads[1] = how == 'l'   ? leave_searchers
                         : how == 'o' ? look_out
                         : how == 'm' ? sleep_as_searcher
                         : is_kept    ? try_start
                                      : go_to_sleep;
    program.threads[2] = how == 'l'   ? sleep_on
                         : how == 'm' ? give_strand_up
                         : how == 'v' ? inject_another
                         : is_kept    ? keep
                                      : NULL;
    for (; *all; all++)
        for (unsigned second = 0; second <= (how == 's' || how == 'n' || how == 'm'); second++) {
            what = *all;
            is_searching = second && how != 'm';
            is_guest = second;
            snprintf(program_name, sizeof program_name, "%s %c%s", name, what, second ? " a" : "");
            mc_run_and_add(&total, &program, options);
        }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);

    options.may_rest = may_rest;
    const mc_options all = options, two = mc_bounded(options, 2, 1);
    options.faults = MC_ALWAYS;
    options.fault_kinds = 1u << FILCH_FAULT_THREAD;
    options.is_setup_sound = true;
    const mc_options no_thread = mc_bounded(options, 2, 1);
    mc_options kept = mc_bounded(options, 1, 1);
    kept.clock_step_ns = 2000000000; /* longer than starts are put off */
    return run_all("idle, half", &two, 's', "h") |
           run_all("idle, sleeps", &all, 's', "rRiswyYpgctTf") |
           run_all("idle, leaves", &all, 'l', "rRiswyYpgctTf") |
           run_all("idle, no memory", &all, 'n', "rRyYptTf") |
           run_all("idle, looks out", &all, 'o', "ryR") |
           run_all("idle, one strand", &all, 'm', "is") |
           run_all("idle, no thread", &no_thread, 'v', "iR") |
           run_all("idle, keeper", &kept, 'k', "rRiswyYpgctTf") |
           run_all("idle, keeper, hand over", &kept, 'K', "rRiswyYpgctTf") |
           run_all("idle, keeper, guest", &kept, 'q', "rRiswyYpgctTf");
}
