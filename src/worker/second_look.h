/* SPDX-License-Identifier: MIT */
/*
 * The second look: a worker that has slept for 100 us publishes tasks of strands that have not
 * answered since it asked them. Their owners compute, or block in the kernel, and come to no fork
 * or join.
 *
 * README.md says why no task is missed, src/deque/README.md which tasks can be published.
 */
#ifndef FILCH_WORKER_SECOND_LOOK_H
#define FILCH_WORKER_SECOND_LOOK_H

#include "worker/worker.h"

/* On the way to sleep, after the worker has asked all strands: when to take the second look.
 * FILCH_NEVER_NS: no other worker runs a strand that has not answered. */
uint64_t filch_second_look_ns(filch_worker *self);

/* In bed, at that time. If there is work now, wakes a worker. Returns when to look again, or
 * FILCH_NEVER_NS. `since_ns`: when the sleep began. */
uint64_t filch_second_look(filch_worker *self, uint64_t since_ns);

/* By a thread that has just asked all strands, and will not sleep itself: do strands that have not
 * answered, other than that of `self`, seem to have tasks? Then wake a worker, which will take a
 * second look. If it is not sure that they have none, the keeper looks a millisecond later. */
bool filch_second_look_is_needed(filch_pool *pool, const filch_worker *self);

/* By the keeper: that look. Returns when to call again, or FILCH_NEVER_NS. */
uint64_t filch_second_look_for_rest(filch_pool *pool);

#endif
