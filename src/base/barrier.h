/* SPDX-License-Identifier: MIT */
/*
 * A barrier for all threads of the process, paid for by one of them: membarrier(2).
 *
 * A fast path that stores to one word and then loads another needs a fence, or a rare other thread
 * that stores to the second word may miss the first store, and the fast path the second. Here the
 * rare thread calls filch_barrier_all between its store and its load.
 */
#ifndef FILCH_BASE_BARRIER_H
#define FILCH_BASE_BARRIER_H

#include <stdbool.h>

/* Allow filch_barrier_all. If the process has several threads, the first call may block for some
 * milliseconds. */
void filch_barrier_prepare(void);

/* The same if it does not block: the process has only this thread. */
void filch_barrier_prepare_early(void);

/*
 * Every other thread comes to a point during this call such that
 *   - the caller then sees all that the thread stored before it,
 *   - the thread, after it, sees all that the caller has stored before the call.
 *
 * False: there was no barrier. The kernel refuses it because of a seccomp filter, or before
 * filch_barrier_prepare has returned; or the program runs on valgrind.
 */
bool filch_barrier_all(void);

/* In the fast path, between its store and its load: the compiler keeps their order. */
static inline void filch_keep_order(void)
{
    __asm__ volatile("" ::: "memory");
}

#endif
