/* SPDX-License-Identifier: MIT */
/*
 * Channels: values from task to task, first in, first out; and select, which waits for the first of several things.
 *
 *     filch_channel *channel;
 *     int err = filch_channel_create(&channel, sizeof(struct item), 16);     room for 16; 0: sender and receiver meet
 *
 *     err = filch_channel_send(f, channel, &item);                           copies it; waits while the channel is full
 *     filch_channel_close(channel);                                          no more will be sent
 *
 *     while (filch_channel_receive(f, channel, &item) == 0)                  waits while it is empty, ends when it is closed
 *         use(&item);
 *     filch_channel_destroy(channel);
 *
 * and of two channels, whatever comes first, but no longer than a second:
 *
 *     filch_case cases[] = {filch_case_receive(requests, &request), filch_case_send(replies, &reply),
 *                           filch_case_time(filch_after_ms(1000))};
 *     switch (filch_select(f, cases, 3)) {
 *     case 0: if (cases[0].result == 0) serve(&request); break;
 *     case 1: ...
 *     case 2: return -ETIMEDOUT;
 *     default: return -ECANCELED;
 *     }
 *
 * Any number of senders and receivers: tasks of any pool, and plain threads, which pass NULL as handle. The conventions of filch/wait.h hold. An
 * entry that was sent is received once; after an error nothing was sent, or received. Who need not wait is not cancelled. Entries leave in the order in which they
 * went in. Of those who wait on one side of a channel without room, who came first is first; where there is room, somebody who comes later may be faster, a few times.
 */
#ifndef FILCH_CHANNEL_H
#define FILCH_CHANNEL_H

#include <filch/sync.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct filch_channel filch_channel;

/* 0; -ENOMEM; -EINVAL no channel of this size can be: an entry has no bytes, or all together have more than there are. */
FILCH_API int filch_channel_create(filch_channel **channel, size_t entry_bytes, size_t capacity);

/*
 * What is left in it is dropped. Nobody may use it any more, or wait for it. One who has received the last entry, or got -EPIPE, may destroy it at once: those on the other
 * side, who sent that or closed it, do not touch it any more, even if their calls have not returned; but a filch_select that has it in more than one case does. NULL does nothing.
 */
FILCH_API void filch_channel_destroy(filch_channel *channel);

/* 0; -EPIPE it is closed; -ECANCELED, -ETIMEDOUT, -ENOMEM as of all waits (filch/wait.h); -EINVAL there is a NULL. On an error nothing was sent. */
FILCH_API int filch_channel_send(filch_frame *f, filch_channel *channel, const void *entry);
FILCH_API int filch_channel_send_until(filch_frame *f, filch_channel *channel, const void *entry,
                                       uint64_t deadline_ns);

/* 0; -EPIPE it is closed, and all that was sent has been received; -ECANCELED, -ETIMEDOUT, -ENOMEM; -EINVAL there is a NULL. On an error nothing was received. */
FILCH_API int filch_channel_receive(filch_frame *f, filch_channel *channel, void *entry);
FILCH_API int filch_channel_receive_until(filch_frame *f, filch_channel *channel, void *entry,
                                          uint64_t deadline_ns);

/* Without waiting: -EAGAIN where these would. */
FILCH_API int filch_channel_try_send(filch_channel *channel, const void *entry);
FILCH_API int filch_channel_try_receive(filch_channel *channel, void *entry);

/* Those who wait to send, and all who send later, get -EPIPE. What is in it can still be received; who waits to receive gets -EPIPE. Any number of times. */
FILCH_API void filch_channel_close(filch_channel *channel);

/* How many entries are in it now. */
FILCH_API size_t filch_channel_count(filch_channel *channel);

/* ---- select ------------------------------------------------------------------------------------ */

struct filch_future;

typedef enum filch_case_kind {
    FILCH_CASE_NONE, /* never comes: a case that is switched off */
    FILCH_CASE_SEND,
    FILCH_CASE_RECEIVE,
    FILCH_CASE_FUTURE,
    FILCH_CASE_TIME,
} filch_case_kind;

/* One of the things to wait for; made by the functions below. */
typedef struct filch_case {
    filch_case_kind kind;
    int result; /* of the case that was chosen: 0, or what the call would have returned */
    union {
        filch_channel *channel;
        struct filch_future *future;
        uint64_t deadline_ns;
    };
    void *entry; /* sent from, or received to */
} filch_case;

FILCH_API filch_case filch_case_send(filch_channel *channel, const void *entry);
FILCH_API filch_case filch_case_receive(filch_channel *channel, void *entry);
FILCH_API filch_case filch_case_future(struct filch_future *future);
FILCH_API filch_case filch_case_time(uint64_t deadline_ns);

/*
 * Wait until one of the cases can be done, and do that one: an entry is sent or received (or the channel found closed: result is -EPIPE), a future is
 * complete (result is its error; filch_future_try_get has its value), a time has come. If several can, one at random. The others have not happened.
 *
 * A channel may be in several cases, also to send and to receive: a select does not meet itself, but it meets another. Returns the number of the case, or -ECANCELED, -ENOMEM;
 * -EINVAL there is no case but those of FILCH_CASE_NONE, or more than 64, or a NULL in one.
 */
FILCH_API int filch_select(filch_frame *f, filch_case *cases, unsigned count);

/* The same without waiting: -EAGAIN where it would. */
FILCH_API int filch_select_try(filch_case *cases, unsigned count);

#ifdef __cplusplus
}
#endif

#endif
