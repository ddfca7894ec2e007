/* SPDX-License-Identifier: MIT */
/*
 * Strands that wait and have tasks that may be stolen: the suspended deques of ProWS.
 *
 * A strand that leaves its stack with public tasks is put into the list of the worker that it leaves, before anybody can resume it. Thieves look there
 * after they have looked at what the worker runs, and take a strand off that has nothing left. Whoever runs the strand again takes it off, too.
 *
 * All under a lock: a strand comes here once per wait, and only if it has forked something.
 *
 * Edges
 *   parked-or-sleep  filch_parked_add x filch_parked_is_empty
 *                    with the sleep word (src/sleep/README.md).
 *   off-list         filch_parked_steal -> filch_parked_remove
 */
#ifndef FILCH_WORKER_PARKED_H
#define FILCH_WORKER_PARKED_H

#include "strand/strand.h"

typedef struct filch_parked {
    filch_lock lock;
    filch_strand *first;
    filch_atomic_u32 count;
} filch_parked;

static inline bool filch_parked_is_empty(filch_parked *parked)
{
    /* seq_cst [parked-or-sleep] */
    return filch_load_seq_cst(&parked->count) == 0;
}

/* A hint, for who looks often. */
static inline bool filch_parked_seems_empty(filch_parked *parked)
{
    /* relaxed: a hint. */
    return filch_load_relaxed(&parked->count) == 0;
}

/* The strand has left its stack, and is the caller's. */
void filch_parked_add(filch_parked *parked, filch_strand *strand);

/* The strand is the caller's, who will run it. Nothing happens if it is in no list. */
void filch_parked_remove(filch_strand *strand);

/* Take a task of one of these strands, with a `root` only of those that belong to it. False: they have none. */
bool filch_parked_steal(filch_parked *parked, void *root, filch_slot **task);

/* Nobody can run what these strands have: end their waits with FILCH_WAIT_NO_MEMORY, but for those that are firm. Strands to be resumed are appended at **last. */
void filch_parked_refuse(filch_parked *parked, filch_link ***last);

#endif
