/* SPDX-License-Identifier: MIT */
/*
 * A ring of entries and two lists of waiters, senders and receivers, under one lock of four bytes.
 *
 *                 senders wait            entries               receivers wait
 *     open        when it is full         0 ... capacity        when it is empty
 *     closed      none                    0 ... capacity        none
 *
 * There are two ways to let a waiter go on.
 *
 * A hand-over has three steps:
 *
 *     1. Under the lock: remove the waiter from the list and claim its wait. From then on neither
 *        its deadline nor a cancellation can end the wait.
 *     2. Copy the entry. Between two stacks: after the lock is released. Between a stack and the
 *        ring: before.
 *     3. After the lock is released: finish the wait, and resume the waiter.
 *
 * If the claim fails, the wait has ended otherwise: nothing was copied, and the next waiter is
 * tried. So an entry that is sent is received once, and a sender that gets an error has sent
 * nothing. No call touches the channel after it has released the lock. So a caller that has
 * received the last entry, or learned that the channel is closed, may destroy the channel. The call
 * of the other side may not have returned yet.
 *
 * A nudge (strand/wait_word.h) is for crowds. If many strands wait, a hand-over per entry is a
 * switch per entry. So if there is a ring, and more than one strand waits, the entries go through
 * the ring, and one of the waiters is nudged. When the nudged waiter goes on, it acquires the lock
 * and finds all entries, or all the room, that have accumulated. Until then no other waiter of its
 * side is nudged. Then the next waiter is nudged, if there is still something for it:
 *
 *     entries in the ring and receivers in the list imply receiver_tries,
 *     room in the ring and senders in the list imply sender_tries           (settle)
 *
 * A nudged waiter may come too late, since others need not wait for it. Then it waits again, first
 * in the list; after TRIES_MAX times it gets a hand-over. If the ring has nothing for a caller that
 * cannot wait, that caller claims nudged waiters, too. So does a thread, for which a wait costs
 * more than the switch of a strand.
 *
 * There are no ordered operations here: the lock [lock-passed] and the wait [strand-waits,
 * wait-ended] carry everything.
 */
#include "wait/channel.h"

#include "base/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries are small, and only the caller knows their size: a call of memcpy would take longer than
 * the copy. */
static inline void copy(void *to, const void *from, size_t bytes)
{
    switch (bytes) {
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 16:
        memcpy(to, from, 16);
        break;
    case 24:
        memcpy(to, from, 24);
        break;
    case 32:
        memcpy(to, from, 32);
        break;
    default:
        memcpy(to, from, bytes);
    }
}

int filch_channel_create(filch_channel **out, size_t entry_bytes, size_t capacity)
{
    size_t bytes;

    if (!out || entry_bytes == 0 || __builtin_mul_overflow(entry_bytes, capacity, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(filch_channel), &bytes) || bytes > PTRDIFF_MAX)
        return -EINVAL;
    filch_channel *channel = filch_fault(FILCH_FAULT_MALLOC) ? NULL : malloc(bytes);
    if (!channel)
        return -ENOMEM;
    *channel = (filch_channel){.entry_bytes = entry_bytes, .capacity = capacity};
    *out = channel;
    return 0;
}

void filch_channel_destroy(filch_channel *channel)
{
    free(channel);
}

/* ---- under the lock -------------------------------------------------------------------------- */

static inline void *entry_at(filch_channel *channel, size_t offset)
{
    /* Neither is more than capacity. All entries have fewer than PTRDIFF_MAX bytes, so the sum of
     * both does not overflow. */
    size_t index = channel->first + offset;
    return channel->entries +
           channel->entry_bytes * (index < channel->capacity ? index : index - channel->capacity);
}

static inline void push(filch_channel *channel, const void *entry)
{
    copy(entry_at(channel, channel->count), entry, channel->entry_bytes);
    channel->count++;
}

static inline void pop(filch_channel *channel, void *entry)
{
    copy(entry, entry_at(channel, 0), channel->entry_bytes);
    channel->first = channel->first + 1 < channel->capacity ? channel->first + 1 : 0;
    channel->count--;
}

/* Claim the first waiter whose wait is still open. `tries` is that of the same side. NULL: there is
 * none, and the list is empty. */
static filch_waiter *claim(filch_waiters *list, bool *tries)
{
    filch_waiter *waiter = filch_waiters_claim(list);

    if (waiter && waiter->is_nudged)
        *tries = false;
    return waiter;
}

/* Whether to nudge the first waiter. A waiter that is alone, or was nudged in vain too often, gets
 * a hand-over instead. */
static bool shall_try(const filch_waiters *list)
{
    return list->first && list->first != list->last && list->first->may_try;
}

