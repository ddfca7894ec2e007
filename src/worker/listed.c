/* SPDX-License-Identifier: MIT */
#include "worker/listed.h"

#include "base/lock.h"
#include "worker/worker.h"

#include <limits.h>

static filch_lock lock; /* for changes of the list, and for `visited` */
static filch_pool_link first;
static filch_pool *visited;
static unsigned awaiting;       /* threads that wait for the end of a visit */
static filch_atomic_u32 visits; /* changes when a visit ends: to sleep on */

static filch_pool *next_of(filch_pool_link *link)
{
    /* acquire [list-whole] */
    return filch_load_acquire(link);
}

void filch_listed_add(filch_pool *pool)
{
    filch_lock_acquire(&lock);
    /* relaxed: no other thread knows the pool. */
    filch_store_relaxed(&pool->listed_next, next_of(&first));
    /* release [list-whole] */
    filch_store_release(&first, pool);
    filch_lock_release(&lock);
}

/* Under the lock, which is released meanwhile. */
static void await_end_of_visit(filch_pool *pool)
{
    while (visited == pool) {
        /* relaxed: written under the lock. */
        uint32_t seen = filch_load_relaxed(&visits);
        awaiting++;
        filch_lock_release(&lock);
        filch_futex_wait(&visits, seen, NULL);
        filch_lock_acquire(&lock);
        awaiting--;
    }
}

void filch_listed_remove(filch_pool *pool)
{
    filch_pool_link *link = &first;

    filch_lock_acquire(&lock);
    await_end_of_visit(pool);
    while (next_of(link) != pool)
        link = &next_of(link)->listed_next;
    /* release [list-whole] */
    filch_store_release(link, next_of(&pool->listed_next));
    filch_lock_release(&lock);
}

bool filch_listed_has_many(void)
{
    filch_lock_acquire(&lock);
    filch_pool *pool = next_of(&first);
    while (pool && (pool->worker_count < 2 || !filch_pool_is_used(pool)))
        pool = next_of(&pool->listed_next);
    filch_lock_release(&lock);
    return pool != NULL;
}

filch_pool *filch_listed_next(void)
{
    filch_lock_acquire(&lock);
    filch_pool *next = next_of(visited ? &visited->listed_next : &first);
    visited = next;
    /* relaxed: under the lock. */
    filch_fetch_add_relaxed(&visits, 1);
    bool is_awaited = awaiting > 0;
    filch_lock_release(&lock);
    if (is_awaited)
        filch_futex_wake(&visits, INT_MAX);
    return next;
}

void filch_listed_forked(void)
{
    filch_lock_init(&lock);
    visited = NULL;
    awaiting = 0;
}
