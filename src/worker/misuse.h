/* SPDX-License-Identifier: MIT */
/*
 * Misuse that would otherwise hang the program, or corrupt its memory: print which task it was, and
 * abort.
 *
 * A task ends wrongly in four ways:
 *
 *   - It has not joined a task that was public. The first fork on a strand always publishes. So if
 *     a worker has begun a task that joins none of its forks, every build finds that. If another
 *     task called or joined this task, a build finds it only if a thief had asked for work. Pools
 *     with another deque are not checked: their strands have a split of 0.
 *   - It called fork(), and the child returned from it. The child has no other thread, and all
 *     other tasks belong to the parent.
 *   - It ended its thread, or a C++ exception left it: strand/unwind.h.
 */
#ifndef FILCH_WORKER_MISUSE_H
#define FILCH_WORKER_MISUSE_H

#include "worker/worker.h"

/* For messages: the function of the task in a slot, which is not complete, or of a job. */
uintptr_t filch_task_function(filch_slot *task);
uintptr_t filch_job_function(const filch_job *job);

/* The same for the task that runs on a strand. The strand must not end meanwhile. */
uintptr_t filch_strand_function(const filch_strand *strand);

/* Call this if filch_has_ended_wrongly. It returns only in the child of a fork() that
 * `may_return`. */
void filch_misuse_at_end(filch_strand *self, uintptr_t fn, bool may_return);

/* The function of a task has returned to the bottom of its strand: has it ended wrongly? */
static inline bool filch_has_ended_wrongly(filch_strand *self)
{
    /* relaxed: only fork() clears it, in the child. */
    return __builtin_expect(
        filch_split_now(&self->split) != 0 || !filch_load_relaxed(self->pool->alive), 0);
}

#endif
