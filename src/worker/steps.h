/* SPDX-License-Identifier: MIT */
/*
 * The steps of a worker's loop, in the order in which it comes to them. filch_worker_main and
 * filch_worker_visit in worker.c put them together. Only for the thread that holds the seat.
 */
#ifndef FILCH_WORKER_STEPS_H
#define FILCH_WORKER_STEPS_H

#include "worker/worker.h"

/* ---- find.c ---------------------------------------------------------------------------------- */

/* The next strand to run, or NULL. README.md has the order of the places. A guest only steals. With
 * `ask`, a strand without public tasks is asked to publish. */
filch_strand *filch_worker_find(filch_worker *worker, bool ask);

/* ---- thief.c --------------------------------------------------------------------------------- */

/* One round over the other workers. With `ask`, a strand without public tasks is asked to publish.
 * NULL: no worker has work to take. */
filch_strand *filch_worker_steal(filch_worker *worker, bool ask);

/* A task of a strand in this worker's parked list. NULL: there is none. */
filch_strand *filch_worker_steal_parked(filch_worker *worker);

/* ---- spare.c --------------------------------------------------------------------------------- */

/* The spare strand, for the next task. NULL: there is no memory for one, so take no task. */
filch_strand *filch_worker_have_spare(filch_worker *worker);

/* Before the seat is pushed: let other workers have this worker's free strands. */
void filch_worker_shelve_spare(filch_worker *worker);

/* Could a worker that has no strand get one now? */
bool filch_pool_has_free_strand(filch_pool *pool);

/* ---- shortage.c ------------------------------------------------------------------------------ */

/* By a thread that found no strand to run a task on. It holds `own_seats` seats, and must not act
 * as a worker whose seat it has pushed. If no other worker works, fail the tasks and waits that
 * might otherwise never end. */
void filch_pool_refuse(filch_pool *pool, unsigned own_seats);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* Let the spare strand run body(strand), with this argument. `root` is the filch_run that the work
 * belongs to. */
filch_strand *filch_worker_prepare(filch_worker *worker, void (*body)(filch_strand *),
                                   void *argument, void *root);

/* Let the spare strand run a job. The worker counts it as `counter`. */
filch_strand *filch_worker_prepare_job(filch_worker *worker, filch_link *link,
                                       enum filch_counter counter);

/* Does a strand with this body run a job? Otherwise it runs a stolen task. */
bool filch_worker_is_job(void (*body)(filch_strand *));

/* Run the strand until its task ends or waits. */
void filch_worker_run(filch_worker *worker, filch_strand *strand);

/* ---- stolen.c -------------------------------------------------------------------------------- */

/* Let the spare strand run a task that this worker has stolen. */
filch_strand *filch_stolen_prepare(filch_worker *worker, filch_slot *task);

/* The strand has left its stack in filch_stolen_wait. Hand it to the thief; if the child is
 * complete or was given back, run the strand next. */
void filch_stolen_await(filch_worker *worker, filch_strand *strand);

/* ---- look.c ---------------------------------------------------------------------------------- */

/*
 * After the push of the seat, before the sleep: wake a worker if there is work.
 *
 * If may_run is false, the worker has no strand to run a task on. Then it looks only for strands
 * that can go on, and leaves tasks to others. But a strand may have become free since the worker
 * looked for one. The thread that freed it may have counted on this worker as a searcher. So if a
 * strand is free by now, the worker looks for all work. Returns false if no strand is free, and
 * none can go on.
 */
bool filch_worker_look_once_more(filch_worker *worker, bool may_run);

/* Are there ready strands that the lookout will not look after? */
bool filch_pool_look_for_ready(filch_pool *pool);

/* Is there work that no worker has? Strands without public tasks are asked to publish. All strands
 * are asked, since the work found may be gone before a worker comes for it. */
bool filch_pool_look_everywhere(filch_pool *pool);

/* This worker no longer searches, or is no longer the lookout, and others may have counted on it.
 * Wake a worker if work is left, or a lookout is missing. */
void filch_worker_leave_rest(filch_worker *worker);

/* ---- bed.c ----------------------------------------------------------------------------------- */

/* Sleep until called. Meanwhile fire timers, if the worker is their watcher (until_ns is when the
 * first is due; otherwise FILCH_NEVER_NS), and be the lookout. False: the thread must end. */
bool filch_worker_sleep(filch_worker *worker, uint64_t until_ns, bool is_lookout);

#endif
