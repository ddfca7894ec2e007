/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the tests of locks and signals. WAITERS counts the waiting tasks and threads in the
 * list of the object.
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

/* relaxed: no other thread changes the state any more. */
#define WORD(object) filch_load_relaxed(&(object)->state)

/* Shared by the tasks of a test. */
typedef struct shared {
    filch_mutex mutex;
    filch_rwlock rwlock;
    filch_cond cond;
    filch_sem sem;
    filch_event event, gate;
    filch_barrier barrier;
    filch_once once;
    uint64_t deadline_ns; /* of the waits with a deadline */
    uint64_t plain;       /* protected by a lock */
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
