/* SPDX-License-Identifier: MIT */
/*
 * The keeper: one thread of the process, which belongs to no pool.
 *
 * - It tries again to start threads of pools that could not be started (README.md). A pool cannot
 *   do this itself: all threads that it has may compute, or block in the kernel.
 * - It watches pools with more workers than CPUs (crowd.h).
 * - It looks for tasks that a thread may have left behind (second_look.h).
 * - It prints the dumps that a signal asks for (dump_signal.c). So a dump also comes if all workers
 *   block.
 *
 * The keeper exists while there is a pool with more than one worker, or a signal for dumps. It
 * sleeps on its bell, a futex word:
 *
 *     any thread: set a flag, then ring       the keeper: read the bell, look at all flags, sleep
 *
 * Edges
 *   rung         filch_keeper_ring -> serve
 *                carries the flags: put_off of a pool, `stopping`, and those of dump_signal.c.
 *   new-process  filch_keeper_enter_process -> filch_keeper_enter_process
 *                carries the reset of all that this folder shares between pools, and of what a
 *                higher layer shares (filch_keeper_on_fork).
 */
#ifndef FILCH_WORKER_KEEPER_H
#define FILCH_WORKER_KEEPER_H

#include <filch/pool.h>

/* List a pool that is about to start its first thread, and start the keeper if it is needed.
 * Returns 0, or an error of pthread_create like -EAGAIN; then the pool is not listed. */
int filch_keeper_add(filch_pool *pool);

/* Start the keeper if it is needed. The caller has marked a pool that it rebuilds in the child of a
 * fork(). Returns 0 or an error, as above. */
int filch_keeper_adopt(void);

/* The pool was not rebuilt: end the keeper if it is not needed any more. */
void filch_keeper_disown(void);

/* Take a pool whose threads have ended off the list, and end the keeper if it is not needed any
 * more. Waits while the keeper visits the pool. */
void filch_keeper_remove(filch_pool *pool);

/* If this is the child of a fork(), reset what the keeper, the list of pools, the dumps on a signal
 * and the reports of overflows have inherited. All calls here but filch_keeper_ring do it
 * themselves. */
void filch_keeper_enter_process(void);

/* The same. From now on, that reset includes `forget`, by which a higher layer resets what it has
 * inherited. There is room for one such function. */
typedef void filch_forget(void);
void filch_keeper_on_fork(filch_forget *forget);

/* Start the keeper, and keep it, also if there is no pool. Returns 0 or an error, as above. */
int filch_keeper_hold(void);

/* From now on the keeper ends if no pool needs it. */
void filch_keeper_release(void);

/* Let the keeper look at its flags. From any thread, also in a signal handler. */
void filch_keeper_ring(void);

#endif
