/* SPDX-License-Identifier: MIT */
/*
 * Is there work that no worker has? The last look before a sleep, and after a search. README.md has
 * the edges.
 */
#include "worker/steps.h"

#include "worker/lookout.h"
#include "worker/second_look.h"

bool filch_pool_look_for_ready(filch_pool *pool)
{
    bool found = !filch_queue_is_empty(&pool->ready), is_manned = filch_lookout_is_manned(pool);
    for (unsigned i = 0; !found && i < pool->worker_count; i++) {
        /* seq_cst [queued-or-sleep] */
        uint32_t count = filch_load_seq_cst(&pool->workers[i]->ready.count);
        found = count > (is_manned ? FILCH_LOOKOUT_FEW : 0);
    }
    return found;
}

bool filch_pool_look_everywhere(filch_pool *pool)
{
    bool found = filch_pool_look_for_ready(pool) || !filch_queue_is_empty(&pool->inject) ||
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
    bool found = filch_pool_look_for_ready(pool) || !filch_queue_is_empty(&pool->inject);
    for (unsigned i = 0; !found && i < pool->worker_count; i++)
        found = !filch_queue_is_empty(&pool->workers[i]->spawned) ||
                !filch_parked_is_empty(&pool->workers[i]->parked);
    return found;
}

void filch_pool_notify_if_work(filch_pool *pool)
{
    if (filch_pool_look_everywhere(pool))
        filch_pool_notify(pool, NULL);
}

bool filch_pool_needs_worker(filch_pool *pool, const filch_worker *self)
{
    return filch_pool_look_everywhere(pool) || filch_lookout_is_missing(pool, self);
}

void filch_worker_leave_rest(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    if (filch_pool_sleeper_count(pool) > 0 &&
        (filch_pool_needs_worker(pool, worker) || filch_second_look_is_needed(pool, worker)))
        filch_pool_notify(pool, worker);
}

bool filch_worker_look_once_more(filch_worker *worker, bool may_run)
{
    filch_pool *pool = worker->pool;

    if (may_run || filch_pool_has_free_strand(pool))
        filch_pool_notify_if_work(pool);
    else if (filch_pool_look_for_ready(pool))
        filch_pool_notify(pool, worker);
    else
        return false;
    return true;
}
