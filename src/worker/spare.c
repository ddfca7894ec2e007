/* SPDX-License-Identifier: MIT */
/*
 * The spare strand: a free strand for the worker's next task. While no thread holds the seat, the
 * spare is on the worker's shelf, where any worker may take it.
 *
 * Edges
 *   on-shelf        filch_worker_shelve_spare -> take_from_shelf   carries a free strand.
 *   shelf-or-sleep  filch_worker_shelve_spare x filch_pool_has_free_strand
 *                   forbids that a free strand and a worker without one miss each other.
 */
#include "worker/steps.h"

static filch_strand *take_from_shelf(filch_worker *worker)
{
    /* relaxed: a hint; an empty shelf is not written to. */
    if (!filch_load_relaxed(&worker->shelf))
        return NULL;
    /* acquire [on-shelf] */
    return filch_exchange_acq_rel(&worker->shelf, NULL);
}

filch_strand *filch_worker_have_spare(filch_worker *worker)
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

void filch_worker_shelve_spare(filch_worker *worker)
{
    filch_magazine_empty(&worker->free, &worker->pool->strands);
    if (!worker->spare)
        return;
    /* release [on-shelf], acq_rel [shelf-or-sleep] */
    filch_strand *previous = filch_exchange_acq_rel(&worker->shelf, worker->spare);
    worker->spare = NULL;
    if (previous)
        filch_strand_give(&worker->pool->strands, previous);
}

bool filch_pool_has_free_strand(filch_pool *pool)
{
    bool found = filch_strands_have_free(&pool->strands);
    for (unsigned i = 0; !found && i < pool->worker_count; i++) {
        filch_strand *none = NULL;
        /* acq_rel [shelf-or-sleep]: does not change the shelf, but is ordered with
         * filch_worker_shelve_spare. */
        found = !filch_cas_acq_rel(&pool->workers[i]->shelf, &none, NULL);
    }
    return found;
}
