/* SPDX-License-Identifier: MIT */
/*
 * A ring of entries, and two lists, of those who wait to send and to receive, under one lock of four bytes.
 *
 *                 senders wait            entries               receivers wait
 *     open        only when it is full    0 ... capacity        only when it is empty
 *     closed      none                    0 ... capacity        none
 *
 * A sender looks for a receiver that waits, then for room, then waits; a receiver looks for an entry, then for a sender that waits, then waits. So, but for
 * waits that have ended and are not off the list yet, never both lists have somebody in them who could have met the other. (Both ends of one select can: it does not meet
 * itself. select.c.)
 *
 * A hand-over has three steps:
 *
 *     under the lock    take the waiter off the list and claim its wait: neither its deadline nor a cancellation can end it now
 *     after it          copy the entry between the two, from stack to stack
 *                       finish the wait, and resume it
 *
 * If the claim fails the wait has ended otherwise, nothing was copied, and the next waiter's turn comes. So an entry that is sent is received once, and a sender that
 * gets an error has sent nothing. The channel is not touched after the lock is released: whoever has received the last entry, or
 * was told that the channel is closed, may destroy it, even if the other side has not returned yet.
 *
 * There are no ordered operations here: the lock [lock-passed] and the wait [strand-waits, wait-ended] carry everything.
 */
#include "join/channel.h"

#include "base/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries are small, and their size is known to the caller only: a call for it would take longer than the copy. */
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

/* ---- under the lock ---------------------------------------------------------------------------- */

static void *entry_at(filch_channel *channel, size_t offset)
{
    /* Neither is more than capacity, and a size in bytes does not overflow: so twice that many entries do not, either. */
    size_t index = channel->first + offset;
    return channel->entries +
           channel->entry_bytes * (index < channel->capacity ? index : index - channel->capacity);
}

int filch_channel_put(filch_channel *channel, const void *entry, filch_handover *handover)
{
    if (channel->is_closed)
        return -EPIPE;
    filch_waiter *receiver = filch_waiters_claim(&channel->receivers);
    if (receiver) {
        *handover = (filch_handover){receiver, receiver->data, entry, channel->entry_bytes};
        return 0;
    }
    if (channel->count == channel->capacity)
        return -EAGAIN;
    copy(entry_at(channel, channel->count), entry, channel->entry_bytes);
    channel->count++;
    return 0;
}

int filch_channel_get(filch_channel *channel, void *entry, filch_handover *handover)
{
    filch_waiter *sender = filch_waiters_claim(&channel->senders);

    if (channel->count == 0) {
        if (!sender)
            return channel->is_closed ? -EPIPE : -EAGAIN;
        *handover = (filch_handover){sender, entry, sender->data, channel->entry_bytes};
        return 0;
    }
    void *first = entry_at(channel, 0);
    copy(entry, first, channel->entry_bytes);
    channel->first = channel->first + 1 < channel->capacity ? channel->first + 1 : 0;
    if (sender) {
        /* It was full: what the sender brings is the newest, and there is room where the oldest was. */
        copy(first, sender->data, channel->entry_bytes);
        *handover = (filch_handover){.waiter = sender};
    } else {
        channel->count--;
    }
    return 0;
}

void filch_handover_finish(filch_handover *handover, filch_wakes *wakes)
{
    filch_waiter *waiter = handover->waiter;

    if (!waiter)
        return;
    if (handover->to)
        copy(handover->to, handover->from, handover->bytes);
    filch_waiting_finish(waiter->waiting, waiter->outcome, wakes);
}

/* ---- send and receive -------------------------------------------------------------------------- */

/* Wait in one of the lists. The lock is held, and released here. */
static int wait_in(filch_waiters *list, filch_channel *channel, filch_slot *f, void *entry,
                   uint64_t deadline_ns, const char *at)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting, .data = entry};

    filch_waiting_begin(&waiting, f, at);
    filch_waiters_push(list, &waiter);
    filch_lock_release(&channel->lock);
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome >= 0)
        return (unsigned)outcome & FILCH_OUTCOME_CLOSED ? -EPIPE : 0;
    filch_lock_acquire(&channel->lock);
    filch_waiters_remove(list, &waiter);
    filch_lock_release(&channel->lock);
    return outcome;
}

int filch_channel_try_send(filch_channel *channel, const void *entry)
{
    filch_handover handover = {.waiter = NULL};
    filch_wakes wakes = {NULL, NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_put(channel, entry, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover, &wakes);
    filch_wakes_go(&wakes);
    return err;
}

int filch_channel_send_until(filch_slot *f, filch_channel *channel, const void *entry,
                             uint64_t deadline_ns)
{
    filch_handover handover = {.waiter = NULL};
    filch_wakes wakes = {NULL, NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_put(channel, entry, &handover);
    if (err == -EAGAIN)
        return wait_in(&channel->senders, channel, f, (void *)entry, deadline_ns, "sending");
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover, &wakes);
    filch_wakes_go(&wakes);
    return err;
}

int filch_channel_send(filch_slot *f, filch_channel *channel, const void *entry)
{
    return filch_channel_send_until(f, channel, entry, FILCH_NEVER_NS);
}

int filch_channel_try_receive(filch_channel *channel, void *entry)
{
    filch_handover handover = {.waiter = NULL};
    filch_wakes wakes = {NULL, NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_get(channel, entry, &handover);
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover, &wakes);
    filch_wakes_go(&wakes);
    return err;
}

int filch_channel_receive_until(filch_slot *f, filch_channel *channel, void *entry,
                                uint64_t deadline_ns)
{
    filch_handover handover = {.waiter = NULL};
    filch_wakes wakes = {NULL, NULL};

    if (!channel || !entry)
        return -EINVAL;
    filch_lock_acquire(&channel->lock);
    int err = filch_channel_get(channel, entry, &handover);
    if (err == -EAGAIN)
        return wait_in(&channel->receivers, channel, f, entry, deadline_ns, "receiving");
    filch_lock_release(&channel->lock);
    filch_handover_finish(&handover, &wakes);
    filch_wakes_go(&wakes);
    return err;
}

int filch_channel_receive(filch_slot *f, filch_channel *channel, void *entry)
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

/* ---- close ------------------------------------------------------------------------------------- */

/* Claim all of the list, and put them before `claimed`. */
static filch_waiter *claim_all(filch_waiters *list, filch_waiter *claimed)
{
    for (filch_waiter *waiter; (waiter = filch_waiters_claim(list)); claimed = waiter)
        waiter->next = claimed;
    return claimed;
}

void filch_channel_close(filch_channel *channel)
{
    filch_wakes wakes = {NULL, NULL};

    if (!channel)
        return;
    filch_lock_acquire(&channel->lock);
    channel->is_closed = true;
    filch_waiter *claimed = claim_all(&channel->receivers, claim_all(&channel->senders, NULL));
    filch_lock_release(&channel->lock);
    for (filch_waiter *next; claimed; claimed = next) {
        next = claimed->next; /* it is gone when it is finished */
        filch_waiting_finish(claimed->waiting, claimed->outcome | FILCH_OUTCOME_CLOSED, &wakes);
    }
    filch_wakes_go(&wakes);
}
