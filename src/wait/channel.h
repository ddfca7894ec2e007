/* SPDX-License-Identifier: MIT */
/*
 * Shared by channel.c and select.c: a channel under its lock, and a hand-over that is finished
 * after the lock is released.
 */
#ifndef FILCH_WAIT_CHANNEL_H
#define FILCH_WAIT_CHANNEL_H

#include "wait/wait.h"

#include <filch/channel.h>

struct filch_channel {
    filch_lock lock;
    bool is_closed;
    bool sender_tries, receiver_tries; /* a waiter was nudged, and has not had the lock since */
    size_t capacity;                   /* constant, as is entry_bytes */
    size_t first, count;               /* the entries are first, first + 1, ... modulo capacity */
    filch_waiters senders, receivers;
    size_t entry_bytes;
    unsigned char entries[] __attribute__((aligned(16)));
};

/* Added to the outcome of a wait that ends because the channel was closed. */
#define FILCH_OUTCOME_CLOSED 1024u

/* Work for after the lock is released: finish the waits that were claimed, and resume strands that
 * were nudged. A claimed waiter's memory stays until its wait is finished. */
typedef struct filch_handover {
    filch_waiter *waiter; /* NULL: nothing */
    void *to;             /* NULL: the entry was copied under the lock */
    const void *from;
    size_t bytes;
    filch_waiter *more; /* more claimed waiters, linked by next; copied under the lock */
    filch_wakes nudged;
} filch_handover;

/* How hard to try. */
typedef enum filch_effort {
    FILCH_EFFORT_PATIENT, /* rather wait than claim a waiter that was nudged */
    FILCH_EFFORT_ALL,
} filch_effort;

/* Send, or receive. Under the lock. Returns 0; -EPIPE: the channel is closed; -EAGAIN: it is full,
 * or empty, and nothing has happened. */
int filch_channel_put(filch_channel *channel, const void *entry, filch_effort effort,
                      filch_handover *handover);
int filch_channel_get(filch_channel *channel, void *entry, filch_effort effort,
                      filch_handover *handover);

/* Finish the hand-over: the waiters go on. Without the lock; the channel may be gone. */
void filch_handover_finish(filch_handover *handover);

#endif
