/* SPDX-License-Identifier: MIT */
/*
 * The mutex of libc in the model: plain data that it does not guard is a race.
 *
 * A thread that finds the mutex held waits for ever, and the checker drops that execution. In
 * another execution, the thread comes when the mutex is free. So there is one execution for each
 * order of holders, and none that differ only in which thread waited. The checker reports a thread
 * that locks the mutex twice and, when the rest is popped, a thread that ended as its holder.
 */
#ifndef VERIFY_CLIENT_MUTEX_H
#define VERIFY_CLIENT_MUTEX_H

#include "mc/mc.h"

#include <filch/atomic.h>
#include <linux/futex.h>
#include <pthread.h>

typedef struct mutex {
    filch_atomic_u32 holder; /* the number of the thread, plus 1; 0: it is free */
    filch_atomic_u32 never;
} mutex;

static int mutex_init(mutex *m)
{
    filch_store_relaxed(&m->holder, 0);
    filch_store_relaxed(&m->never, 0);
    return 0;
}

static void mutex_lock(mutex *m)
{
    static const struct timespec for_ever; /* a wait times out only if the client asks for that */
    uint32_t self = (uint32_t)mc_self() + 1, holder = filch_exchange_acq_rel(&m->holder, self);

    if (holder == 0)
        return;
    mc_check(holder != self, "who holds a mutex does not lock it again");
    mc_check(mc_self() != 0, "threads that have ended hold no mutex");
    mc_futex(&m->never.filch_value, FUTEX_WAIT_PRIVATE, 0, &for_ever);
}

static void mutex_unlock(mutex *m)
{
    mc_check(filch_exchange_acq_rel(&m->holder, 0) != 0, "somebody held the mutex");
}

#define pthread_mutex_init(m, attributes) mutex_init((mutex *)(m))
#define pthread_mutex_lock(m) mutex_lock((mutex *)(m))
#define pthread_mutex_unlock(m) mutex_unlock((mutex *)(m))
#define pthread_mutex_destroy(m) ((void)(m))

#endif
