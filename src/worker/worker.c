/* SPDX-License-Identifier: MIT */
/*
 * The loop: resume, else take from outside, else steal, else search, else sleep.
 *
 * Edges (src/sleep/README.md and src/join/README.md say more)
 *   task-done        run_stolen -> await_child
 *   job-done         finish_job -> await_job, filch_job_wait
 *   strand-waits     await_child, await_job -> run_stolen, finish_job
 *   strand-shown     run -> steal, look_everywhere
 *   strand-or-sleep  run x look_everywhere
 *   on-shelf         shelve_spare -> take_from_shelf   carries a free strand.
 *   stop-or-sleep    filch_worker_main x stop_threads in pool.c
 *   gave-seat        filch_worker_main -> stop_threads in pool.c
 */
#include "worker/worker.h"

#include "base/clock.h"
#include "base/fault.h"
#include "strand/inherit.h"
#include "worker/lookout.h"
#include "worker/source.h"
#include "worker/thread.h"

#include <stdlib.h>

/* A searcher asks for work after this many rounds without any: a question costs the victim a cache miss, and work
 * that comes in the next moment needs none. */
#define ROUNDS_BEFORE_ASKING 6

/* At its hastiest a worker waits for 1 / 16 of the time it may. */
#define HASTE_MAX 4

/* Every so often a worker looks first where others may wait for long: strands that resume each other for ever must not keep it
 * from what comes from outside. */
#define TURNS_TO_FAIRNESS 61

static _Thread_local const filch_visit *self_visit;

/* Not inlined: a compiler keeps the address of a thread-local variable over a switch to a strand that comes back
 * on another thread. */
__attribute__((noinline)) const filch_visit *filch_visit_self(void)
{
    const filch_visit *visit = self_visit;
    __asm__ volatile("" : "+r"(visit));
    return visit;
}

static __attribute__((noinline)) void set_self(const filch_visit *visit)
{
    self_visit = visit;
}

filch_worker *filch_worker_self_in(const filch_pool *pool)
{
    const filch_visit *visit = filch_visit_self();
    while (visit && visit->worker->pool != pool)
        visit = visit->outer;
    return visit ? visit->worker : NULL;
}

/* ---- what runs on a strand --------------------------------------------------------------------- */

static void run_stolen(filch_strand *self)
{
    filch_slot *task = self->argument;
    /* relaxed: claimed by [task-ready]; all that the forker may have done since is to say that it waits. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_AWAITED;

    ((filch_thunk *)thunk)(filch_split_slots(&self->split), task);

    if (self->at_end)
        self->at_end(self);
    /* release [task-done], acquire [strand-waits]. The slot is its forker's again after this. */
    uintptr_t state = filch_exchange_acq_rel(&task->state, FILCH_TASK_DONE);
    if (state & FILCH_TASK_AWAITED)
        self->worker->next = filch_strand_of(task);
}

/* The last touch of a job that somebody waits for, unless it is a strand: that goes on when we say so. */
static void finish_job(filch_job *job)
{
    /* release [job-done], acquire [strand-waits] */
    switch (filch_exchange_acq_rel(&job->state, FILCH_JOB_DONE)) {
    case FILCH_JOB_AWAITED:
        /* The job may be gone; waking needs only its address. */
        filch_futex_wake(&job->state, 1);
        break;
    case FILCH_JOB_SUSPENDED: {
        /* The waiter keeps its pool alive until it goes on; from then on we do, until we have let go of it. */
        filch_pool *pool = job->waiter_pool;
        filch_strand *waiter = job->waiter;
        waiter->link.next = NULL;
        filch_pool_begin(pool);
        filch_pool_resume(pool, &waiter->link);
        filch_pool_end(pool);
        break;
    }
    }
}

static void run_job(filch_strand *self)
{
    filch_job *job = self->argument;
    filch_pool *pool = self->worker->pool;

    job->fn(filch_split_slots(&self->split), job->arg);

    if (self->at_end)
        self->at_end(self);
    if (job->end)
        job->end(job, pool);
    else
        finish_job(job);
}

