/* SPDX-License-Identifier: MIT */
/*
 * A queue for all threads, first in, first out: tasks that come from outside the pool, and strands that may go on.
 *
 * A lock and a list: it is used once per entry, and then for a few nanoseconds. An entry has a filch_link in it.
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
/* Returns how many there are now. */
uint32_t filch_queue_push(filch_queue *queue, filch_link *entry);

/* The entries from `first` on, in their order. */
void filch_queue_push_list(filch_queue *queue, filch_link *first);

/* A hint, for who looks often; who goes to sleep looks with filch_queue_is_empty. */
static inline bool filch_queue_seems_empty(filch_queue *queue)
{
    /* relaxed: a hint. */
    return filch_load_relaxed(&queue->count) == 0;
}

/* The oldest entry, or NULL. */
filch_link *filch_queue_take(filch_queue *queue);

/* The same for a thief: half of the entries, the oldest, leave the queue, some at most. Returns the first, and in *rest the others, in
 * their order. */
filch_link *filch_queue_take_half(filch_queue *queue, filch_link **rest);

/* All that are meant, in their order, linked; the others stay, and nobody misses them meanwhile. */
filch_link *filch_queue_take_those(filch_queue *queue, bool (*is_meant)(const filch_link *entry));

static inline bool filch_queue_is_empty(filch_queue *queue)
{
    /* seq_cst [queued-or-sleep] */
    return filch_load_seq_cst(&queue->count) == 0;
}

#endif
