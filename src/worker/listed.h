/* SPDX-License-Identifier: MIT */
/*
 * All pools of the process, and the signal that dumps them: filch_dump_on_signal.
 */
#ifndef FILCH_WORKER_LISTED_H
#define FILCH_WORKER_LISTED_H

#include <filch/pool.h>

/* A pool was created. The first one also reads FILCH_DUMP_SIGNAL. */
void filch_listed_add(filch_pool *pool);

/* A pool is about to be destroyed. Waits while it is being dumped. */
void filch_listed_remove(filch_pool *pool);

/* A pool was created or rebuilt, perhaps in the child of a fork(): if the thread that dumps was
 * left behind, start it again. */
void filch_listed_forked(void);

#endif
