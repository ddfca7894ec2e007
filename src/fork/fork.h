/* SPDX-License-Identifier: MIT */
/*
 * Publishing, for loops, waits and the other deques.
 */
#ifndef FILCH_FORK_FORK_H
#define FILCH_FORK_FORK_H

#include "strand/strand.h"

#include <filch/pool.h>

/* Publish the tasks below `f` now, whether or not a thief asked for them. */
void filch_publish(filch_frame *f);

/* The strand of `f` is going to wait: let thieves take all that it has forked. */
void filch_publish_all(filch_frame *f);

/* The same as filch_publish, but wake no worker: for thieves that search anyway. Only on a strand
 * that has a worker. */
void filch_publish_quietly(filch_frame *f);

/* filch_fork_slow and filch_join_slow of a strand with the split stack. Those of all strands are in
 * kinds.c, and call these. */
filch_slot *filch_fork_split(filch_strand *strand, filch_frame *f);
bool filch_join_split(filch_strand *strand, filch_frame *f);

/* The newest task of the strand is in slot `f`: make it known (src/deque/README.md), and all older
 * tasks as well. Not on a strand with another deque. */
void filch_make_known(filch_frame *f);

/* Join the task in slot `f`, as filch_join_slow. All slots that are known stay known. */
bool filch_join_known(filch_frame *f);

/* After a thief asked: are more workers idle than tasks are public? */
bool filch_is_wanted(filch_frame *f);

/* The strand's task has returned: in a checked program, stop if it has not joined its forks. */
void filch_check_end(filch_strand *strand);

/* Run fn(f, arg) on the caller's stack, with a frame whose forks run at their joins. Returns 0, or
 * -ENOMEM: there is no memory for such a frame. */
int filch_run_serially(filch_fn *fn, void *arg);

#endif
