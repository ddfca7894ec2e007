/* SPDX-License-Identifier: MIT */
#include "deque/queue.h"

#include <stddef.h>

void filch_queue_init(filch_queue *queue)
{
    filch_lock_init(&queue->lock);
    queue->first = NULL;
    queue->last = &queue->first;
    /* relaxed: no other thread knows the queue yet. */
    filch_store_relaxed(&queue->count, 0);
}

/* The most entries that a thief takes: it walks over them under the lock. */
#define HALF_MAX 64

static uint32_t append(filch_queue *queue, filch_link *first, filch_link *last, uint32_t count)
{
    last->next = NULL;
    filch_lock_acquire(&queue->lock);
    *queue->last = first;
    queue->last = &last->next;
    /* seq_cst [queued-or-sleep] */
    count += filch_fetch_add_seq_cst(&queue->count, count);
    filch_lock_release(&queue->lock);
    return count;
}

uint32_t filch_queue_push(filch_queue *queue, filch_link *entry)
{
    return append(queue, entry, entry, 1);
}

uint32_t filch_queue_push_list(filch_queue *queue, filch_link *first)
{
    filch_link *last = first;
    uint32_t count = 1;

    if (!first)
        return 0;
    for (; last->next; last = last->next)
        count++;
    append(queue, first, last, count);
    return count;
}

filch_link *filch_queue_take(filch_queue *queue)
{
    /* relaxed: a hint; a worker that goes to sleep checks again with filch_queue_is_empty. */
    if (filch_load_relaxed(&queue->count) == 0)
        return NULL;
    filch_lock_acquire(&queue->lock);
    filch_link *entry = queue->first;
    if (entry) {
        queue->first = entry->next;
        if (queue->first)
            /* A strand that has waited for long is in no cache, and its page in no TLB. Fetch both
             * before its turn comes. */
            __builtin_prefetch(queue->first, 1);
        else
            queue->last = &queue->first;
        /* relaxed: under the lock. Only a count that is too low would do harm. */
        filch_fetch_add_relaxed(&queue->count, -1u);
    }
    filch_lock_release(&queue->lock);
    return entry;
}

filch_link *filch_queue_take_half(filch_queue *queue, filch_link **rest)
{
    *rest = NULL;
    /* relaxed: as above. */
    if (filch_load_relaxed(&queue->count) == 0)
        return NULL;
    filch_lock_acquire(&queue->lock);
    /* relaxed: under the lock. */
    uint32_t half = (filch_load_relaxed(&queue->count) + 1) / 2, count = 1;
    filch_link *entry = queue->first, *last = entry;
    if (entry) {
        for (; count < half && count < HALF_MAX; count++)
            last = last->next;
        queue->first = last->next;
        if (!queue->first)
            queue->last = &queue->first;
        last->next = NULL;
        *rest = entry->next;
        /* relaxed: under the lock. Only a count that is too low would do harm. */
        filch_fetch_add_relaxed(&queue->count, -count);
    }
    filch_lock_release(&queue->lock);
    return entry;
}

filch_link *filch_queue_take_those(filch_queue *queue, bool (*is_meant)(const filch_link *entry))
{
    filch_link *taken = NULL, **last = &taken, **at = &queue->first;
    uint32_t count = 0;

    filch_lock_acquire(&queue->lock);
    while (*at) {
        filch_link *entry = *at;
        if (is_meant(entry)) {
            *at = entry->next;
            *last = entry;
            last = &entry->next;
            count++;
        } else {
            at = &entry->next;
        }
    }
    *last = NULL;
    queue->last = at;
    /* relaxed: under the lock. Only a count that is too low would do harm. */
    filch_fetch_add_relaxed(&queue->count, -count);
    filch_lock_release(&queue->lock);
    return taken;
}
