/* SPDX-License-Identifier: MIT */
/*
 * The spin time: how long a worker without work keeps looking before it sleeps in the kernel.
 *
 * options.spin chooses the longest spin time. After a spin without success, a worker halves its
 * own, down to a sixteenth (not with FILCH_SPIN_LATENCY). It returns to the longest when a spin
 * finds work, or after a sleep that was shorter than the longest spin.
 */
#ifndef FILCH_WORKER_SPIN_H
#define FILCH_WORKER_SPIN_H

#include "base/clock.h"
#include "worker/worker.h"

/* How often a worker halves its spin time at most. */
#define FILCH_SPIN_HALVINGS 4

/* False: there is no such policy. */
static inline bool filch_spin_find(filch_spin_policy policy, uint64_t *spin_ns)
{
    static const uint64_t longest_ns[] = {
        [FILCH_SPIN_BALANCED] = 50 * 1000,
        [FILCH_SPIN_LATENCY] = 1000 * 1000,
        [FILCH_SPIN_POWER] = 0,
    };

    if ((unsigned)policy >= sizeof longest_ns / sizeof longest_ns[0])
        return false;
    *spin_ns = longest_ns[policy];
    return true;
}

/* Has the worker spun for its spin time, since `since_ns`? If so, its next spin is half as long. */
static inline bool filch_spin_is_over(filch_worker *worker, uint64_t since_ns)
{
    filch_pool *pool = worker->pool;

    if (filch_clock_ns() - since_ns < pool->spin_ns >> worker->spin_halvings)
        return false;
    if (worker->spin_halvings < FILCH_SPIN_HALVINGS && pool->options.spin != FILCH_SPIN_LATENCY)
        worker->spin_halvings++;
    return true;
}

/* Spinning found work. */
static inline void filch_spin_paid(filch_worker *worker)
{
    worker->spin_halvings = 0;
}

/* The worker slept from `since_ticks` until now. If a full spin would have been enough, spin
 * longer. */
static inline void filch_spin_after_sleep(filch_worker *worker, uint64_t since_ticks)
{
    if (filch_clock_ticks() - since_ticks < filch_clock_ticks_in(worker->pool->spin_ns))
        filch_spin_paid(worker);
}

#endif
