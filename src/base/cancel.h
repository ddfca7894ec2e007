/* SPDX-License-Identifier: MIT */
/*
 * Cancellation by pthread_cancel. A call that holds a lock or memory must not be cancelled when it
 * joins a thread or reads a file.
 */
#ifndef FILCH_BASE_CANCEL_H
#define FILCH_BASE_CANCEL_H

#include <pthread.h>

/* Returns what the calling thread restores at the end of the call. */
static inline int filch_cancel_disable(void)
{
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void filch_cancel_restore(int before)
{
    pthread_setcancelstate(before, NULL);
}

#endif
