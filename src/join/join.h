/* SPDX-License-Identifier: MIT */
/*
 * What loops, and other deques, need beyond fork and join.
 */
#ifndef FILCH_JOIN_JOIN_H
#define FILCH_JOIN_JOIN_H

#include "strand/strand.h"

/* Publish the tasks below `f` now, whether or not somebody asked for them. */
void filch_publish(filch_slot *f);

/* The strand of `f` is going to wait: let thieves have all that it has forked. */
void filch_publish_all(filch_slot *f);

/* The same, but wake nobody: for who is looking anyway. Only on a strand that has a worker. */
void filch_publish_quietly(filch_slot *f);

/* After somebody asked: is there a worker that is idle, and nothing public for it? */
bool filch_is_wanted(filch_slot *f);

/* Of a strand with a deque of another kind: somebody has asked, so let thieves have all, and wake one if one sleeps. */
void filch_serve_deque(filch_strand *strand);

/* filch_fork_slow and filch_join_slow of a strand with the split stack; kinds.c has those, and calls these. Not inlined there. */
filch_slot *filch_fork_split(filch_strand *strand, filch_slot *f);
bool filch_join_split(filch_strand *strand, filch_slot *f);

/* The child was stolen: wait until the thief is done with it. */
void filch_join_wait(filch_strand *strand, filch_slot *child);

#endif
