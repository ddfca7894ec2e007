/* SPDX-License-Identifier: MIT */
/*
 * A few ready strands are not worth a wake-up, if their worker is about to go on with them itself.
 *
 * Tasks that pass messages to and fro wake each other all the time: each puts the other into the ready queue of their worker, and then waits. To
 * wake another worker for each of these costs more than the message, and if it steals the strand, both workers wait for each other's cache lines. But the task
 * may also go on for long, and then the others should not wait. So:
 *
 * A worker that is about to sleep, and sees a few strands in the ready queue of another, becomes the lookout: it sleeps for a tenth of a millisecond at a
 * time. Whoever makes a strand ready that is one of a few, while there is a lookout, wakes nobody. The lookout looks how often the worker has come to its loop since the last time (its `turn`);
 * if less often than there are strands, these are left lying, and somebody is woken for them. When no worker comes to its loop often any more, it stops. A searching thief, too, takes
 * strands only from a worker that in the last two microseconds came to its loop less often than it has strands; or if these are many.
 *
 * In the same way it looks after the sources of threads that compute (worker/source.h), if nobody sleeps there: what has happened would not be seen before their task ends or waits. A worker
 * that starts an operation, or comes back from waiting for one, and goes on to run something, wakes somebody to be the lookout if there is none (filch_worker_pay_watch in run.c); if somebody searches already, that one will be it when
 * it goes to sleep, or wakes another when it leaves as the last and there is still none.
 *
 * Edges
 *   source-or-lookout  filch_source_show, filch_source_unwatch, filch_lookout_is_manned, filch_sleep_pop x stop, filch_sleep_push, filch_sleep_found, filch_source_is_alone, filch_source_watch
 *                      forbids that a thread counts on a lookout that has stopped, or on one who searches and could become it, and that this one counts on the thread; and the same of who has just left a source
 *                      and who starts an operation there, or goes to bed because it was watched.
 *   ready-or-lookout  filch_queue_push, filch_lookout_is_manned x stop, filch_queue_is_empty
 *                     forbids that a strand counts on a lookout that has stopped, and that this one does not see the strand.
 */
#ifndef FILCH_WORKER_LOOKOUT_H
#define FILCH_WORKER_LOOKOUT_H

#include "worker/worker.h"

/* How long the lookout sleeps. */
static inline uint64_t filch_look_ns(const filch_pool *pool)
{
    return pool->is_look_near ? 10000 : 100000;
}

/* So many are a few. Two sides of a channel, where one of each is nudged at a time, make two or three. */
#define FILCH_LOOKOUT_FEW 3

static inline bool filch_lookout_is_manned(filch_pool *pool)
{
    /* seq_cst [ready-or-lookout], [source-or-lookout] */
    return filch_load_seq_cst(&pool->lookout) != 0;
}

/* A strand was put into the ready queue of `worker` by one of its own tasks, and is one of so many: wake somebody for it, unless a lookout will see to
 * it. */
void filch_lookout_notify(filch_worker *worker, uint32_t ready_count);

/* Is there none, and the source of another thread is alone? */
bool filch_lookout_is_missing(filch_worker *self);

/* On the way to sleep: become the lookout, if there is something to look at, and nobody else does. */
bool filch_lookout_begin(filch_worker *self);

/* By the lookout, in bed, after some time. False: it is none any more; if anything is lying about, somebody was woken for it. */
bool filch_lookout_look(filch_worker *self);

/* By the lookout, when it is called. */
void filch_lookout_end(filch_worker *self);

/* May a searching thief take what is ready there? */
bool filch_lookout_may_take(filch_worker *thief, filch_worker *victim);

#endif
