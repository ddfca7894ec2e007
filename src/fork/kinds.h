/* SPDX-License-Identifier: MIT */
/*
 * Fork and join on a strand whose deque is not the split stack: strand->kind is not NULL.
 */
#ifndef FILCH_FORK_KINDS_H
#define FILCH_FORK_KINDS_H

#include "strand/strand.h"

/* A fork that wakes no worker. */
void filch_kind_fork_quietly(filch_strand *strand, filch_frame *f);

/* A thief has asked: show thieves all tasks of the strand's deque, and wake a sleeper for them. */
void filch_serve_deque(filch_strand *strand);

#endif
