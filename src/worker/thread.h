/* SPDX-License-Identifier: MIT */
/*
 * Set up a pool's threads when they start: a name, CPUs, and what they have from the thread that
 * created the pool. Otherwise they would inherit it from whichever thread starts them.
 */
#ifndef FILCH_WORKER_THREAD_H
#define FILCH_WORKER_THREAD_H

#include "worker/worker.h"

/* By the thread that creates the pool: note what the pool's threads take over from it. */
void filch_thread_note_creator(filch_pool *pool);

/* By the new thread of a worker. */
void filch_thread_start(const filch_worker *worker);

/* Call options.on_start or on_stop, if it is not NULL. */
void filch_thread_call_hook(void (*hook)(void *context, unsigned worker_index),
                            const filch_worker *worker);

/* By a new thread of the pool that is not a worker: it may use all CPUs of the pool. Its name is
 * that of the pool with a suffix. */
void filch_thread_assist(const filch_pool *pool, const char *suffix);

#endif
