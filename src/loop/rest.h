/* SPDX-License-Identifier: MIT */
/*
 * The rest of a part of a loop: a task in a known slot, from which its owner takes iterations.
 *
 * The owner opens the rest, takes pieces for its calls of the body, and joins the slot at the end.
 * README.md has the protocol. All functions but filch_rest_start are for the owner.
 *
 * Edges
 *   claim-or-reach  filch_rest_take  x  filch_split_mark, filch_split_reach (src/deque/split.h)
 *                   forbids that the owner takes a piece, and a thief gets it as well.
 *   rest-start      filch_rest_settle  x  filch_rest_start
 *                   forbids that owner and thief disagree where a stolen rest begins.
 */
#ifndef FILCH_LOOP_REST_H
#define FILCH_LOOP_REST_H

#include "fork/fork.h"

/* `start` before it is settled. No rest begins here: it would be empty. */
#define FILCH_REST_UNSETTLED SIZE_MAX

typedef struct filch_rest {
    const void *of; /* of the part; valid until the join */
    size_t end;
    FILCH_ATOMIC(size_t) begun; /* the owner has claimed what lies below */
    FILCH_ATOMIC(size_t) start; /* the rest begins here for its thief */
} filch_rest;

_Static_assert(sizeof(filch_rest) <= FILCH_SLOT_ROOM, "a rest lies in its slot");

static inline filch_rest *filch_rest_in(filch_slot *slot)
{
    return (filch_rest *)(void *)slot->room;
}

/* Can the loop with the frame `f` have a rest in that slot? */
static inline bool filch_rest_fits(filch_frame *f)
{
    const filch_strand *strand = filch_strand_of(f);
    return f < strand->split.end && !strand->kind;
}

/* [begun, end) is the rest: not empty. */
static inline void filch_rest_open(filch_frame *f, const void *of, size_t begun, size_t end,
                                   filch_thunk *thunk)
{
    filch_rest *rest = filch_rest_in(f);

    rest->of = of;
    rest->end = end;
    /* relaxed: released with the task. */
    filch_store_relaxed(&rest->begun, begun);
    filch_store_relaxed(&rest->start, FILCH_REST_UNSETTLED);
    filch_fork_fill(f, thunk);
    filch_make_known(f);
}

/* Take the iterations up to `next`, which is not the end. False: the rest is public, so the caller
 * settles where it begins. */
static inline bool filch_rest_take(filch_frame *f, size_t next)
{
    filch_split *split = &filch_strand_of(f)->split;

    /* relaxed: [claim-or-reach] */
    filch_store_relaxed(&filch_rest_in(f)->begun, next);
    return filch_split_keeps(split, (uint32_t)(f - filch_split_slots(split)));
}

/* Make the rest known again: joins inside the body may have made fewer slots known. */
static inline void filch_rest_show(filch_frame *f)
{
    filch_split *split = &filch_strand_of(f)->split;

    if (__builtin_expect(f - filch_split_slots(split) >= filch_split_known(split), 0))
        filch_make_known(f);
}

/* The rest is public. Returns where it begins: at the beginning of the piece up to `next`, or at
 * its end. The caller runs the iterations below it. */
static inline size_t filch_rest_settle(filch_frame *f, size_t next)
{
    size_t start = FILCH_REST_UNSETTLED;
    /* acq_rel [rest-start] */
    return filch_cas_acq_rel(&filch_rest_in(f)->start, &start, next) ? next : start;
}

/* For the thief: where the rest begins. */
static inline size_t filch_rest_start(filch_slot *task)
{
    filch_rest *rest = filch_rest_in(task);
    /* relaxed: [task-ready] and [claim-or-reach] order it behind all pieces that the owner has. */
    size_t begun = filch_load_relaxed(&rest->begun), start = FILCH_REST_UNSETTLED;
    /* acq_rel [rest-start] */
    return filch_cas_acq_rel(&rest->start, &start, begun) ? begun : start;
}

#endif
