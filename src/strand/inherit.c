/* SPDX-License-Identifier: MIT */
/*
 * A thief reads the bindings of the strand that it stole from, while that strand goes on binding
 * and unbinding. Hence the lock. Bindings that hold for the stolen task cannot be unbound before
 * the task is joined. So the thief may keep a pointer to the innermost of them.
 */
#include "strand/inherit.h"

#include <filch/local.h>

/* A binding that this strand inherited from another strand holds for all its tasks. So does a copy,
 * which belongs to no strand. */
static bool holds_for(const filch_binding *binding, const filch_slot *task)
{
    return !binding->from || filch_strand_of(binding->from) != filch_strand_of(task) ||
           binding->from <= task;
}

static filch_binding *innermost(filch_strand *strand, const filch_slot *task)
{
    /* relaxed: under the lock, or on our own strand. */
    filch_binding *binding = filch_load_relaxed(&strand->locals);
    while (binding && !holds_for(binding, task))
        binding = binding->outer;
    return binding;
}

void filch_strand_inherit(filch_strand *strand, filch_slot *task)
{
    filch_strand *forker = filch_strand_of(task);
    filch_binding *locals = NULL;

    /* relaxed: [task-ready] carried the bindings made before the fork; later ones do not matter. */
    if (filch_load_relaxed(&forker->locals)) {
        filch_lock_acquire(&forker->locals_lock);
        locals = innermost(forker, task);
        filch_lock_release(&forker->locals_lock);
    }
    filch_strand_begin_task(strand, forker->scope, locals);
    if (filch_strand_is_shielded(forker, task))
        /* relaxed: no other thread looks at the strand yet. */
        filch_store_relaxed(&strand->shield, filch_split_slots(&strand->split));
}

void filch_local_bind(filch_frame *f, filch_binding *binding, const filch_key *key, void *value)
{
    if (!f)
        return;
    filch_strand *strand = filch_strand_of(f);

    /* relaxed: own variable. */
    *binding = (filch_binding){filch_load_relaxed(&strand->locals), key, value, f};
    filch_lock_acquire(&strand->locals_lock);
    /* relaxed: under the lock, which thieves take. */
    filch_store_relaxed(&strand->locals, binding);
    filch_lock_release(&strand->locals_lock);
}

void filch_local_unbind(filch_frame *f, filch_binding *binding)
{
    if (!f)
        return;
    filch_strand *strand = filch_strand_of(f);

    filch_lock_acquire(&strand->locals_lock);
    /* relaxed: under the lock, which thieves take. */
    filch_store_relaxed(&strand->locals, binding->outer);
    filch_lock_release(&strand->locals_lock);
}

filch_binding *filch_locals_of(filch_frame *f)
{
    return innermost(filch_strand_of(f), f);
}

void *filch_local_get(filch_frame *f, const filch_key *key)
{
    filch_binding *binding = f ? filch_locals_of(f) : NULL;
    while (binding && binding->key != key)
        binding = binding->outer;
    return binding ? binding->value : NULL;
}
