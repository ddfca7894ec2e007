/* SPDX-License-Identifier: MIT */
/*
 * Parked strands: they wait, and have public tasks. ProWS calls them suspended deques.
 *
 * A strand that leaves its stack with public tasks is put into the list of its worker, before any
 * thread can resume it. Thieves look there before they look at the strand that the worker runs, and
 * remove strands without tasks. The worker that runs the strand next removes it, too.
 *
 * The list is under a lock: a strand is put there once per wait, and only if it has public tasks.
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

/* The same as a hint, for callers that look often. */
static inline bool filch_parked_seems_empty(filch_parked *parked)
{
    /* relaxed: a hint. */
    return filch_load_relaxed(&parked->count) == 0;
}

/* The strand has left its stack and belongs to the caller. */
void filch_parked_add(filch_parked *parked, filch_strand *strand);

/* The strand belongs to the caller, which will run it. It may be in no list. */
void filch_parked_remove(filch_strand *strand);

/* Steal a task of one of these strands; if `root` is not NULL, only of strands with that root.
 * False: there is none. */
bool filch_parked_steal(filch_parked *parked, void *root, filch_slot **task);

/* There is no memory to run these strands' tasks: end their waits with FILCH_WAIT_NO_MEMORY, unless
 * the wait is firm. Appends strands to resume at **last. */
void filch_parked_refuse(filch_parked *parked, filch_link ***last);

#endif