bool filch_strand_can_leave(const filch_strand *strand)
{
    /* In the child of a fork() made by its task there is no loop to leave the strand to. */
    return strand && strand->worker && filch_pool_is_alive(strand->pool);
}

void filch_worker_leave(filch_strand *strand, enum filch_leave why, void *what)
{
    filch_worker *worker = strand->worker;

    worker->leave = why;
    worker->waits_for = what;
    if (why == FILCH_LEAVE_FOR_CHILD || why == FILCH_LEAVE_FOR_JOB)
        /* relaxed: for those who look from outside. */
        filch_store_relaxed(&strand->waits_at,
                            why == FILCH_LEAVE_FOR_CHILD ? "a stolen task" : "a filch_run");
    filch_strand_leave(strand);
    /* relaxed: as above. */
    filch_store_relaxed(&strand->waits_at, NULL);
}

void filch_worker_wait(filch_job *job)
{
    const filch_visit *visit = filch_visit_self();
    /* relaxed: own variable. */
    filch_strand *strand = visit ? filch_load_relaxed(&visit->worker->strand) : NULL;

    if (!filch_strand_can_leave(strand))
        filch_job_wait(job);
    else if (!filch_job_is_done(job))
        filch_worker_leave(strand, FILCH_LEAVE_FOR_JOB, job);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static filch_strand *take_from_shelf(filch_worker *worker)
{
    /* relaxed: a hint, to leave the line alone. */
    if (!filch_load_relaxed(&worker->shelf))
        return NULL;
    /* acquire [on-shelf] */
    return filch_exchange_acq_rel(&worker->shelf, NULL);
}

/* A strand for the next task, or NULL: there is no memory, so do without the task. */
static filch_strand *have_spare(filch_worker *worker)
{
    filch_pool *pool = worker->pool;

    if (!worker->spare)
        worker->spare = take_from_shelf(worker);
    if (!worker->spare)
        worker->spare = filch_magazine_take(&worker->free, &pool->strands);
    for (unsigned i = 0; !worker->spare && i < pool->worker_count; i++)
        worker->spare = take_from_shelf(pool->workers[i]);
    return worker->spare;
}

/* Before the seat is given up. */
static void shelve_spare(filch_worker *worker)
{
    filch_magazine_empty(&worker->free, &worker->pool->strands);
    if (!worker->spare)
        return;
    /* release [on-shelf] */
    filch_strand *previous = filch_exchange_acq_rel(&worker->shelf, worker->spare);
    worker->spare = NULL;
    if (previous)
        filch_strand_give(&worker->pool->strands, previous);
}

static filch_strand *prepare(filch_worker *worker, void (*body)(filch_strand *), void *argument,
                             void *root)
{
    filch_strand *strand = worker->spare;
    worker->spare = NULL;
    strand->body = body;
    strand->argument = argument;
    strand->open_forks = 0;
    strand->keeps_all = false;
    strand->at_end = NULL;
    /* relaxed: a hint for guests that choose whom to help. */
    filch_store_relaxed(&strand->root, root);
    return strand;
}

static filch_strand *prepare_job(filch_worker *worker, filch_link *link)
{
    filch_job *job = (filch_job *)link;
    filch_strand *strand = prepare(worker, run_job, job, job);

    filch_strand_begin_task(strand, job->scope, job->locals);
    filch_count(worker, FILCH_COUNT_injected);
    return strand;
}

static filch_strand *prepare_stolen(filch_worker *worker, filch_slot *task)
{
    /* relaxed: its strand's root cannot change while the task is ours. */
    filch_strand *strand =
        prepare(worker, run_stolen, task, filch_load_relaxed(&filch_strand_of(task)->root));

    filch_strand_inherit(strand, task);
    filch_count(worker, FILCH_COUNT_stolen);
    return strand;
}

static filch_strand *take_job(filch_worker *worker, filch_queue *queue)
{
    if (filch_queue_seems_empty(queue))
        return NULL;
    filch_link *link = have_spare(worker) ? filch_queue_take(queue) : NULL;
    return link ? prepare_job(worker, link) : NULL;
}

static filch_strand *take_ready(filch_queue *queue)
{
    filch_link *link = filch_queue_seems_empty(queue) ? NULL : filch_queue_take(queue);
    return link ? filch_strand_of_link(link) : NULL;
}

/* Half of what lies in another worker's queue; all but the first into our own. */
static filch_link *take_half(filch_worker *worker, filch_queue *from, filch_queue *to)
{
    filch_link *rest, *first = filch_queue_take_half(from, &rest);

    if (rest) {
        filch_queue_push_list(to, rest);
        /* Nobody saw it on the way. */
        filch_pool_notify(worker->pool, worker);
    }
    return first;
}

/* What another worker has beside the strand that it runs: strands to take over, jobs, tasks of strands that wait. */
static filch_strand *steal_aside(filch_worker *worker, filch_worker *victim)
{
    filch_link *link;
    filch_slot *task;

    if (!worker->root) {
        link = !filch_queue_seems_empty(&victim->ready) && filch_lookout_may_take(worker, victim)
                   ? take_half(worker, &victim->ready, &worker->ready)
                   : NULL;
        if (link) {
            filch_count(worker, FILCH_COUNT_mugged);
            return filch_strand_of_link(link);
        }
        link = worker->spare && !filch_queue_seems_empty(&victim->spawned)
                   ? take_half(worker, &victim->spawned, &worker->spawned)
                   : NULL;
        if (link)
            return prepare_job(worker, link);
    }
    if (worker->spare && !filch_parked_seems_empty(&victim->parked) &&
        filch_parked_steal(&victim->parked, worker->root, &task))
        return prepare_stolen(worker, task);
    return NULL;
}

/* One round over all other workers. With `ask`, those that have nothing public are asked for more. */
static filch_strand *steal(filch_worker *worker, bool ask)
{
    filch_pool *pool = worker->pool;

    if (pool->worker_count == 1)
        return NULL;
    bool has_spare = have_spare(worker);
    for (unsigned k = 0; k + 1 < pool->worker_count; k++) {
        unsigned v = filch_victims_visit(&worker->victims, pool->policy, k);
        filch_strand *aside = steal_aside(worker, pool->workers[v]);
        if (aside)
            return aside;
        if (!has_spare)
            continue;
        /* acquire [strand-shown] */
        filch_strand *victim = filch_load_acquire(&pool->workers[v]->strand);
        if (!victim)
            continue;
        /* relaxed: a hint; at worst a guest helps somebody else for one task. */
        void *root = filch_load_relaxed(&victim->root);
        if (worker->root && worker->root != root)
            continue;
        filch_slot *task;
        switch (filch_strand_steal(victim, &task)) {
        case FILCH_STEAL_WON:
            /* relaxed: as below. */
            if (worker->root && victim->kind && victim->kind->is_shared &&
                filch_load_relaxed(&filch_strand_of(task)->root) != worker->root) {
                filch_strand_put_back(victim, task);
                filch_pool_notify(pool, worker);
                filch_count(worker, FILCH_COUNT_lost);
                break;
            }
            worker->victims.last = v;
            return prepare_stolen(worker, task);
        case FILCH_STEAL_LOST:
            filch_count(worker, FILCH_COUNT_lost);
            break;
        case FILCH_STEAL_EMPTY:
            filch_count(worker, FILCH_COUNT_empty);
            if (ask)
                filch_split_ask(&victim->split, false);
            break;
        }
    }
    worker->victims.last = worker->index;
    return NULL;
}

void filch_pool_fire_timers(filch_pool *pool)
{
    filch_link *strands =
        filch_timers_are_due(&pool->timers) ? filch_timers_fire(&pool->timers) : NULL;
    if (!strands)
        return;
    filch_queue_push_list(&pool->ready, strands);
    filch_pool_notify(pool, NULL);
}

/* A strand whose operation is complete; more of them into our own queue. */
static filch_strand *take_event(filch_worker *worker)
{
    filch_source *source = worker->is_visited ? NULL : filch_worker_source(worker);
    filch_link *first = source ? source->poll(source) : NULL;

    if (!first)
        return NULL;
    if (first->next) {
        filch_queue_push_list(&worker->ready, first->next);
        filch_pool_notify(worker->pool, worker);
    }
    return filch_strand_of_link(first);
}

/* From outside: strands that were resumed there, or by a timer, or by the kernel; new tasks. */
static filch_strand *take_outside(filch_worker *worker)
{
    filch_pool *pool = worker->pool;

    filch_pool_fire_timers(pool);
    filch_strand *strand = take_ready(&pool->ready);
    if (!strand)
        strand = take_event(worker);
    return strand ? strand : take_job(worker, &pool->inject);
}

/* Strands that may go on come before tasks, and those of this worker before others. A guest only steals. */
static filch_strand *find(filch_worker *worker, bool ask)
{
    filch_strand *strand = worker->next;
    filch_slot *task;

    worker->next = NULL;
    if (strand)
        return strand;
    if (!worker->root) {
        /* relaxed: own variable; others take it as a hint. */
        uint32_t turn = filch_load_relaxed(&worker->turn) + 1;
        filch_store_relaxed(&worker->turn, turn);
        if (turn % TURNS_TO_FAIRNESS == 0) {
            strand = take_outside(worker);
            if (!strand)
                strand = take_job(worker, &worker->spawned);
        }
        if (!strand)
            strand = take_ready(&worker->ready);
        if (!strand)
            strand = take_job(worker, &worker->spawned);
        if (!strand)
            strand = take_outside(worker);
    }
    if (!strand && !filch_parked_seems_empty(&worker->parked) && have_spare(worker) &&
        filch_parked_steal(&worker->parked, worker->root, &task))
        strand = prepare_stolen(worker, task);
    return strand ? strand : steal(worker, ask);
}

/* ---- a strand has left its stack --------------------------------------------------------------- */

/* Of a strand that waits for a stolen child the older tasks were stolen before, unless its deque is one that is claimed from: thieves may have come for the
 * child first, and what it waits for may be done by one that is left. */
static bool show_older(filch_strand *strand)
{
    const filch_kind *kind = strand->kind;

    if (!kind || !kind->is_claimed)
        return false;
    if (kind->show)
        kind->show(strand->deque);
    return kind->has_public(strand->deque);
}

/* To wait for a stolen child. */
static void await_child(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    filch_slot *child = worker->waits_for;
    /* acquire [task-done] */
    uintptr_t state = filch_load_acquire(&child->state);
    bool has_public = state != FILCH_TASK_DONE && show_older(strand);

    filch_count(worker, FILCH_COUNT_suspensions);
    if (has_public)
        filch_parked_add(&worker->parked, strand);
    /* release [strand-waits]: from here on the strand belongs to whoever completes the child.
     * acquire [task-done]: or it is complete. */
    if (state == FILCH_TASK_DONE ||
        !filch_cas_acq_rel(&child->state, &state, state | FILCH_TASK_AWAITED))
        worker->next = strand;
    if (has_public)
        filch_pool_notify(pool, worker);
}

/* The same for a filch_run in a task. */
static void await_job(filch_worker *worker, filch_strand *strand)
{
    filch_job *job = worker->waits_for;
    uint32_t state = FILCH_JOB_PENDING;

    filch_count(worker, FILCH_COUNT_suspensions);
    job->waiter = strand;
    job->waiter_pool = worker->pool;
    /* release [strand-waits]; acquire [job-done] */
    if (!filch_cas_acq_rel(&job->state, &state, FILCH_JOB_SUSPENDED))
        worker->next = strand;
}

/* To wait for the end of strand->wait. Tasks that it leaves behind can be stolen, and so are shown before anybody can resume it. */
static void await_end(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    bool has_public = filch_strand_has_public(strand);

    filch_count(worker, FILCH_COUNT_suspensions);
    if (has_public)
        filch_parked_add(&worker->parked, strand);
    if (!filch_wait_park(&strand->wait))
        worker->next = strand;
    if (has_public)
        filch_pool_notify(pool, worker);
}

static void leave(filch_worker *worker, filch_strand *strand)
{
    enum filch_leave why = worker->leave;

    worker->leave = FILCH_LEAVE_ENDED;
    worker->has_waited |= why == FILCH_LEAVE_TO_WAIT || why == FILCH_LEAVE_TO_YIELD;
    switch (why) {
    case FILCH_LEAVE_FOR_CHILD:
        await_child(worker, strand);
        break;
    case FILCH_LEAVE_FOR_JOB:
        await_job(worker, strand);
        break;
    case FILCH_LEAVE_TO_WAIT:
        await_end(worker, strand);
        break;
    case FILCH_LEAVE_TO_YIELD:
        if (filch_strand_has_public(strand))
            filch_parked_add(&worker->parked, strand);
        if (worker->is_visited) {
            /* The guest leaves. */
            filch_queue_push(&worker->pool->ready, &strand->link);
            filch_pool_notify(worker->pool, worker);
        } else {
            filch_lookout_notify(worker, filch_queue_push(&worker->ready, &strand->link));
        }
        break;
    case FILCH_LEAVE_ENDED:
        if (worker->spare)
            filch_magazine_give(&worker->free, &worker->pool->strands, strand);
        else
            worker->spare = strand;
        break;
    }
}

/* A timer or an operation was started here, and we do not go to sleep: somebody else should watch it. */
static void pay_watch(filch_worker *worker)
{
    filch_pool *pool = worker->pool;

    worker->owes_watch = false;
    if (filch_timers_is_unwatched(&pool->timers) ||
        (filch_source_is_alone(worker) && !filch_lookout_is_manned(pool)))
        filch_pool_notify(pool, worker);
}

/* Run the strand until its task ends or waits. */
static void run(filch_worker *worker, filch_strand *strand)
{
    if (worker->owes_watch)
        pay_watch(worker);
    filch_parked_remove(strand);
    strand->worker = worker;
    /* The first fork looks whether somebody is idle: who went to sleep meanwhile did not see this strand. */
    filch_strand_arm(strand);
    /* release [strand-shown], seq_cst [strand-or-sleep] */
    filch_store_seq_cst(&worker->strand, strand);
    /* Of a strand that waited, tasks may still be there. Who looked meanwhile found it neither among those that wait nor here. */
    if (filch_strand_has_public(strand))
        filch_pool_notify(worker->pool, worker);

    filch_strand_enter(strand, &worker->native);

    /* relaxed: thieves may find it for a while yet, and empty. */
    filch_store_relaxed(&worker->strand, NULL);
    leave(worker, strand);
}

/* Are there strands to go on with, for which nobody else will wake somebody? */
static bool look_for_ready(filch_pool *pool)
{
    bool found = !filch_queue_is_empty(&pool->ready), is_manned = filch_lookout_is_manned(pool);
    for (unsigned i = 0; !found && i < pool->worker_count; i++) {
        /* seq_cst [queued-or-sleep] */
        uint32_t count = filch_load_seq_cst(&pool->workers[i]->ready.count);
        found = count > (is_manned ? FILCH_LOOKOUT_FEW : 0);
    }
    return found;
}

/* Is there work that nobody has? Strands that show none are asked to publish what they have: all of them, since what was
 * found may be gone before somebody comes for it. */
static bool look_everywhere(filch_pool *pool)
{
    bool found = look_for_ready(pool) || !filch_queue_is_empty(&pool->inject) ||
                 filch_timers_is_unwatched(&pool->timers);
    for (unsigned i = 0; i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        found |= !filch_queue_is_empty(&worker->spawned) || !filch_parked_is_empty(&worker->parked);
        /* acquire [strand-shown], seq_cst [strand-or-sleep] */
        filch_strand *strand = filch_load_seq_cst(&worker->strand);
        if (!strand)
            continue;
        found |= filch_strand_look(strand);
    }
    return found;
}

bool filch_pool_has_queued(filch_pool *pool)
{
    bool found = look_for_ready(pool) || !filch_queue_is_empty(&pool->inject);
    for (unsigned i = 0; !found && i < pool->worker_count; i++)
        found = !filch_queue_is_empty(&pool->workers[i]->spawned);
    return found;
}

void filch_pool_notify_if_work(filch_pool *pool)
{
    if (look_everywhere(pool))
        filch_pool_notify(pool, NULL);
}

/* A searcher has found something. Others may have published meanwhile and counted on it, and taken back what they published. */
static void stop_searching(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    if (filch_sleep_found(&pool->sleep) && filch_sleep_sleeper_count(&pool->sleep) > 0 &&
        look_everywhere(pool))
        filch_pool_notify(pool, worker);
}

static unsigned awake_count(filch_pool *pool)
{
    return pool->worker_count - filch_sleep_sleeper_count(&pool->sleep) -
           filch_sleep_sleeper_count(&pool->vacant);
}

/* Spinning pays only while the one we wait for has a CPU to run on. */
static bool may_spin(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    return awake_count(pool) <= pool->topology.cpu_count;
}

/* Has the wait come to its end? Who has waited in vain waits half as long the next time. So a pool that gets a short task now and then does
 * not spend more time waiting than working. */
static bool is_time_up(filch_worker *worker, uint64_t since)
{
    filch_pool *pool = worker->pool;

    if (filch_clock_ns() - since < pool->spin_ns >> worker->haste)
        return false;
    if (worker->haste < HASTE_MAX && pool->options.wait != FILCH_WAIT_LATENCY)
        worker->haste++;
    return true;
}

/* Look for work until there is some, or time is up, or `job` is complete. */
static filch_strand *search(filch_worker *worker, filch_job *job)
{
    filch_strand *strand = find(worker, false);
    uint64_t since = strand ? 0 : filch_clock_ns();

    for (unsigned round = 1; !strand; round++) {
        /* relaxed: a hint; the sleep that follows looks again. */
        if (job ? filch_job_is_done(job) : filch_load_relaxed(&worker->pool->stopping))
            break;
        /* Now and then: the clock takes as long as a round. */
        if (round % 4 == 1 && (!may_spin(worker) || is_time_up(worker, since)))
            break;
        filch_pause();
        strand = find(worker, round >= ROUNDS_BEFORE_ASKING);
    }
    /* It paid, or it was not needed. */
    if (strand && since)
        worker->haste = 0;
    return strand;
}

static bool is_anything_running(filch_pool *pool)
{
    bool found = false;
    for (unsigned i = 0; !found && i < pool->worker_count; i++)
        /* relaxed: whoever stops running looks at this, too. */
        found = filch_load_relaxed(&pool->workers[i]->strand);
    return found;
}

static void refuse_jobs(filch_pool *pool, filch_queue *queue)
{
    filch_link *kept = NULL, **last = &kept, *link;

    while ((link = filch_queue_take(queue))) {
        filch_job *job = (filch_job *)link;
        if (job->refuse) {
            job->refuse(job, pool);
        } else {
            *last = link;
            last = &link->next;
        }
    }
    *last = NULL;
    filch_queue_push_list(queue, kept);
}

/* There is no memory for another strand. If all that there are wait, perhaps for a task that cannot begin, nobody would ever go on: so these tasks end with an
 * error. */
static void refuse_all_jobs(filch_pool *pool)
{
    if (is_anything_running(pool))
        return;
    for (unsigned i = 0; i < pool->worker_count; i++)
        refuse_jobs(pool, &pool->workers[i]->spawned);
    refuse_jobs(pool, &pool->inject);
}

/* After a sleep nothing is in this core's caches. Fetch what the first task needs all at once, and not one after the other. */
static void fetch_cold(filch_worker *worker)
{
    /* relaxed: a guess. */
    filch_strand *strand = filch_load_relaxed(&worker->shelf);

    __builtin_prefetch(&worker->pool->inject);
    __builtin_prefetch(&worker->strand, 1);
    __builtin_prefetch(&worker->pool->ready);
    if (strand) {
        __builtin_prefetch(strand, 1);
        __builtin_prefetch(&strand->worker, 1);
        __builtin_prefetch(filch_split_slots(&strand->split), 1);
        __builtin_prefetch((char *)strand - 64, 1);
    }
}

/* In bed, or away: until called (CALLED, ENDED), or time is up, or something has happened (EMPTY). */
static enum filch_bed_state nap(filch_worker *worker, const struct timespec *timeout)
{
    filch_source *source = filch_worker_source(worker);
    filch_link *strands = NULL;
    bool has_slept = false;

    if (!source || !filch_seat_go_away(&worker->seat))
        return filch_seat_nap(&worker->seat, timeout);
    strands = source->wait(source, timeout, &has_slept);
    enum filch_bed_state bed = filch_seat_come_back(&worker->seat);
    if (bed != FILCH_BED_EMPTY && source->hush)
        source->hush(source);
    if (strands) {
        filch_queue_push_list(&worker->pool->ready, strands);
        /* Nearly always, it is we who are woken. */
        filch_pool_notify(worker->pool, NULL);
    }
    return has_slept || bed != FILCH_BED_EMPTY ? bed : filch_seat_nap(&worker->seat, timeout);
}

/* Sleep until called; meanwhile end what is due. That is done in bed: the seat may be somebody else's by then, so nothing of the worker's own is
 * touched but what is its thread's. False: the thread shall end. */
static bool sleep_and_watch(filch_worker *worker, uint64_t until_ns, bool is_lookout)
{
    filch_pool *pool = worker->pool;
    enum filch_bed_state bed;

    do {
        bool has_end = until_ns != FILCH_NEVER_NS || is_lookout;
        uint64_t now_ns = has_end ? filch_clock_ns() : 0;
        uint64_t end_ns = is_lookout && now_ns + filch_look_ns(pool) < until_ns
                              ? now_ns + filch_look_ns(pool)
                              : until_ns;
        uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
        struct timespec timeout = {.tv_sec = (time_t)(left_ns / 1000000000),
                                   .tv_nsec = (long)(left_ns % 1000000000)};

        bed = nap(worker, has_end ? &timeout : NULL);
        if (bed == FILCH_BED_EMPTY && until_ns != FILCH_NEVER_NS && filch_clock_ns() >= until_ns) {
            filch_timers_unwatch(&pool->timers, worker);
            filch_pool_fire_timers(pool);
            until_ns = filch_timers_watch(&pool->timers, worker);
        }
        if (is_lookout)
            is_lookout = bed == FILCH_BED_EMPTY ? filch_lookout_look(worker)
                                                : (filch_lookout_end(worker), false);
    } while (bed == FILCH_BED_EMPTY);
    /* Whoever watched and was called for something else looks for another to watch, once it has found something to run. */
    worker->owes_watch = filch_source_is_alone(worker);
    if (until_ns != FILCH_NEVER_NS && filch_timers_unwatch(&pool->timers, worker))
        worker->owes_watch = true;
    return bed != FILCH_BED_ENDED;
}

void *filch_worker_main(void *argument)
{
    filch_worker *worker = argument;
    filch_pool *pool = worker->pool;
    bool searching = true; /* whoever started us counted us as searcher */

    const filch_visit visit = {.worker = worker};
    filch_overflow overflow;
    set_self(&visit);
    filch_thread_start(worker, &overflow);
    for (;;) {
        filch_strand *strand = searching ? search(worker, NULL) : find(worker, false);
        if (strand) {
            if (searching)
                stop_searching(worker);
            searching = false;
            run(worker, strand);
            continue;
        }
        if (!searching) {
            unsigned awake = awake_count(pool);
            searching = filch_sleep_search(&pool->sleep, awake > 3 ? awake / 2 : 1);
            if (searching)
                continue;
        }
        bool may_run = have_spare(worker);
        if (!may_run)
            refuse_all_jobs(pool);
        shelve_spare(worker);
        filch_sleep_push(&pool->sleep, worker->index,
                         searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
        uint64_t until_ns = filch_timers_watch(&pool->timers, worker);
        bool is_lookout = filch_lookout_begin(worker);
        if (may_run)
            filch_pool_notify_if_work(pool);
        else if (look_for_ready(pool))
            filch_pool_notify(pool, worker);
        /* seq_cst [stop-or-sleep] */
        if (filch_load_seq_cst(&pool->stopping)) {
            /* release [gave-seat]: the destroyer waits for a change, and then ends us in bed. */
            filch_fetch_add_release(&pool->stopping, 1);
            filch_futex_wake(&pool->stopping, 1);
        }
        filch_count(worker, FILCH_COUNT_sleeps);
        /* There is time to tidy up; relaxed: until we are called, at the latest when we would sleep. */
        while (filch_strands_trim(&pool->strands) &&
               filch_load_relaxed(&worker->seat.bed) == FILCH_BED_EMPTY &&
               !filch_timers_are_due(&pool->timers))
            ;
        uint64_t asleep_since = filch_clock_ticks();
        if (!sleep_and_watch(worker, until_ns, is_lookout))
            break;
        /* It would have paid to wait. */
        if (filch_clock_ticks() - asleep_since < filch_clock_ticks_in(pool->spin_ns))
            worker->haste = 0;
        fetch_cold(worker);
        searching = true;
    }
    filch_thread_stop(worker, &overflow);
    return NULL;
}

/* A guest does not go on with what it should run next: by a rare race it has run a task of somebody else, whose forker waited for it; or it leaves. */
static void pass_on(filch_worker *worker)
{
    filch_strand *next = worker->next;

    worker->next = NULL;
    filch_queue_push(&worker->pool->ready, &next->link);
    filch_pool_notify(worker->pool, worker);
}

bool filch_worker_visit(filch_worker *worker, filch_job *job)
{
    filch_pool *pool = worker->pool;
    const filch_visit visit = {worker, filch_visit_self()};
    bool is_guest = filch_worker_self_in(pool) != worker;

    /* The seat may be ours already, further out on this stack: its loop goes on when we return. */
    filch_context native = worker->native;
    /* relaxed: own variable. */
    filch_strand *outer_strand = filch_load_relaxed(&worker->strand);
    void *outer_root = worker->root;
    filch_overflow overflow;
    if (is_guest && pool->options.report_overflow)
        filch_overflow_enter(&overflow);
    set_self(&visit);

    worker->root = job;
    worker->is_visited |= is_guest;
    filch_strand *strand = have_spare(worker);
    bool has_strand = strand != NULL;
    if (!has_strand || !job) {
        strand = find(worker, true);
    } else {
        strand = prepare_job(worker, &job->link);
    }
    worker->has_waited = false;
    while (strand) {
        run(worker, strand);
        bool is_over = job && (worker->has_waited || filch_job_is_done(job));
        /* relaxed: the strand is ours. */
        if (worker->next && job &&
            (worker->has_waited || filch_load_relaxed(&worker->next->root) != job))
            pass_on(worker);
        if (!worker->next && is_over)
            break;
        strand = search(worker, job);
    }

    worker->root = outer_root;
    worker->native = native;
    if (outer_strand)
        filch_strand_arm(outer_strand);
    /* release [strand-shown], seq_cst [strand-or-sleep] */
    filch_store_seq_cst(&worker->strand, outer_strand);
    /* Who looked meanwhile did not see what it had public before. */
    if (outer_strand && filch_strand_has_public(outer_strand))
        filch_pool_notify(pool, worker);
    if (is_guest) {
        worker->is_visited = false;
        shelve_spare(worker);
    }
    if (is_guest && pool->options.report_overflow)
        filch_overflow_leave(&overflow);
    set_self(visit.outer);
    return has_strand;
}
