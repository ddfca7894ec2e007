/* SPDX-License-Identifier: MIT */
/*
 * Inheritance: a task gets its scope, its shield from cancellation and its local values from the
 * task that forked or spawned it.
 */
#ifndef FILCH_STRAND_INHERIT_H
#define FILCH_STRAND_INHERIT_H

#include "strand/strand.h"

/* Prepare `strand` to run the task stolen from slot `task`, which inherits all that was in force at
 * the fork. */
void filch_strand_inherit(filch_strand *strand, filch_slot *task);

/* The innermost binding that holds for the code with the frame `f`, or NULL. `outer` leads to the
 * others. */
struct filch_binding *filch_locals_of(filch_frame *f);

/* Prepare `strand` to run a task of this scope, with these local values. */
static inline void filch_strand_begin_task(filch_strand *strand, struct filch_scope *scope,
                                           struct filch_binding *locals)
{
    strand->scope = scope;
    /* relaxed: no other thread looks at the strand yet. */
    filch_store_relaxed(&strand->locals, locals);
    filch_store_relaxed(&strand->shield, NULL);
}

/* Is the code with the frame `f` shielded? */
static inline bool filch_strand_is_shielded(filch_strand *strand, const filch_frame *f)
{
    /* relaxed: written by this strand before it forked the task that asks. */
    filch_frame *shield = filch_load_relaxed(&strand->shield);
    return shield && f >= shield;
}

#endif
