/* SPDX-License-Identifier: MIT */
#include "worker/misuse.h"

#include "strand/plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

static void print_function(uintptr_t fn)
{
#ifdef __GLIBC__
    void *address = (void *)fn;
    backtrace_symbols_fd(&address, 1, STDERR_FILENO);
#else
    fprintf(stderr, "%p\n", (void *)fn);
#endif
}

void filch_misuse(const char *text, uintptr_t fn)
{
    fprintf(stderr, "filch: %s: ", text);
    fflush(stderr);
    print_function(fn);
    abort();
}

void filch_misuse_exit(uintptr_t fn)
{
    filch_misuse("a task, a hook or a blocking call ended its thread, by pthread_exit or "
                 "pthread_cancel",
                 fn);
}

/* Of the Itanium C++ ABI. */
#define FORCE_UNWIND 8
#define CONTINUE_UNWIND 8

int filch_misuse_unwind(int actions, uintptr_t fn)
{
    if (actions & FORCE_UNWIND)
        filch_misuse_exit(fn);
    return CONTINUE_UNWIND;
}

filch_strand *filch_misuse_strand(void)
{
    /* relaxed: own variable. */
    return filch_load_relaxed(&filch_visit_self()->worker->strand);
}

uintptr_t filch_job_function(const filch_job *job)
{
    return job->named ? job->named : (uintptr_t)job->fn;
}

uintptr_t filch_task_function(filch_slot *task)
{
    /* relaxed: only the marks can change. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~(FILCH_TASK_AWAITED | FILCH_TASK_OFFERED);

    return thunk == (uintptr_t)filch_plain_run || thunk == (uintptr_t)filch_plain_run_checked
               ? (uintptr_t)filch_plain_in(task)->fn
               : thunk;
}

/* The newest public task was not joined: a join would have moved the split below it. */
static _Noreturn void stop_for_fork(filch_strand *self, uintptr_t fn)
{
    filch_slot *task = filch_split_slots(&self->split) + self->split.split - 1;
    const filch_plain *plain = filch_plain_in(task);

    if (plain->seal == filch_plain_seal(plain))
        fprintf(stderr, "filch: %s:%u: the task forked here by filch_fork is not joined\n",
                plain->file, plain->line);
    filch_misuse("a task returned with tasks forked or spawned and not joined", fn);
}

void filch_misuse_at_end(filch_strand *self, uintptr_t fn, bool may_return)
{
    if (self->split.split != 0)
        stop_for_fork(self, fn);
    if (!may_return)
        filch_misuse("the child of a fork() returned from the task that had called fork(), instead "
                     "of ending by _exit or exec",
                     fn);
}
