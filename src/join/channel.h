/* SPDX-License-Identifier: MIT */
/*
 * What channel.c and select.c share: a channel under its lock, and a hand-over that is completed after it.
 */
#ifndef FILCH_JOIN_CHANNEL_H
#define FILCH_JOIN_CHANNEL_H

#include "join/wait.h"

#include <filch/channel.h>

struct filch_channel {
    filch_lock lock;
    bool is_closed;
    size_t entry_bytes; /* constant, as is capacity */
    size_t capacity;
    size_t first, count; /* the entries are first, first + 1, ... modulo capacity */
    filch_waiters senders, receivers;
    unsigned char entries[] __attribute__((aligned(16)));
};

/* Added to the outcome of a wait that ends because the channel was closed. */
#define FILCH_OUTCOME_CLOSED 1024u

/* What is left to do when the lock is released: the waiter was claimed, so it and its memory wait for us. */
typedef struct filch_handover {
    filch_waiter *waiter; /* NULL: nothing */
    void *to;             /* NULL: it was copied under the lock */
    const void *from;
    size_t bytes;
} filch_handover;

/* Under the lock. 0; -EPIPE it is closed; -EAGAIN it is full, or empty: then nothing has happened. */
int filch_channel_put(filch_channel *channel, const void *entry, filch_handover *handover);
int filch_channel_get(filch_channel *channel, void *entry, filch_handover *handover);

/* Without the lock; the channel may be gone. */
void filch_handover_finish(filch_handover *handover, filch_wakes *wakes);

#endif
