/* SPDX-License-Identifier: MIT */
/*
 * What a worker's thread gets and gives back: its name, its CPU, the user's hooks.
 */
#ifndef FILCH_WORKER_THREAD_H
#define FILCH_WORKER_THREAD_H

#include "worker/worker.h"

void filch_thread_start(filch_worker *worker, filch_overflow *overflow);
void filch_thread_stop(filch_worker *worker, filch_overflow *overflow);

#endif