static void nudge_first(filch_waiters *list, bool *tries, filch_handover *handover)
{
    filch_waiter *waiter = list->first;

    waiter->is_nudged = *tries = filch_waiting_nudge(waiter->waiting, &handover->nudged);
    if (!waiter->is_nudged)
        filch_waiters_remove(list, waiter); /* its wait has ended otherwise */
}

static void add_served(filch_handover *handover, filch_waiter *waiter)
{
    waiter->next = handover->more;
    handover->more = waiter;
}

/* If there is room, or an entry, for waiters, hand over to one or nudge one. False: there is
 * nothing for them. */
static bool settle_senders(filch_channel *channel, filch_handover *handover)
{
    if (channel->is_closed || channel->sender_tries || channel->count == channel->capacity ||
        !channel->senders.first)
        return false;
    if (shall_try(&channel->senders)) {
        nudge_first(&channel->senders, &channel->sender_tries, handover);
        return true;
    }
    filch_waiter *sender = claim(&channel->senders, &channel->sender_tries);
    if (sender) {
        push(channel, sender->data);
        add_served(handover, sender);
    }
    return true;
}

static bool settle_receivers(filch_channel *channel, filch_handover *handover)
{
    if (channel->receiver_tries || channel->count == 0 || !channel->receivers.first)
        return false;
    if (shall_try(&channel->receivers)) {
        nudge_first(&channel->receivers, &channel->receiver_tries, handover);
        return true;
    }
    filch_waiter *receiver = claim(&channel->receivers, &channel->receiver_tries);
    if (receiver) {
        pop(channel, receiver->data);
        add_served(handover, receiver);
    }
    return true;
}

/* Whether each side has no waiter, or one that was nudged and has not tried yet. */
static inline bool is_calm(const filch_channel *channel)
{
    return (!channel->senders.first || channel->sender_tries) &&
           (!channel->receivers.first || channel->receiver_tries);
}

static void settle(filch_channel *channel, filch_handover *handover)
{
    while (settle_senders(channel, handover) || settle_receivers(channel, handover))
        ;
}

int filch_channel_put(filch_channel *channel, const void *entry, filch_effort effort,
                      filch_handover *handover)
{
    filch_waiter *receiver;

    if (channel->is_closed)
        return -EPIPE;
    if (channel->count == 0 && (channel->capacity == 0 || !shall_try(&channel->receivers)) &&
        (receiver = claim(&channel->receivers, &channel->receiver_tries))) {
        handover->waiter = receiver;
        handover->to = receiver->data;
        handover->from = entry;
        handover->bytes = channel->entry_bytes;
        return 0;
    }
    if (channel->count == channel->capacity) {
        receiver = effort == FILCH_EFFORT_ALL && channel->count > 0
                       ? claim(&channel->receivers, &channel->receiver_tries)
                       : NULL;
        if (!receiver)
            return -EAGAIN;
        pop(channel, receiver->data);
        add_served(handover, receiver);
    }
    push(channel, entry);
    if (!is_calm(channel))
        settle(channel, handover);
    return 0;
}

int filch_channel_get(filch_channel *channel, void *entry, filch_effort effort,
                      filch_handover *handover)
{
    filch_waiter *sender;

    if (channel->count > 0) {
        pop(channel, entry);
    } else {
        bool may_take =
            effort == FILCH_EFFORT_ALL || channel->capacity == 0 || !shall_try(&channel->senders);
        sender = may_take ? claim(&channel->senders, &channel->sender_tries) : NULL;
        if (!sender)
            return channel->is_closed ? -EPIPE : -EAGAIN;
        handover->waiter = sender;
        handover->to = entry;
        handover->from = sender->data;
        handover->bytes = channel->entry_bytes;
    }
    if (!is_calm(channel))
        settle(channel, handover);
    return 0;
}

void filch_handover_finish(filch_handover *handover)
{
    filch_waiter *waiter = handover->waiter;

    if (waiter) {
        if (handover->to)
            copy(handover->to, handover->from, handover->bytes);
        filch_waiting_finish(waiter->waiting, waiter->outcome, &handover->nudged);
    }
    for (filch_waiter *next; handover->more; handover->more = next) {
        next = handover->more->next; /* the waiter is gone when it is finished */
        filch_waiting_finish(handover->more->waiting, handover->more->outcome, &handover->nudged);
    }
    if (handover->nudged.last)
        filch_wakes_go(&handover->nudged);
}

/* ---- send and receive ------------------------------------------------------------------------ */

/* A waiter that was nudged this often in vain gets a hand-over the next time. */
#define TRIES_MAX 3

typedef struct channel_side {
    filch_waiters *list;
    bool *tries;
    bool is_send;
} channel_side;

