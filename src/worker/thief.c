/* SPDX-License-Identifier: MIT */
/*
 * A thief: a worker without work takes tasks and ready strands from the others. README.md has the
 * edges.
 */
#include "worker/steps.h"

#include "worker/lookout.h"

/* Take half of another worker's queue, and count the entries. All but the first go to the thief's
 * own queue. */
static filch_link *take_half(filch_worker *worker, filch_queue *from, filch_queue *to,
                             enum filch_counter counter)
{
    filch_link *rest, *first = filch_queue_take_half(from, &rest);

    if (first)
        filch_count(worker, counter, 1);
    if (rest) {
        filch_count(worker, counter, filch_queue_push_list(to, rest));
        /* A worker that looked before its sleep may have found them in neither queue. */
        filch_pool_notify(worker->pool, worker);
    }
    return first;
}

/* From a shared deque, a guest may have stolen a task of another filch_run. It gives the task back,
 * unless the forker already waits for it. */
static bool is_given_back(filch_worker *worker, filch_slot *task)
{
    filch_strand *forker = filch_strand_of(task);

    /* relaxed: its root cannot change while the task is ours. */
    if (!worker->root || !forker->kind || !forker->kind->is_shared ||
        filch_load_relaxed(&forker->root) == worker->root || !filch_strand_put_back(task))
        return false;
    filch_pool_notify(worker->pool, worker);
    filch_count(worker, FILCH_COUNT_lost, 1);
    return true;
}

/* Take work of another worker, except tasks of the strand that it runs: ready strands, jobs, or
 * tasks of parked strands. (ProWS calls it mugging to take over a ready strand.) */
static filch_strand *steal_aside(filch_worker *worker, filch_worker *victim)
{
    filch_link *link;
    filch_slot *task;

    if (!worker->root) {
        link = !filch_queue_seems_empty(&victim->ready) && filch_lookout_may_take(worker, victim)
                   ? take_half(worker, &victim->ready, &worker->ready, FILCH_COUNT_strands_stolen)
                   : NULL;
        if (link)
            return filch_strand_of_link(link);
        link = worker->spare && !filch_queue_seems_empty(&victim->spawned)
                   ? take_half(worker, &victim->spawned, &worker->spawned, FILCH_COUNT_stolen)
                   : NULL;
        if (link)
            return filch_worker_prepare_job(worker, link, FILCH_COUNT_spawned);
    }
    if (worker->spare && !filch_parked_seems_empty(&victim->parked) &&
        filch_parked_steal(&victim->parked, worker->root, &task) && !is_given_back(worker, task))
        return filch_stolen_prepare(worker, task);
    return NULL;
}

filch_strand *filch_worker_steal(filch_worker *worker, bool ask)
{
    filch_pool *pool = worker->pool;

    if (pool->worker_count == 1)
        return NULL;
    bool has_spare = filch_worker_have_spare(worker);
    for (unsigned k = 0; k + 1 < pool->worker_count; k++) {
        unsigned v = pool->policy(&worker->victims, k);
        filch_strand *aside = steal_aside(worker, pool->workers[v]);
        if (aside)
            return aside;
        if (!has_spare)
            continue;
        /* acquire [strand-shown] */
        filch_strand *victim = filch_load_acquire(&pool->workers[v]->strand);
        if (!victim)
            continue;
        /* relaxed: a hint; at worst a guest runs one task of another filch_run. */
        void *root = filch_load_relaxed(&victim->root);
        if (worker->root && worker->root != root)
            continue;
        filch_slot *task;
        switch (filch_strand_steal(victim, &task)) {
        case FILCH_STEAL_WON:
            if (is_given_back(worker, task))
                break;
            worker->victims.last = v;
            return filch_stolen_prepare(worker, task);
        case FILCH_STEAL_LOST:
            filch_count(worker, FILCH_COUNT_lost, 1);
            break;
        case FILCH_STEAL_EMPTY:
            filch_count(worker, FILCH_COUNT_empty, 1);
            if (ask)
                filch_split_ask(&victim->split, false);
            break;
        }
    }
    worker->victims.last = worker->index;
    return NULL;
}

filch_strand *filch_worker_steal_parked(filch_worker *worker)
{
    filch_slot *task;

    if (filch_parked_seems_empty(&worker->parked) || !filch_worker_have_spare(worker) ||
        !filch_parked_steal(&worker->parked, worker->root, &task) || is_given_back(worker, task))
        return NULL;
    return filch_stolen_prepare(worker, task);
}
