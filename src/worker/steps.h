/* SPDX-License-Identifier: MIT */
/*
 * The parts of a worker's loop, in the order in which it comes to them; filch_worker_main and filch_worker_visit in worker.c put them together. For whoever sits on the seat.
 */
#ifndef FILCH_WORKER_STEPS_H
#define FILCH_WORKER_STEPS_H

#include "worker/worker.h"

/* ---- find.c ------------------------------------------------------------------------------------ */

/* Strands that may go on come before tasks, and those of this worker before others. A guest only steals. With `ask`, strands that have nothing public are asked for
 * more. NULL: there is nothing. */
filch_strand *filch_worker_find(filch_worker *worker, bool ask);

/* ---- thief.c ----------------------------------------------------------------------------------- */

/* One round over the other workers. With `ask`, a strand without public tasks is asked to publish.
 * NULL: there is nothing to steal. */
filch_strand *filch_worker_steal(filch_worker *worker, bool ask);

/* A task of a strand that waits, and that this worker has left. */
filch_strand *filch_worker_steal_parked(filch_worker *worker);

/* ---- spare.c ----------------------------------------------------------------------------------- */

/* A strand for the next task, or NULL: there is no memory, so do without the task. */
filch_strand *filch_worker_have_spare(filch_worker *worker);

/* Before the seat is given up. */
void filch_worker_shelve_spare(filch_worker *worker);

/* Could somebody who has none take a strand now? */
bool filch_pool_has_free_strand(filch_pool *pool);

/* ---- shortage.c -------------------------------------------------------------------------------- */

/* By who has found no strand to run a task on, holds so many seats, and acts for none of them: if nobody works, tasks and waits end with an error that might otherwise never. */
void filch_pool_refuse(filch_pool *pool, unsigned own_seats);

/* ---- run.c ------------------------------------------------------------------------------------- */

/* Let the spare strand run body(strand), with this argument. `root` is the filch_run it helps. */
filch_strand *filch_worker_prepare(filch_worker *worker, void (*body)(filch_strand *),
                                   void *argument, void *root);

/* Let the spare strand run a job. */
filch_strand *filch_worker_prepare_job(filch_worker *worker, filch_link *link);

/* Run the strand until its task ends or waits. */
void filch_worker_run(filch_worker *worker, filch_strand *strand);

/* ---- stolen.c ---------------------------------------------------------------------------------- */

/* Let the spare strand run a task that this worker has stolen. */
filch_strand *filch_stolen_prepare(filch_worker *worker, filch_slot *task);

/* The strand has left its stack in filch_stolen_wait: hand it to the thief, or go on with it. */
void filch_stolen_await(filch_worker *worker, filch_strand *strand);

/* ---- look.c ------------------------------------------------------------------------------------ */

/* In bed, before it sleeps. Who has no strand to run a task on leaves tasks to those who have one; but a strand that was given up after the worker had looked for one is
 * everybody's, and who gave it up may have counted on this worker, which was searching then. False: there is none for a task, and none that may go on. */
bool filch_worker_look_once_more(filch_worker *worker, bool may_run);

/* Are there strands to go on with, for which nobody else will wake somebody? */
bool filch_pool_look_for_ready(filch_pool *pool);

/* Is there work that nobody has? Strands that show none are asked to publish what they have: all of them, since what was
 * found may be gone before somebody comes for it. */
bool filch_pool_look_everywhere(filch_pool *pool);

/* Others may have counted on this worker, which looks no more: wake somebody for what is left, or to be the lookout. */
void filch_worker_leave_rest(filch_worker *worker);

/* ---- bed.c ------------------------------------------------------------------------------------- */

/* Sleep until called; meanwhile end what is due (until_ns: the first that is watched), and be the lookout. False: the thread shall end. */
bool filch_worker_sleep(filch_worker *worker, uint64_t until_ns, bool is_lookout);

#endif