/* Wait on one side. The lock is held, and released here. */
static int wait_on(const channel_side *side, filch_channel *channel, filch_frame *f, void *entry,
                   uint64_t deadline_ns)
{
    filch_handover handover = {.waiter = NULL};
    int err = -EAGAIN;

    for (int tries = 0; err == -EAGAIN; tries++) {
        filch_waiting waiting;
        filch_waiter waiter = {.waiting = &waiting, .data = entry};

        filch_waiting_begin(&waiting, f, side->is_send ? FILCH_WAITS_SEND : FILCH_WAITS_RECEIVE,
                            channel);
        waiter.may_try = waiting.strand && channel->capacity > 0 && tries < TRIES_MAX;
        if (tries > 0)
            filch_waiters_push_front(side->list, &waiter);
        else
            filch_waiters_push(side->list, &waiter);
        filch_lock_release(&channel->lock);
        int outcome = filch_waiting_wait(&waiting, deadline_ns);
        if (outcome >= 0 && outcome != FILCH_WAIT_TO_TRY)
            return (unsigned)outcome & FILCH_OUTCOME_CLOSED ? -EPIPE : 0;

        filch_lock_acquire(&channel->lock);
        filch_waiters_remove(side->list, &waiter);
        if (waiter.is_nudged)
            *side->tries = false;
        err = outcome != FILCH_WAIT_TO_TRY ? outcome
              : side->is_send ? filch_channel_put(channel, entry, FILCH_EFFORT_PATIENT, &handover)
                              : filch_channel_get(channel, entry, FILCH_EFFORT_PATIENT, &handover);
    }
    /* While this waiter was nudged, no other was: look after them now. */
    settle(channel, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
    return err;
}

int filch_channel_try_send(filch_channel *channel, const void *entry)
{
    filch_handover handover = {.waiter = NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_put(channel, entry, FILCH_EFFORT_ALL, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
    return err;
}

int filch_channel_send_until(filch_frame *f, filch_channel *channel, const void *entry,
                             uint64_t deadline_ns)
{
    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    if (channel->count < channel->capacity && is_calm(channel) && !channel->is_closed) {
        push(channel, entry);
        filch_lock_release(&channel->lock);
        return 0;
    }
    filch_handover handover = {.waiter = NULL};
    int err =
        filch_channel_put(channel, entry, f ? FILCH_EFFORT_PATIENT : FILCH_EFFORT_ALL, &handover);
    if (err == -EAGAIN)
        return wait_on(&(channel_side){&channel->senders, &channel->sender_tries, true}, channel, f,
                       (void *)entry, deadline_ns);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
    return err;
}

int filch_channel_send(filch_frame *f, filch_channel *channel, const void *entry)
{
    return filch_channel_send_until(f, channel, entry, FILCH_NEVER_NS);
}

int filch_channel_try_receive(filch_channel *channel, void *entry)
{
    filch_handover handover = {.waiter = NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_get(channel, entry, FILCH_EFFORT_ALL, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
    return err;
}

int filch_channel_receive_until(filch_frame *f, filch_channel *channel, void *entry,
                                uint64_t deadline_ns)
{
    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    if (channel->count > 0 && is_calm(channel)) {
        pop(channel, entry);
        filch_lock_release(&channel->lock);
        return 0;
    }
    filch_handover handover = {.waiter = NULL};
    int err =
        filch_channel_get(channel, entry, f ? FILCH_EFFORT_PATIENT : FILCH_EFFORT_ALL, &handover);
    if (err == -EAGAIN)
        return wait_on(&(channel_side){&channel->receivers, &channel->receiver_tries, false},
                       channel, f, entry, deadline_ns);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
    return err;
}

int filch_channel_receive(filch_frame *f, filch_channel *channel, void *entry)
{
    return filch_channel_receive_until(f, channel, entry, FILCH_NEVER_NS);
}

size_t filch_channel_count(filch_channel *channel)
{
    if (!channel)
        return 0;
    filch_lock_acquire(&channel->lock);
    size_t count = channel->count;
    filch_lock_release(&channel->lock);
    return count;
}

/* ---- close ----------------------------------------------------------------------------------- */

/* Claim all waiters of the list, to tell them that the channel is closed. */
static void claim_all(filch_waiters *list, bool *tries, filch_handover *handover)
{
    for (filch_waiter *waiter; (waiter = claim(list, tries));) {
        waiter->outcome |= FILCH_OUTCOME_CLOSED;
        add_served(handover, waiter);
    }
}

void filch_channel_close(filch_channel *channel)
{
    filch_handover handover = {.waiter = NULL};
    filch_waiter *receiver;

    if (!channel)
        return;
    filch_lock_acquire(&channel->lock);
    channel->is_closed = true;
    claim_all(&channel->senders, &channel->sender_tries, &handover);
    /* The entries in the channel go to receivers that wait already. */
    while (channel->count > 0 &&
           (receiver = claim(&channel->receivers, &channel->receiver_tries))) {
        pop(channel, receiver->data);
        add_served(&handover, receiver);
    }
    claim_all(&channel->receivers, &channel->receiver_tries, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover);
}
