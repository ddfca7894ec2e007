/* SPDX-License-Identifier: MIT */
/*
 * A stolen task: its thief runs and completes it, its forker waits for it.
 *
 * Edges (src/fork/README.md has the protocol)
 *   task-done     run_stolen -> filch_stolen_wait, filch_stolen_await
 *                 carries all effects of the child, and its result in the slot.
 *   strand-waits  filch_stolen_await -> run_stolen
 *                 carries the forker's strand, its stack and its registers.
 */
#include "worker/steps.h"

#include "strand/inherit.h"
#include "strand/unwind.h"
#include "worker/misuse.h"

/* A join whose child was stolen polls the child's state this often before it leaves the strand. */
#ifndef JOIN_SPINS /* the model checker has fewer */
#define JOIN_SPINS 200
#endif

/* ---- the thief ------------------------------------------------------------------------------- */

static FILCH_NOT_INLINED void run_stolen(filch_strand *self)
{
    filch_slot *task = self->argument;

    /* relaxed: claimed by [task-ready]. Since then the forker can only have set marks. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_MARKS;

    ((filch_thunk *)thunk)(filch_split_slots(&self->split), task);
    FILCH_STOP_UNWIND();

    if (filch_has_ended_wrongly(self))
        filch_misuse_at_end(self, filch_task_function(task), false);
    if (self->at_end)
        self->at_end(self);
    /* release [task-done], acquire [strand-waits]. After this the slot belongs to its forker
     * again. */
    uintptr_t state = filch_exchange_acq_rel(&task->state, FILCH_TASK_DONE);
    if (state & FILCH_TASK_AWAITED)
        self->worker->next = filch_strand_of(task);
}

filch_strand *filch_stolen_prepare(filch_worker *worker, filch_slot *task)
{
    /* relaxed: the root of the forker's strand cannot change while the task is ours. */
    filch_strand *strand = filch_worker_prepare(worker, run_stolen, task,
                                                filch_load_relaxed(&filch_strand_of(task)->root));

    filch_strand_inherit(strand, task);
    filch_count(worker, FILCH_COUNT_stolen, 1);
    return strand;
}

/* ---- the forker ------------------------------------------------------------------------------ */

void filch_stolen_wait(filch_strand *strand, filch_slot *child)
{
    for (int i = 0; i < JOIN_SPINS; i++) {
        /* acquire [task-done] */
        if (filch_load_acquire(&child->state) == FILCH_TASK_DONE)
            return;
        filch_pause();
    }
    if (!filch_pool_is_alive(strand->pool))
        filch_misuse("the child of a fork() joins a stolen task, which only a thread of the parent "
                     "can complete",
                     filch_task_function(child));
    /* The strand is entered again when the child is complete. Until then the worker does other
     * work. */
    filch_worker_leave(strand, FILCH_LEAVE_FOR_CHILD, child);
}

/* Does a strand that waits for a stolen child have tasks left to steal? Not with the split stack
 * and the last-in-first-out deques: there, all older tasks were stolen before. With deques whose
 * entries are claimed, thieves may have taken the child first, and the child may depend on an older
 * task. */
static bool show_older(filch_strand *strand)
{
    const filch_kind *kind = strand->kind;

    if (!kind || !kind->is_claimed)
        return false;
    if (kind->show)
        kind->show(strand->deque);
    return kind->has_public(strand->deque);
}

void filch_stolen_await(filch_worker *worker, filch_strand *strand)
{
    filch_pool *pool = worker->pool;
    filch_slot *child = worker->waits_for;
    /* acquire [task-done] */
    uintptr_t state = filch_load_acquire(&child->state);
    bool has_public = state != FILCH_TASK_DONE && show_older(strand);

    filch_count(worker, FILCH_COUNT_suspensions, 1);
    if (has_public)
        filch_parked_add(&worker->parked, strand);
    /* release [strand-waits]: on success, the strand belongs to the thread that completes the
     * child. acquire [task-done]: on failure, the child is complete; or it was given back
     * (OFFERED), and the join takes it itself. */
    if (state == FILCH_TASK_DONE || (state & FILCH_TASK_OFFERED) ||
        !filch_cas_acq_rel(&child->state, &state, state | FILCH_TASK_AWAITED))
        worker->next = strand;
    if (has_public)
        filch_pool_notify(pool, worker);
}
