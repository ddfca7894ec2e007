/* SPDX-License-Identifier: MIT */
/*
 * Set up a pool's threads when they start: a name and CPUs.
 */
#ifndef FILCH_WORKER_THREAD_H
#define FILCH_WORKER_THREAD_H

#include "worker/worker.h"

/* By the new thread of a worker. */
void filch_thread_start(const filch_worker *worker);

/* Call options.on_start or on_stop, if it is not NULL. */
void filch_thread_call_hook(void (*hook)(void *context, unsigned worker_index),
                            const filch_worker *worker);

/* By a new thread of the pool that is not a worker: set its name, and let it use all CPUs of the
 * pool. Otherwise it would inherit those of its starter. */
void filch_thread_assist(const filch_pool *pool);

#endif
