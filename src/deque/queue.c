/* SPDX-License-Identifier: MIT */
#include "deque/queue.h"

#include <stddef.h>

void filch_queue_init(filch_queue *queue)
{
    filch_lock_init(&queue->lock);
    queue->first = NULL;
    queue->last = &queue->first;
    /* relaxed: nobody else knows the queue yet. */
    filch_store_relaxed(&queue->count, 0);
}

void filch_queue_push(filch_queue *queue, filch_link *entry)
{
    entry->next = NULL;
    filch_lock_acquire(&queue->lock);
    *queue->last = entry;
    queue->last = &entry->next;
    /* seq_cst [queued-or-sleep] */
    filch_fetch_add_seq_cst(&queue->count, 1);
    filch_lock_release(&queue->lock);
}

filch_link *filch_queue_take(filch_queue *queue)
{
    /* relaxed: a hint; whoever goes to sleep looks again with filch_queue_is_empty. */
    if (filch_load_relaxed(&queue->count) == 0)
        return NULL;
    filch_lock_acquire(&queue->lock);
    filch_link *entry = queue->first;
    if (entry) {
        queue->first = entry->next;
        if (!queue->first)
            queue->last = &queue->first;
        /* relaxed: under the lock; only a count too low would hurt. */
        filch_fetch_add_relaxed(&queue->count, -1u);
    }
    filch_lock_release(&queue->lock);
    return entry;
}
