/* SPDX-License-Identifier: MIT */
/*
 * Parked strands. parked.h has the edges.
 */
#include "worker/parked.h"

void filch_parked_add(filch_parked *parked, filch_strand *strand)
{
    filch_lock_acquire(&parked->lock);
    strand->parked_next = parked->first;
    strand->parked_to = &parked->first;
    if (strand->parked_next)
        strand->parked_next->parked_to = &strand->parked_next;
    parked->first = strand;
    /* relaxed: the strand is ours; [strand-waits] carries it to the worker that runs it next. */
    filch_store_relaxed(&strand->parked_in, parked);
    /* seq_cst [parked-or-sleep] */
    filch_fetch_add_seq_cst(&parked->count, 1);
    filch_lock_release(&parked->lock);
}

static void unlink_strand(filch_parked *parked, filch_strand *strand)
{
    *strand->parked_to = strand->parked_next;
    if (strand->parked_next)
        strand->parked_next->parked_to = strand->parked_to;
    /* relaxed: under the lock. A reader without the lock may see a count that is too high, which
     * does no harm. */
    filch_fetch_add_relaxed(&parked->count, -1u);
    /* release [off-list]: a thread that reads NULL need not take the lock. */
    filch_store_release(&strand->parked_in, NULL);
}

void filch_parked_remove(filch_strand *strand)
{
    /* acquire [off-list] */
    filch_parked *parked = filch_load_acquire(&strand->parked_in);
    if (!parked)
        return;
    filch_lock_acquire(&parked->lock);
    /* relaxed: under the lock. A thief may have removed it meanwhile. */
    if (filch_load_relaxed(&strand->parked_in))
        unlink_strand(parked, strand);
    filch_lock_release(&parked->lock);
}

bool filch_parked_steal(filch_parked *parked, void *root, filch_slot **task)
{
    bool is_won = false;

    /* relaxed: a hint; a worker that goes to sleep calls filch_parked_is_empty. */
    if (filch_load_relaxed(&parked->count) == 0)
        return false;
    filch_lock_acquire(&parked->lock);
    for (filch_strand *strand = parked->first, *next; strand && !is_won; strand = next) {
        filch_steal_result result;

        next = strand->parked_next;
        /* relaxed: constant while the strand waits. */
        if (root && filch_load_relaxed(&strand->root) != root)
            continue;
        do
            result = filch_strand_steal(strand, task);
        while (result == FILCH_STEAL_LOST);
        is_won = result == FILCH_STEAL_WON;
        if (!is_won)
            unlink_strand(parked, strand);
    }
    filch_lock_release(&parked->lock);
    return is_won;
}

void filch_parked_refuse(filch_parked *parked, filch_link ***last)
{
    filch_lock_acquire(&parked->lock);
    for (filch_strand *strand = parked->first; strand; strand = strand->parked_next) {
        /* No worker runs a strand while it is in the list, so this is the wait with which it was
         * parked. */
        if (strand->is_firm || !filch_strand_has_public(strand) ||
            filch_wait_refuse(&strand->wait) != FILCH_WAIT_RESUME)
            continue;
        **last = &strand->link;
        *last = &strand->link.next;
    }
    filch_lock_release(&parked->lock);
}
