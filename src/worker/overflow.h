/* SPDX-License-Identifier: MIT */
/*
 * A message about a strand whose stack overflowed, for pools with options.report_overflow.
 *
 * A handler for SIGSEGV runs on a signal stack of its own. If the address is in a strand's guard,
 * the handler reports which strand it was. Then it calls the previous handler; without one, the
 * signal ends the program with a core.
 */
#ifndef FILCH_WORKER_OVERFLOW_H
#define FILCH_WORKER_OVERFLOW_H

#include <signal.h>

/* The calling thread's signal stack before filch_overflow_enter. */
typedef struct filch_overflow {
    stack_t previous;
    void *memory; /* our signal stack; NULL: the thread had its own, or there is no memory */
} filch_overflow;

/* Each pool with report_overflow installs and removes the handler once; the last removal takes
 * effect. Returns 0 or -errno. */
int filch_overflow_install(void);
void filch_overflow_remove(void);

/* In the child of a fork(): a thread that held the lock exists only in the parent. */
void filch_overflow_forked(void);

/* Give the calling thread a signal stack, and restore the previous one. */
void filch_overflow_enter(filch_overflow *overflow);
void filch_overflow_leave(filch_overflow *overflow);

#endif
