/* SPDX-License-Identifier: MIT */
/*
 * The lookout: one sleeping worker that wakes up every 100 us to check on the workers that run.
 *
 * - Ready strands. A few of them are not worth a wake-up while their worker is about to run them
 *   itself. The lookout wakes a worker for strands that are overdue.
 * - Sources of threads that compute for long. The lookout reaps their completions.
 *
 * README.md has the rules, why no strand and no event is lost, and the edges.
 */
#ifndef FILCH_WORKER_LOOKOUT_H
#define FILCH_WORKER_LOOKOUT_H

#include "worker/worker.h"

/* How long the lookout sleeps between two looks. */
static inline uint64_t filch_look_ns(const filch_pool *pool)
{
    return pool->is_look_near ? 10000 : 100000;
}

/* Up to this many ready strands are "a few". A busy channel has two or three: it nudges one strand
 * of each side at a time. */
#define FILCH_LOOKOUT_FEW 3

static inline bool filch_lookout_is_manned(filch_pool *pool)
{
    /* seq_cst [ready-or-lookout], [source-or-lookout] */
    return filch_load_seq_cst(&pool->lookout) != 0;
}

/* A task of `worker` has put a strand into the worker's ready queue, which now has `ready_count`
 * strands. Wake a worker, unless the lookout will look after the strand. */
void filch_lookout_notify(filch_worker *worker, uint32_t ready_count);

/* Is the source of a worker other than `self` alone while there is no lookout? */
bool filch_lookout_is_missing(filch_pool *pool, const filch_worker *self);

/* On the way to sleep: become the lookout, if one is needed and there is none. */
bool filch_lookout_begin(filch_worker *self);

/* By the lookout, in bed, after filch_look_ns. False: it has stopped being the lookout, and has
 * woken a worker if there is work. */
bool filch_lookout_look(filch_worker *self);

/* By the lookout, when it is called: stop being the lookout. */
void filch_lookout_end(filch_worker *self);

/* May a searching thief take ready strands from the victim? */
bool filch_lookout_may_take(filch_worker *thief, filch_worker *victim);

#endif
