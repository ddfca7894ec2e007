/* SPDX-License-Identifier: MIT */
/*
 * What to run next: a strand that may go on, a task from outside, or one that is stolen.
 *
 * Edges
 *   strand-shown  filch_worker_run in run.c -> steal   src/join/README.md
 */
#include "worker/loop.h"

#include "worker/lookout.h"
#include "worker/source.h"

/* Every so often a worker looks first where others may wait for long: strands that resume each other for ever, or yield, must not keep it
 * from what comes from outside, or was forked. */
#define TURNS_TO_FAIRNESS 61

static filch_strand *take_job(filch_worker *worker, filch_queue *queue)
{
    if (filch_queue_seems_empty(queue))
        return NULL;
    filch_link *link = filch_worker_have_spare(worker) ? filch_queue_take(queue) : NULL;
    return link ? filch_worker_prepare_job(worker, link) : NULL;
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

/* With a deque for all, a guest may have stolen a task of somebody else: it gives it back, unless its forker waits for it already. */
static bool is_given_back(filch_worker *worker, filch_slot *task)
{
    filch_strand *forker = filch_strand_of(task);

    /* relaxed: its root cannot change while the task is ours. */
    if (!worker->root || !forker->kind || !forker->kind->is_shared ||
        filch_load_relaxed(&forker->root) == worker->root || !filch_strand_put_back(task))
        return false;
    filch_pool_notify(worker->pool, worker);
    filch_count(worker, FILCH_COUNT_lost);
    return true;
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
            return filch_worker_prepare_job(worker, link);
    }
    if (worker->spare && !filch_parked_seems_empty(&victim->parked) &&
        filch_parked_steal(&victim->parked, worker->root, &task) && !is_given_back(worker, task))
        return filch_worker_prepare_stolen(worker, task);
    return NULL;
}

/* One round over all other workers. With `ask`, those that have nothing public are asked for more. */
static filch_strand *steal(filch_worker *worker, bool ask)
{
    filch_pool *pool = worker->pool;

    if (pool->worker_count == 1)
        return NULL;
    bool has_spare = filch_worker_have_spare(worker);
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
            if (is_given_back(worker, task))
                break;
            worker->victims.last = v;
            return filch_worker_prepare_stolen(worker, task);
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

/* From outside: strands that were resumed there, or by a timer. */
static filch_strand *take_resumed(filch_worker *worker)
{
    filch_pool_fire_timers(worker->pool);
    return take_ready(&worker->pool->ready);
}

static filch_strand *take_injected(filch_worker *worker)
{
    return take_job(worker, &worker->pool->inject);
}

static filch_strand *take_spawned(filch_worker *worker)
{
    return take_job(worker, &worker->spawned);
}

/* A task of a strand that waits. */
static filch_strand *take_parked(filch_worker *worker)
{
    filch_slot *task;

    if (filch_parked_seems_empty(&worker->parked) || !filch_worker_have_spare(worker) ||
        !filch_parked_steal(&worker->parked, worker->root, &task) || is_given_back(worker, task))
        return NULL;
    return filch_worker_prepare_stolen(worker, task);
}

static filch_strand *take_stolen(filch_worker *worker)
{
    return steal(worker, false);
}

/* Each of these may be full for ever, or find something for ever: so they take turns to be the first. */
static filch_strand *take_fairly(filch_worker *worker, uint32_t turn)
{
    static filch_strand *(*const places[])(filch_worker *) = {
        take_resumed, take_event, take_injected, take_spawned, take_parked, take_stolen};
    const unsigned count = sizeof places / sizeof places[0];
    filch_strand *strand = NULL;

    for (unsigned i = 0; i < count && !strand; i++)
        strand = places[(turn / TURNS_TO_FAIRNESS + i) % count](worker);
    return strand;
}

filch_strand *filch_worker_find(filch_worker *worker, bool ask)
{
    filch_strand *strand = worker->next;

    worker->next = NULL;
    if (strand)
        return strand;
    if (!worker->root) {
        /* relaxed: own variable; others take it as a hint. */
        uint32_t turn = filch_load_relaxed(&worker->turn) + 1;
        filch_store_relaxed(&worker->turn, turn);
        if (turn % TURNS_TO_FAIRNESS == 0)
            strand = take_fairly(worker, turn);
        if (!strand)
            strand = take_ready(&worker->ready);
        if (!strand)
            strand = take_spawned(worker);
        if (!strand)
            strand = take_resumed(worker);
        if (!strand)
            strand = take_event(worker);
        if (!strand)
            strand = take_injected(worker);
    }
    if (!strand)
        strand = take_parked(worker);
    return strand ? strand : steal(worker, ask);
}
