/* SPDX-License-Identifier: MIT */
/*
 * What a worker's thread gets and gives back: its name, its CPU, the user's hooks.
 */
#ifndef FILCH_WORKER_THREAD_H
#define FILCH_WORKER_THREAD_H

#include "worker/worker.h"

void filch_thread_start(filch_worker *worker, filch_overflow *overflow);
void filch_thread_stop(filch_worker *worker, filch_overflow *overflow);

/* By a thread of the pool that is no worker, when it starts: it has a name, and all CPUs of the pool, whoever started it. */
void filch_thread_assist(const filch_pool *pool);

#endif
