/* SPDX-License-Identifier: MIT */
/*
 * Find the next strand to run: a strand that can go on, or one for a job or a stolen task.
 * README.md has the order.
 */
#include "worker/steps.h"

#include "base/clock.h"
#include "worker/lookout.h"
#include "worker/source.h"

/* In a fair round a worker looks first into another place than its ready queue. Strands that resume
 * each other for ever, or yield, must not keep it from jobs, events and stolen tasks. Every 61st
 * round is fair. If each of these strands runs for long, 61 rounds take too long. So a round is
 * also fair half a millisecond after the last one.
 *
 * Reading the clock takes up to 15 ns, a short round 50. So the worker reads the clock in every
 * 16th round, or in the next one if the rounds since the last reading took some time. */
#define ROUNDS_TO_FAIRNESS 61
#define FAIRNESS_NS 500000
#define ROUNDS_TO_CLOCK 16
#define SOME_NS (FAIRNESS_NS / ROUNDS_TO_CLOCK)

static filch_strand *take_job(filch_worker *worker, filch_queue *queue, enum filch_counter counter)
{
    if (filch_queue_seems_empty(queue))
        return NULL;
    filch_link *link = filch_worker_have_spare(worker) ? filch_queue_take(queue) : NULL;
    return link ? filch_worker_prepare_job(worker, link, counter) : NULL;
}

static filch_strand *take_ready(filch_queue *queue)
{
    filch_link *link = filch_queue_seems_empty(queue) ? NULL : filch_queue_take(queue);
    return link ? filch_strand_of_link(link) : NULL;
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

/* A strand whose operation is complete. The others go to the worker's own queue. */
static filch_strand *take_polled(filch_worker *worker, bool is_due)
{
    filch_source *source = worker->is_visited ? NULL : filch_worker_source(worker);
    filch_link *first = source ? source->poll(source, is_due) : NULL;

    if (!first)
        return NULL;
    if (first->next) {
        filch_queue_push_list(&worker->ready, first->next);
        filch_pool_notify(worker->pool, worker);
    }
    return filch_strand_of_link(first);
}

static filch_strand *take_event(filch_worker *worker)
{
    return take_polled(worker, false);
}

static filch_strand *take_due_event(filch_worker *worker)
{
    return take_polled(worker, true);
}

/* A strand that was resumed from outside, or by a timer. */
static filch_strand *take_resumed(filch_worker *worker)
{
    filch_pool_fire_timers(worker->pool);
    return take_ready(&worker->pool->ready);
}

static filch_strand *take_injected(filch_worker *worker)
{
    return take_job(worker, &worker->pool->inject, FILCH_COUNT_injected);
}

static filch_strand *take_spawned(filch_worker *worker)
{
    return take_job(worker, &worker->spawned, FILCH_COUNT_spawned);
}

static filch_strand *take_stolen(filch_worker *worker)
{
    return filch_worker_steal(worker, false);
}

/* Any of these places may never be empty, so they take turns to be the first. */
static filch_strand *take_fairly(filch_worker *worker)
{
    static filch_strand *(*const places[])(filch_worker *) = {
        take_resumed, take_due_event, take_injected, take_spawned, filch_worker_steal_parked,
        take_stolen};
    const unsigned count = sizeof places / sizeof places[0];
    filch_strand *strand = NULL;

    worker->fair_ticks = filch_clock_ticks();
    worker->fair_turns++;
    for (unsigned i = 0; i < count && !strand; i++)
        strand = places[(worker->fair_turns + i) % count](worker);
    return strand;
}

/* The worker is about to take a strand from one of the first places. If the last fair round was
 * long ago, make this one fair. */
static filch_strand *take_if_overdue(filch_worker *worker)
{
    if (worker->rounds_to_clock-- > 0)
        return NULL;
    uint64_t ticks = filch_clock_ticks();
    bool took_time = ticks - worker->clock_ticks > filch_clock_ticks_in(SOME_NS);
    worker->rounds_to_clock = took_time ? 0 : ROUNDS_TO_CLOCK - 1;
    worker->clock_ticks = ticks;
    return ticks - worker->fair_ticks > filch_clock_ticks_in(FAIRNESS_NS) ? take_fairly(worker)
                                                                          : NULL;
}

static filch_strand *take_own(filch_worker *worker)
{
    if (filch_queue_seems_empty(&worker->ready) && filch_queue_seems_empty(&worker->spawned))
        return NULL;
    filch_strand *strand = take_if_overdue(worker);
    if (!strand)
        strand = take_ready(&worker->ready);
    return strand ? strand : take_spawned(worker);
}

static filch_strand *take_resumed_or_overdue(filch_worker *worker)
{
    filch_pool_fire_timers(worker->pool);
    if (filch_queue_seems_empty(&worker->pool->ready))
        return NULL;
    filch_strand *strand = take_if_overdue(worker);
    return strand ? strand : take_ready(&worker->pool->ready);
}

filch_strand *filch_worker_find(filch_worker *worker, bool ask)
{
    filch_strand *strand = worker->next;

    worker->next = NULL;
    if (strand)
        return strand;
    if (!worker->root) {
        /* relaxed: own variable; others read it as a hint. */
        uint32_t rounds = filch_load_relaxed(&worker->rounds) + 1;
        filch_store_relaxed(&worker->rounds, rounds);
        if (rounds % ROUNDS_TO_FAIRNESS == 0)
            strand = take_fairly(worker);
        if (!strand)
            strand = take_own(worker);
        if (!strand)
            strand = take_resumed_or_overdue(worker);
        if (!strand)
            strand = take_event(worker);
        if (!strand)
            strand = take_injected(worker);
    }
    if (!strand)
        strand = filch_worker_steal_parked(worker);
    return strand ? strand : filch_worker_steal(worker, ask);
}
