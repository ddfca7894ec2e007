/* SPDX-License-Identifier: MIT */
/*
 * Misuse that would otherwise hang the program, or corrupt its memory: print which task it was, and
 * abort.
 *
 * A task ends wrongly in three ways:
 *
 *   - It has not joined a task that was public. The first fork on a strand always publishes. So a
 *     task that a worker has begun, and that joins none of its forks, is found in every build. A
 *     task that another one called or joined is found only if a thief had asked for work.
 *   - It called fork(), and the child returned from it. The child has no other thread, and all
 *     other tasks belong to the parent.
 *   - It ended its thread, by pthread_exit or pthread_cancel. The strand is lost with the thread.
 *     The same holds for hooks, and for the functions of filch_blocking.
 */
#ifndef FILCH_WORKER_MISUSE_H
#define FILCH_WORKER_MISUSE_H

#include "worker/worker.h"

/* Print "filch: ", the text, and the function of the task: its name if the module exports it, else
 * its offset in the module, which addr2line translates. Then abort. */
_Noreturn void filch_misuse(const char *text, uintptr_t fn);

/* For filch_misuse: the function of a task in a slot, which is not complete; of a job. */
uintptr_t filch_task_function(filch_slot *task);
uintptr_t filch_job_function(const filch_job *job);

/* If filch_has_ended_wrongly: returns only if the child of a fork() `may_return`. */
void filch_misuse_at_end(filch_strand *self, uintptr_t fn, bool may_return);

/* The function of a task has returned to the bottom of its strand: has it ended wrongly? */
static inline bool filch_has_ended_wrongly(filch_strand *self)
{
    /* relaxed: only fork() clears it, in the child. */
    return __builtin_expect(self->split.split != 0 || !filch_load_relaxed(self->pool->alive), 0);
}

/*
 * Call `unwound` if pthread_exit unwinds the function that contains this macro, which calls a task.
 *
 * For each frame, the unwinder calls the personality function that the frame's unwind table names.
 * The macro names `unwound` there, and adds no instruction. (A cleanup attribute would need
 * -fexceptions, and libgcc_s in every program.) 0x1b: the address is relative, in 4 bytes.
 */
#define FILCH_ON_UNWIND(unwound) __asm__ volatile(".cfi_personality 0x1b, " #unwound)

/* The personality function calls this with the strand's task, and returns the result. */
int filch_misuse_unwind(int actions, uintptr_t fn);

/* The strand that runs on this thread. NULL: the thread ends in a loop inside a filch_run. */
filch_strand *filch_misuse_strand(void);

#define FILCH_UNWOUND(name)                                                                        \
    __attribute__((used)) int name(int version, int actions, uint64_t kind, void *exception,       \
                                   void *context)

/* The thread ends, by pthread_exit or pthread_cancel, in a call of this function. */
_Noreturn void filch_misuse_exit(uintptr_t fn);

#endif
