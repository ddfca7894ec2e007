/* SPDX-License-Identifier: MIT */
/*
 * Strands and the list of free ones.
 *
 * A strand is created when a worker needs a stack and none is free, and is kept until the pool is destroyed: a
 * thief may look at one that has ended long ago, and finds it empty. README.md has the states.
 */
#ifndef FILCH_STRAND_STRAND_H
#define FILCH_STRAND_STRAND_H

#include "base/lock.h"
#include "deque/queue.h"
#include "deque/split.h"
#include "strand/context.h"

typedef struct filch_strand filch_strand;
struct filch_worker;

struct filch_strand {
    filch_split split;

    /* Whoever runs the strand, or is about to. Handed over by [strand-waits], src/join/README.md. */
    struct filch_worker *worker __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_context context;            /* while it does not run */
    filch_context *entered_from;      /* while it does: where filch_strand_leave goes */
    void (*body)(filch_strand *self); /* called when the strand is entered anew */
    void *argument;                   /* what body runs: a stolen slot or a job */
    unsigned open_forks;              /* checked builds: forks without a join */
    bool keeps_all;                   /* publishes nothing: its handle does not say which slots hold tasks */

    /* Which filch_run the work belongs to; thieves that help only one of them look at it. */
    FILCH_ATOMIC(void *) root;

    unsigned id;
    size_t stack_bytes;
    filch_strand *next_free, *next_all; /* under the lock of the list it is in */
    filch_link link;                    /* in the queue of strands that may go on */
};

static inline filch_strand *filch_strand_of(const filch_slot *f)
{
    return (filch_strand *)FILCH_LIMITS(f);
}

static inline filch_strand *filch_strand_of_link(filch_link *link)
{
    return (filch_strand *)((char *)link - offsetof(filch_strand, link));
}

/* All strands of a pool. */
typedef struct filch_strands {
    filch_lock lock;
    filch_strand *free, *all;
    unsigned count;
    size_t stack_bytes;
} filch_strands;

/* stack_bytes is rounded up to whole pages. */
void filch_strands_init(filch_strands *list, size_t stack_bytes);

/* No strand is in use any more. */
void filch_strands_fini(filch_strands *list);

/* In the child of a fork(): whatever ran on them is the parent's, so all are free. */
void filch_strands_rebuild(filch_strands *list);

/* A free strand, or a new one; NULL when there is no memory for it. */
filch_strand *filch_strand_take(filch_strands *list);
void filch_strand_give(filch_strands *list, filch_strand *strand);

/* Go on in the strand; returns when it leaves, perhaps for another thread to enter it next. */
void filch_strand_enter(filch_strand *strand, filch_context *from);
void filch_strand_leave(filch_strand *strand);

/* The strand whose guard page holds `address`, or NULL. For a signal handler: takes no lock. */
filch_strand *filch_strand_find_guard(filch_strands *list, const void *address);

/* A strand without a stack, for running serially on the caller's: forks and joins, is never stolen from. NULL
 * when there is no memory. */
filch_strand *filch_strand_create_serial(void);
void filch_strand_destroy_serial(filch_strand *strand);

#endif
