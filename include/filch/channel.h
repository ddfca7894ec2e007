/* SPDX-License-Identifier: MIT */
/*
 * Channels carry values from task to task, first in, first out. Select waits for the first of
 * several events.
 *
 *     int produce(filch_frame *f, filch_channel *channel)
 *     {
 *         struct item item;
 *         int err = 0;
 *         while (!err && item_next(&item))
 *             err = filch_channel_send(f, channel, &item);      // copies; waits while full
 *         filch_channel_close(channel);                         // no more will be sent
 *         return err;
 *     }
 *
 *     void consume(filch_frame *f, filch_channel *channel)
 *     {
 *         struct item item;
 *         while (filch_channel_receive(f, channel, &item) == 0) // waits while empty; -EPIPE when
 *             item_use(&item);                                  // closed and empty
 *     }
 *
 *     filch_channel *channel;
 *     int err = filch_channel_create(&channel, sizeof(struct item), 16); // room for 16 items
 *
 * Of two channels, the first that is ready, but no later than in a second:
 *
 *     filch_case cases[] = {filch_case_receive(requests, &request),
 *                           filch_case_send(replies, &reply),
 *                           filch_case_time(filch_after_ms(1000))};
 *     int chosen = filch_select(f, cases, 3);
 *     switch (chosen) {
 *     case 0: return cases[0].result ? cases[0].result : serve(&request);
 *     case 1: return cases[1].result;
 *     case 2: return -ETIMEDOUT;
 *     default: return chosen; // -ECANCELED
 *     }
 *
 * Any number of tasks of any pools, and of plain threads, may send and receive. The rules for all
 * calls that wait are in filch/filch.h, "Calls that wait". For channels they mean:
 *
 *   - An entry that was sent is received once. After an error nothing was sent, or received.
 *   - Entries leave in the order in which they went in.
 *   - Without room (capacity 0), waiters on one side are served in the order in which they came.
 *     With room, later callers may overtake a waiter, but only a few times.
 */
#ifndef FILCH_CHANNEL_H
#define FILCH_CHANNEL_H

#include <filch/sync.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct filch_channel filch_channel;

/*
 * Create a channel with room for `capacity` entries of `entry_bytes` each. With capacity 0, a send
 * waits until a receiver takes its entry.
 *
 * Returns 0; -ENOMEM; -EINVAL: entry_bytes is 0, or the size of all entries overflows.
 */
FILCH_API int filch_channel_create(filch_channel **channel, size_t entry_bytes, size_t capacity);

/*
 * Free the channel and the entries left in it. No task or thread may use it any more, or wait for
 * it. NULL does nothing.
 *
 * A task that has received the last entry, or got -EPIPE, may destroy the channel at once. The task
 * that sent that entry, or closed the channel, no longer touches it, even if its call has not
 * returned. The exception is a filch_select with this channel in more than one case.
 */
FILCH_API void filch_channel_destroy(filch_channel *channel);

/* Send a copy of *entry; waits while the channel is full. Returns 0; -EPIPE: the channel is closed;
 * -ECANCELED, -ETIMEDOUT, -ENOMEM as all calls that wait; -EINVAL: an argument is NULL. */
FILCH_API int filch_channel_send(filch_frame *f, filch_channel *channel, const void *entry);
FILCH_API int filch_channel_send_until(filch_frame *f, filch_channel *channel, const void *entry,
                                       uint64_t deadline_ns);

/* Receive the oldest entry into *entry; waits while the channel is empty. Returns 0; -EPIPE: the
 * channel is closed, and all that was sent has been received; -ECANCELED, -ETIMEDOUT, -ENOMEM,
 * -EINVAL as above. */
FILCH_API int filch_channel_receive(filch_frame *f, filch_channel *channel, void *entry);
FILCH_API int filch_channel_receive_until(filch_frame *f, filch_channel *channel, void *entry,
                                          uint64_t deadline_ns);

/* The same without waiting: -EAGAIN if the channel is full, or empty. */
FILCH_API int filch_channel_try_send(filch_channel *channel, const void *entry);
FILCH_API int filch_channel_try_receive(filch_channel *channel, void *entry);

/* Close the channel. Pending and later sends return -EPIPE. Entries in the channel can still be
 * received; pending receives that get none of them return -EPIPE. May be called any number of
 * times. */
FILCH_API void filch_channel_close(filch_channel *channel);

/* How many entries are in the channel now. */
FILCH_API size_t filch_channel_count(filch_channel *channel);

/* ---- select ---------------------------------------------------------------------------------- */

struct filch_future;

typedef enum filch_case_kind {
    FILCH_CASE_NONE, /* never ready: a case that is switched off */
    FILCH_CASE_SEND,
    FILCH_CASE_RECEIVE,
    FILCH_CASE_FUTURE,
    FILCH_CASE_TIME,
} filch_case_kind;

/* One event to wait for; made by the functions below. */
typedef struct filch_case {
    filch_case_kind kind;
    int result; /* of the chosen case: as returned by a plain send, receive or get */
    union {
        filch_channel *channel;
        struct filch_future *future;
        uint64_t deadline_ns;
    };
    void *entry; /* sent from here, or received to here */
} filch_case;

FILCH_API filch_case filch_case_send(filch_channel *channel, const void *entry);
FILCH_API filch_case filch_case_receive(filch_channel *channel, void *entry);
FILCH_API filch_case filch_case_future(struct filch_future *future);
FILCH_API filch_case filch_case_time(uint64_t deadline_ns);

/*
 * Wait until one of the cases is ready, carry it out and set its `result`. If several are ready,
 * one is chosen at random. The others have no effect.
 *
 *     send, receive   an entry was transferred (0), or the channel is closed (-EPIPE)
 *     future          it is complete: its error; filch_future_try_get has its value
 *     time            the deadline has passed: 0
 *
 * A channel may be in several cases, also both to send and to receive. A select does not exchange
 * an entry with itself, but with another select.
 *
 * Returns the index of the case, or -ECANCELED, -ENOMEM; -EINVAL: there are more than 64 cases, or
 * all are FILCH_CASE_NONE, or one has a NULL.
 */
FILCH_API int filch_select(filch_frame *f, filch_case *cases, unsigned count);

/* The same without waiting: -EAGAIN if no case is ready. */
FILCH_API int filch_select_try(filch_case *cases, unsigned count);

#ifdef __cplusplus
}
#endif

#endif
