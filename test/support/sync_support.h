/* SPDX-License-Identifier: MIT */
/*
 * What the tests of locks and signals share. That somebody waits is seen in the list it stands in.
 */
#ifndef FILCH_TEST_SYNC_SUPPORT_H
#define FILCH_TEST_SYNC_SUPPORT_H

#include "wait/sync/sync.h"

#include "pools.h"

#include <filch/future.h>

static TEST_UNUSED unsigned count_waiters(filch_atomic_u32 *lock, filch_list *list)
{
    unsigned count = 0;

    filch_lock_acquire((filch_lock *)lock);
    for (filch_waiter *waiter = list->first; waiter; waiter = waiter->next)
        count++;
    filch_lock_release((filch_lock *)lock);
    return count;
}

#define WAITERS(object) count_waiters(&(object)->lock, &(object)->waiters)

/* relaxed: nobody is left who changes it. */
#define WORD(object) filch_load_relaxed(&(object)->state)

/* What tasks of a test share. */
typedef struct shared {
    filch_mutex mutex;
    filch_rwlock rwlock;
    filch_cond cond;
    filch_sem sem;
    filch_event event, gate;
    filch_barrier barrier;
    filch_once once;
    uint64_t deadline_ns; /* of those who wait until then */
    uint64_t plain;       /* what a lock protects */
    counter a, b, c;
} shared;

static TEST_UNUSED shared *new_shared(void)
{
    shared *s = calloc(1, sizeof *s);
    CHECK(s);
    s->deadline_ns = FILCH_NO_DEADLINE;
    return s;
}

#endif
