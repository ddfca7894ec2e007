/* SPDX-License-Identifier: MIT */
/*
 * Queues to compare the deques with. Their functions have the form of filch/deque.h.
 *
 *     bench_stack   an array and a count, for one thread: the least that push and pop can cost
 *     bench_ring    an array and two counts, for one thread: the same, first in first out
 *     bench_list    a doubly linked list and a mutex, as programs often have it
 */
#ifndef BENCH_BASELINE_H
#define BENCH_BASELINE_H

#include <errno.h>
#include <filch/deque.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- stack ----------------------------------------------------------------------------------- */

typedef struct bench_stack {
    filch_entry *entries;
    size_t count, capacity;
} bench_stack;

static inline int bench_stack_init(bench_stack *s, size_t capacity)
{
    s->entries = (filch_entry *)calloc(capacity, sizeof *s->entries);
    s->count = 0;
    s->capacity = capacity;
    return s->entries ? 0 : -ENOMEM;
}

static inline int bench_stack_push(bench_stack *s, filch_entry entry)
{
    if (s->count == s->capacity)
        return -ENOBUFS;
    s->entries[s->count++] = entry;
    return 0;
}

static inline bool bench_stack_pop(bench_stack *s, filch_entry *entry)
{
    if (s->count == 0)
        return false;
    *entry = s->entries[--s->count];
    return true;
}

static inline size_t bench_stack_size_hint(const bench_stack *s)
{
    return s->count;
}

static inline void bench_stack_fini(bench_stack *s)
{
    free(s->entries);
}

/* ---- ring ------------------------------------------------------------------------------------ */

typedef struct bench_ring {
    filch_entry *entries;
    size_t pushed, popped, mask; /* the capacity is a power of two */
} bench_ring;

static inline int bench_ring_init(bench_ring *r, size_t capacity)
{
    r->entries = (filch_entry *)calloc(capacity, sizeof *r->entries);
    r->pushed = r->popped = 0;
    r->mask = capacity - 1;
    return r->entries ? 0 : -ENOMEM;
}

static inline int bench_ring_push(bench_ring *r, filch_entry entry)
{
    if (r->pushed - r->popped > r->mask)
        return -ENOBUFS;
    r->entries[r->pushed++ & r->mask] = entry;
    return 0;
}

static inline bool bench_ring_pop(bench_ring *r, filch_entry *entry)
{
    if (r->pushed == r->popped)
        return false;
    *entry = r->entries[r->popped++ & r->mask];
    return true;
}

static inline size_t bench_ring_size_hint(const bench_ring *r)
{
    return r->pushed - r->popped;
}

static inline void bench_ring_fini(bench_ring *r)
{
    free(r->entries);
}

/* ---- list ------------------------------------------------------------------------------------ */

typedef struct bench_node {
    struct bench_node *older, *newer;
    filch_entry entry;
} bench_node;

typedef struct bench_list {
    pthread_mutex_t lock; /* protects the members below */
    bench_node *oldest, *newest;
    size_t count;
} bench_list;

static inline int bench_list_init(bench_list *l, size_t capacity)
{
    (void)capacity;
    l->oldest = l->newest = NULL;
    l->count = 0;
    return -pthread_mutex_init(&l->lock, NULL);
}

static inline int bench_list_push(bench_list *l, filch_entry entry)
{
    bench_node *node = (bench_node *)malloc(sizeof *node);

    if (!node)
        return -ENOMEM;
    node->entry = entry;
    node->newer = NULL;
    pthread_mutex_lock(&l->lock);
    node->older = l->newest;
    *(l->newest ? &l->newest->newer : &l->oldest) = node;
    l->newest = node;
    l->count++;
    pthread_mutex_unlock(&l->lock);
    return 0;
}

static inline bool bench_list_pop(bench_list *l, filch_entry *entry)
{
    pthread_mutex_lock(&l->lock);
    bench_node *node = l->newest;
    if (node) {
        l->newest = node->older;
        *(l->newest ? &l->newest->newer : &l->oldest) = NULL;
        l->count--;
    }
    pthread_mutex_unlock(&l->lock);
    if (!node)
        return false;
    *entry = node->entry;
    free(node);
    return true;
}

static inline filch_steal_result bench_list_steal(bench_list *l, filch_entry *entry)
{
    pthread_mutex_lock(&l->lock);
    bench_node *node = l->oldest;
    if (node) {
        l->oldest = node->newer;
        *(l->oldest ? &l->oldest->older : &l->newest) = NULL;
        l->count--;
    }
    pthread_mutex_unlock(&l->lock);
    if (!node)
        return FILCH_STEAL_EMPTY;
    *entry = node->entry;
    free(node);
    return FILCH_STEAL_WON;
}

static inline size_t bench_list_size_hint(bench_list *l)
{
    pthread_mutex_lock(&l->lock);
    size_t count = l->count;
    pthread_mutex_unlock(&l->lock);
    return count;
}

static inline void bench_list_fini(bench_list *l)
{
    filch_entry entry;

    while (bench_list_pop(l, &entry))
        continue;
    pthread_mutex_destroy(&l->lock);
}

#endif
