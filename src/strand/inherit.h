/* SPDX-License-Identifier: MIT */
/*
 * What a task has from the one that forked or spawned it: its scope, whether it is shielded from cancellation, its local values.
 */
#ifndef FILCH_STRAND_INHERIT_H
#define FILCH_STRAND_INHERIT_H

#include "strand/strand.h"

/* The strand will run a task that was stolen from slot `task`: it has all that was in force at the fork. */
void filch_strand_inherit(filch_strand *strand, filch_slot *task);

/* The innermost binding that holds for the code that has the handle `f`, or NULL; then its outer, and so on. */
struct filch_binding *filch_locals_of(filch_frame *f);

/* The strand will run a task of this scope, with these values. */
static inline void filch_strand_begin_task(filch_strand *strand, struct filch_scope *scope,
                                           struct filch_binding *locals)
{
    strand->scope = scope;
    /* relaxed: nobody else looks at the strand yet. */
    filch_store_relaxed(&strand->locals, locals);
    filch_store_relaxed(&strand->shield, NULL);
}

/* Is the code that has the handle `f` shielded? */
static inline bool filch_strand_is_shielded(filch_strand *strand, const filch_frame *f)
{
    /* relaxed: written by this strand, before it forked what asks. */
    filch_frame *shield = filch_load_relaxed(&strand->shield);
    return shield && f >= shield;
}

#endif
