/* SPDX-License-Identifier: MIT */
/*
 * There is no memory for another strand.
 *
 * While any worker runs a strand, this costs parallelism only. But if all strands wait, perhaps for
 * a task that cannot begin, none of them would ever go on. So the worker that goes to sleep last
 * checks for that. If it finds neither a free strand nor a strand that can go on, it ends the
 * following with -ENOMEM:
 *
 * 1. jobs that have not begun and can be refused: spawned into a scope, or submitted with a future;
 * 2. if no strand can go on after that, the waits of strands whose forked tasks cannot be run. Such
 *    a strand runs these tasks itself when it joins them.
 *
 * The last worker finds all seats on the stacks after it has pushed its own. Spare strands are on
 * their shelves by then. A worker that has shelved a spare strand has looked for work after that.
 */
#include "worker/steps.h"

static bool does_anybody_work(filch_pool *pool, unsigned own_seats)
{
    return filch_sleep_sleeper_count(&pool->sleep) + filch_sleep_sleeper_count(&pool->vacant) +
               own_seats <
           pool->worker_count;
}

static bool is_anything_ready(filch_pool *pool)
{
    bool found = !filch_queue_is_empty(&pool->ready);
    for (unsigned i = 0; !found && i < pool->worker_count; i++)
        found = !filch_queue_is_empty(&pool->workers[i]->ready);
    return found;
}

static bool can_be_refused(const filch_link *link)
{
    return ((const filch_job *)link)->refuse;
}

static void refuse_jobs(filch_pool *pool, filch_queue *queue)
{
    filch_link *link = filch_queue_is_empty(queue) ? NULL
                                                   : filch_queue_take_those(queue, can_be_refused),
               *next;

    for (; link; link = next) {
        filch_job *job = (filch_job *)link;
        next = link->next;
        job->refuse(job, pool);
    }
}

void filch_pool_refuse(filch_pool *pool, unsigned own_seats)
{
    if (does_anybody_work(pool, own_seats) || filch_pool_has_free_strand(pool) ||
        is_anything_ready(pool))
        return;
    for (unsigned i = 0; i < pool->worker_count; i++)
        refuse_jobs(pool, &pool->workers[i]->spawned);
    refuse_jobs(pool, &pool->inject);
    if (is_anything_ready(pool))
        return;
    filch_link *strands = NULL, **last = &strands;
    for (unsigned i = 0; i < pool->worker_count; i++)
        filch_parked_refuse(&pool->workers[i]->parked, &last);
    *last = NULL;
    filch_pool_resume(pool, strands);
}
