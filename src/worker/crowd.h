/* SPDX-License-Identifier: MIT */
/*
 * Pools with more workers than CPUs: how many workers may be awake at a time.
 *
 * README.md, "More workers than CPUs", has the rules, and why no task is missed.
 *
 * Edges
 *   crowd-or-wake  filch_crowd_is_full  x  end_watch, make_absent, filch_crowd_set_cpus,
 *                  filch_crowd_count_guest, filch_crowd_uncount_guest
 *                  forbids that a publisher wakes no worker because the pool is full, and the
 *                  keeper misses the task; and that a pool is full, and the keeper does not watch.
 *   absence        make_absent -> make_present
 *                  carries that `absent_count` was raised, so that it never becomes negative.
 */
#ifndef FILCH_WORKER_CROWD_H
#define FILCH_WORKER_CROWD_H

#include "worker/worker.h"

/* How many of the `resting` workers, which sleep or have no thread, may be woken. */
static inline unsigned filch_crowd_wakeable(filch_pool *pool, unsigned resting)
{
    /* seq_cst [crowd-or-wake] */
    unsigned surplus = filch_load_seq_cst(&pool->surplus);

    if (__builtin_expect(surplus == 0, 1))
        return resting;
    /* Guests run only their own jobs. So at least one worker is not a guest. */
    unsigned limit = pool->worker_count - surplus;
    /* seq_cst [crowd-or-wake] */
    unsigned guests = filch_load_seq_cst(&pool->guest_count);
    /* seq_cst [crowd-or-wake] */
    unsigned available = resting + filch_load_seq_cst(&pool->absent_count) +
                         (guests >= limit ? guests - limit + 1 : 0);
    unsigned count = available > surplus ? available - surplus : 0;
    return count < resting ? count : resting;
}

/* Are as many workers awake as may be? */
bool filch_crowd_is_full(filch_pool *pool);

/* After taking a seat: let the keeper watch the pool, if it is full now. */
void filch_crowd_watch(filch_pool *pool);

/* By a worker that comes to its loop: are more workers awake than may be, so that it shall sleep?
 * From now on the worker is not absent. */
bool filch_crowd_enter_loop(filch_worker *worker);

/* The worker's seat is about to be free. */
void filch_crowd_leave(filch_worker *worker);

/* A guest counts from before it takes a seat until after it has given the seat back. False: the
 * pool has no more workers than may be awake, so the guest is not counted. */
bool filch_crowd_count_guest(filch_pool *pool);
void filch_crowd_uncount_guest(filch_pool *pool);

/* The guest has taken the seat of `worker`. */
void filch_crowd_enter_guest(filch_worker *worker);

/* Now and then, by any worker: let the keeper read the number of CPUs again, if that is due. */
void filch_crowd_check_cpus(filch_pool *pool, uint64_t now_ns);

/* Set how many workers may be awake, if there are so many CPUs at hand. By the creator of the pool,
 * and by the keeper. Returns whether more may be awake than before. */
bool filch_crowd_set_cpus(filch_pool *pool, unsigned at_hand);

/* By the keeper: look for workers that are absent, and wake others instead. Returns when to look
 * again, or FILCH_NEVER_NS. */
uint64_t filch_crowd_look(filch_pool *pool);

#endif
