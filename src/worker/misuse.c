/* SPDX-License-Identifier: MIT */
#include "worker/misuse.h"

#include "strand/plain.h"
#include "strand/unwind.h"
#include "worker/steps.h"

#include <stdio.h>

uintptr_t filch_job_function(const filch_job *job)
{
    return job->named ? job->named : (uintptr_t)job->fn;
}

uintptr_t filch_task_function(filch_slot *task)
{
    /* relaxed: only the marks can change. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_MARKS;

    return thunk == (uintptr_t)filch_plain_run || thunk == (uintptr_t)filch_plain_run_checked
               ? (uintptr_t)filch_plain_in(task)->fn
               : thunk;
}

uintptr_t filch_strand_function(const filch_strand *strand)
{
    return filch_worker_is_job(strand->body) ? filch_job_function(strand->argument)
                                             : filch_task_function(strand->argument);
}

/* The newest public task was not joined: a join would have moved the split below it. */
static _Noreturn void stop_for_fork(filch_strand *self, uintptr_t fn)
{
    filch_slot *task = filch_split_slots(&self->split) + filch_split_now(&self->split) - 1;
    const filch_plain *plain = filch_plain_in(task);

    if (plain->seal == filch_plain_seal(plain))
        fprintf(stderr, "filch: %s:%u: the task forked here by filch_fork is not joined\n",
                plain->file, plain->line);
    filch_misuse("a task returned with tasks forked or spawned and not joined", fn);
}

void filch_misuse_at_end(filch_strand *self, uintptr_t fn, bool may_return)
{
    if (filch_split_now(&self->split) != 0)
        stop_for_fork(self, fn);
    if (!may_return)
        filch_misuse("the child of a fork() returned from the task that had called fork(), instead "
                     "of ending by _exit or exec",
                     fn);
    /* at_end looks at objects of the parent, which stay in use for ever here. */
    self->at_end = NULL;
}
