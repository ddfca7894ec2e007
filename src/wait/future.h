/* SPDX-License-Identifier: MIT */
/*
 * Shared by future.c and select.c: the lock of a future, its waiters, and whether it is complete.
 *
 * There are no ordered operations here. A caller that finds a future complete acquires its lock
 * before it reads the value. [lock-passed] carries the value, and the caller knows that
 * filch_future_set no longer touches the future.
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
