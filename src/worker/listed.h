/* SPDX-License-Identifier: MIT */
/*
 * The list of all pools of the process. The keeper (keeper.h) visits them one by one, without a
 * lock. So a pool that is being destroyed first waits for the end of its visit.
 *
 * A fork() may come at any time, and copies the list as it is. Each change of the list is one
 * store, so the child finds a whole list. It resets the lock (filch_listed_forked).
 *
 * Edges
 *   list-whole  filch_listed_add, filch_listed_remove -> next_of
 *               carries a pool and its link. Between threads the lock carries them, too. So this
 *               edge matters only in the child of a fork().
 */
#ifndef FILCH_WORKER_LISTED_H
#define FILCH_WORKER_LISTED_H

#include <filch/pool.h>

void filch_listed_add(filch_pool *pool);

/* Waits while the keeper visits the pool. */
void filch_listed_remove(filch_pool *pool);

/* Does this process use a pool with more than one worker? In the child of a fork(), a pool of
 * the parent counts from when a thread begins to rebuild it. */
bool filch_listed_has_many(void);

/* By the keeper: end the visit of one pool and begin the next. NULL: all have been visited, and the
 * next call begins again. */
filch_pool *filch_listed_next(void);

/* In the child of a fork(): reset the lock and the visit. The keeper, and a thread that held the
 * lock, exist only in the parent. */
void filch_listed_forked(void);

#endif
