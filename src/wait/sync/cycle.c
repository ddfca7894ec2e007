/* SPDX-License-Identifier: MIT */
/*
 * Follow a circle of waits: cycle.h.
 */
#include "wait/sync/cycle.h"

#ifdef FILCH_DEBUG

#include "base/symbol.h"
#include "worker/keeper.h"
#include "worker/misuse.h"

#include <stdio.h>

#define NAME_BYTES 96

static filch_lock all_lock;
static filch_lock_wait *all;

static filch_lock_wait *find(const filch_strand *strand)
{
    filch_lock_wait *wait = strand ? all : NULL;
    while (wait && wait->strand != strand)
        wait = wait->next;
    return wait;
}

/* The wait of the task that holds the mutex of this wait; NULL: it does not wait for a mutex. */
static filch_lock_wait *follow(const filch_lock_wait *wait)
{
    /* relaxed: a holder that waits has written it before, and the lock of the list carries it. */
    return find(filch_load_relaxed(&wait->mutex->holder));
}

/* Whether following the waits leads back to `wait`. They may form a circle without `wait`, so take
 * no more steps than there are waits. */
static bool is_in_circle(const filch_lock_wait *wait)
{
    const filch_lock_wait *at = follow(wait);

    for (const filch_lock_wait *limit = all; at && at != wait && limit; limit = limit->next)
        at = follow(at);
    return at == wait;
}

static void print(const filch_lock_wait *first)
{
    const filch_lock_wait *wait = first;

    fprintf(stderr, "filch: tasks wait for each other in a circle, and none of them can go on:\n");
    do {
        const filch_lock_wait *holder = follow(wait);
        char name[NAME_BYTES], holder_name[NAME_BYTES];
        filch_symbol_name(filch_strand_function(wait->strand), name, sizeof name);
        filch_symbol_name(filch_strand_function(holder->strand), holder_name, sizeof holder_name);
        fprintf(stderr, "  strand %u [%s] waits for a mutex at %p, held by strand %u [%s]\n",
                wait->strand->id, name, (void *)wait->mutex, holder->strand->id, holder_name);
        wait = holder;
    } while (wait != first);
}

/* In the child of a fork(): the tasks in the list wait in the parent only. */
static void forget_waits(void)
{
    filch_lock_init(&all_lock);
    all = NULL;
}

void filch_lock_wait_begin(filch_lock_wait *wait, filch_strand *strand, filch_mutex *mutex)
{
    *wait = (filch_lock_wait){.strand = strand, .mutex = mutex, .to = &all};
    if (!strand)
        return;
    filch_keeper_on_fork(forget_waits);
    filch_lock_acquire(&all_lock);
    wait->next = all;
    if (all)
        all->to = &wait->next;
    all = wait;
    if (is_in_circle(wait))
        print(wait);
    filch_lock_release(&all_lock);
}

void filch_lock_wait_end(filch_lock_wait *wait)
{
    if (!wait->strand)
        return;
    filch_lock_acquire(&all_lock);
    *wait->to = wait->next;
    if (wait->next)
        wait->next->to = wait->to;
    filch_lock_release(&all_lock);
}

#else

typedef int filch_cycle_is_empty; /* ISO C requires a declaration in each file */

#endif
