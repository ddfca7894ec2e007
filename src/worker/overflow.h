/* SPDX-License-Identifier: MIT */
/*
 * The message about a strand whose stack overflowed, for pools that ask for it.
 *
 * A handler for SIGSEGV, on a signal stack of its own, says which strand it was when the address lies in a
 * strand's guard, and then lets the signal take its course: the handler that was there before, or the
 * end of the program with a core.
 */
#ifndef FILCH_WORKER_OVERFLOW_H
#define FILCH_WORKER_OVERFLOW_H

#include <signal.h>

/* What a thread had before. */
typedef struct filch_overflow {
    stack_t previous;
    void *memory; /* of its signal stack; NULL: it has one of its own, or there is no memory */
} filch_overflow;

/* Installed for the first pool that asks, removed with the last. Returns 0 or -errno. */
int filch_overflow_install(void);
void filch_overflow_remove(void);

/* Give the calling thread a signal stack, and take it away. */
void filch_overflow_enter(filch_overflow *overflow);
void filch_overflow_leave(filch_overflow *overflow);

#endif
