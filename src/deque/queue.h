/* SPDX-License-Identifier: MIT */
/*
 * A queue for all threads, first in, first out: for tasks from outside the pool, and for ready
 * strands.
 *
 * A lock and a list suffice: each entry uses them once, for a few nanoseconds. An entry contains a
 * filch_link.
 *
 * Edges
 *   queued-or-sleep  filch_queue_push: count  x  filch_queue_is_empty
 *                    with the sleep word (src/sleep/README.md).
 */
#ifndef FILCH_DEQUE_QUEUE_H
#define FILCH_DEQUE_QUEUE_H

#include "base/lock.h"

typedef struct filch_link filch_link;
struct filch_link {
    filch_link *next; /* under the queue's lock */
};

typedef struct filch_queue {
    filch_lock lock;
    filch_link *first, **last;
    filch_atomic_u32 count;
} filch_queue;

void filch_queue_init(filch_queue *queue);
/* Returns the number of entries after the push. */
uint32_t filch_queue_push(filch_queue *queue, filch_link *entry);

/* Push `first` and the entries linked to it, in their order. Returns how many they are. */
uint32_t filch_queue_push_list(filch_queue *queue, filch_link *first);

/* A hint, for frequent checks. Before it sleeps, a worker calls filch_queue_is_empty instead. */
static inline bool filch_queue_seems_empty(filch_queue *queue)
{
    /* relaxed: a hint. */
    return filch_load_relaxed(&queue->count) == 0;
}

/* Take the oldest entry. NULL: the queue is empty. */
filch_link *filch_queue_take(filch_queue *queue);

/* Take the oldest half of the entries, but a bounded number: for thieves. Returns the first entry,
 * and in *rest the others, in their order. */
filch_link *filch_queue_take_half(filch_queue *queue, filch_link **rest);

/* Take all entries that satisfy `is_meant`, linked in their order. The others stay in the queue,
 * where other threads can see them all the time. */
filch_link *filch_queue_take_those(filch_queue *queue, bool (*is_meant)(const filch_link *entry));

static inline bool filch_queue_is_empty(filch_queue *queue)
{
    /* seq_cst [queued-or-sleep] */
    return filch_load_seq_cst(&queue->count) == 0;
}

#endif
