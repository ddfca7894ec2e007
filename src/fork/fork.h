/* SPDX-License-Identifier: MIT */
/*
 * What loops, and other deques, need beyond fork and join.
 */
#ifndef FILCH_FORK_FORK_H
#define FILCH_FORK_FORK_H

#include "strand/strand.h"

/* Publish the tasks below `f` now, whether or not somebody asked for them. */
void filch_publish(filch_frame *f);

/* The strand of `f` is going to wait: let thieves have all that it has forked. */
void filch_publish_all(filch_frame *f);

/* The same, but wake nobody: for who is looking anyway. Only on a strand that has a worker. */
void filch_publish_quietly(filch_frame *f);

/* After somebody asked: is there a worker that is idle, and nothing public for it? */
bool filch_is_wanted(filch_frame *f);

#endif
