/* SPDX-License-Identifier: MIT */
/*
 * A pool for clients that play its workers themselves: it has seats and strands, but no threads,
 * and reads nothing from the machine.
 *
 * Include it after worker_loop.h, which is part of such a client.
 */
#ifndef CLIENT_SMALL_POOL_H
#define CLIENT_SMALL_POOL_H

#include <stdlib.h>

/* The deque of its strands, in the form of FILCH_DEQUE: "chaselev:1". */
#ifndef SMALL_POOL_DEQUE
#define SMALL_POOL_DEQUE "split"
#endif

#define SMALL_STACK_BYTES ((size_t)16 << 10)

static inline filch_pool *make_small_pool(unsigned worker_count)
{
    filch_pool *pool = calloc(1, sizeof *pool);

    pool->worker_count = worker_count;
    pool->options.name = "small";
    pool->options.spin = FILCH_SPIN_POWER;
    pool->policy = filch_policy_find(FILCH_VICTIM_LAST);
    pool->workers = calloc(worker_count, sizeof *pool->workers);
    pool->sleep.seats = pool->vacant.seats = calloc(worker_count, sizeof *pool->sleep.seats);
    pool->alive = calloc(1, sizeof *pool->alive);
    filch_store_relaxed(pool->alive, 1);
    filch_queue_init(&pool->inject);
    filch_queue_init(&pool->ready);
    filch_timers_init(&pool->timers);
    filch_strands_init(&pool->strands, pool, SMALL_STACK_BYTES);
    size_t capacity, block;
    filch_kind_parse(SMALL_POOL_DEQUE, &pool->kind, &capacity, &block);
    filch_strands_use(&pool->strands, pool->kind, capacity, block);
    for (unsigned i = 0; i < worker_count; i++) {
        filch_worker *worker = pool->workers[i] = calloc(1, sizeof *worker);
        worker->pool = pool;
        worker->index = i;
        worker->has_thread = true;
        filch_queue_init(&worker->ready);
        filch_queue_init(&worker->spawned);
        filch_victims_init(&worker->victims, i, worker_count);
        pool->sleep.seats[i] = &worker->seat;
    }
    return pool;
}

/* At the end: a strand that was resumed from outside, from the queue or from the worker that was
 * woken for it. NULL: there is none. */
static inline filch_link *take_resumed_strand(filch_pool *pool)
{
    filch_link *link = filch_queue_take(&pool->ready);

    for (unsigned i = 0; !link && i < pool->worker_count; i++) {
        filch_strand *next = pool->workers[i]->next;
        pool->workers[i]->next = NULL;
        link = next ? &next->link : NULL;
    }
    return link;
}

/* Call it before the worker's thread calls filch_worker_main. That begins with body(strand), as
 * with the task of a filch_run. */
static inline filch_strand *begin_with(filch_worker *worker, void (*body)(filch_strand *))
{
    filch_worker_have_spare(worker);
    filch_strand *strand = filch_worker_prepare(worker, body, NULL, worker);
    filch_strand_begin_task(strand, NULL, NULL);
    return worker->next = strand;
}

#endif
