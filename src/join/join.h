/* SPDX-License-Identifier: MIT */
/*
 * What loops need beyond fork and join.
 */
#ifndef FILCH_JOIN_JOIN_H
#define FILCH_JOIN_JOIN_H

#include <filch/strand.h>

/* Publish the tasks below `f` now, whether or not somebody asked for them. */
void filch_publish(filch_slot *f);

/* The same, but wake nobody: for who is looking anyway. Only on a strand that has a worker. */
void filch_publish_quietly(filch_slot *f);

/* After somebody asked: is there a worker that is idle, and nothing public for it? */
bool filch_is_wanted(filch_slot *f);

#endif
