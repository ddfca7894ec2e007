/* SPDX-License-Identifier: MIT */
/*
 * What future.c and select.c share: a future's lock, its waiters, and whether it is complete.
 *
 * There are no ordered operations here. Whoever finds a future complete takes its lock before it looks at the value: it needs to know that the one who completed it has let go of it,
 * and [lock-passed] carries the value.
 */
#ifndef FILCH_WAIT_FUTURE_H
#define FILCH_WAIT_FUTURE_H

#include "wait/wait.h"

#include <filch/future.h>

enum filch_future_state { FILCH_FUTURE_PENDING, FILCH_FUTURE_READY };

static inline filch_lock *filch_future_lock(filch_future *future)
{
    return (filch_lock *)&future->lock;
}

/* Under the lock. */
static inline filch_waiters *filch_future_waiters(filch_future *future)
{
    return (filch_waiters *)&future->waiters;
}

static inline bool filch_future_is_ready(filch_future *future)
{
    /* relaxed: as above. */
    return filch_load_relaxed(&future->state) == FILCH_FUTURE_READY;
}

#endif
