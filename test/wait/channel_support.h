/* SPDX-License-Identifier: MIT */
/*
 * Channels to test, calls by tasks and by threads, and polling until calls wait.
 */
#ifndef FILCH_TEST_CHANNEL_SUPPORT_H
#define FILCH_TEST_CHANNEL_SUPPORT_H

#include "wait/channel.h"

#include "pools.h"

static TEST_UNUSED filch_channel *channel_of(size_t entry_bytes, size_t capacity)
{
    filch_channel *channel = NULL;
    CHECK(filch_channel_create(&channel, entry_bytes, capacity) == 0);
    return channel;
}

static TEST_UNUSED unsigned length(filch_channel *channel, filch_waiters *list)
{
    unsigned count = 0;
    filch_lock_acquire(&channel->lock);
    for (filch_waiter *waiter = list->first; waiter; waiter = waiter->next)
        count++;
    filch_lock_release(&channel->lock);
    return count;
}

/* Return when `count` calls wait. */
static TEST_UNUSED void until_senders(filch_channel *channel, unsigned count)
{
    UNTIL(length(channel, &channel->senders) == count);
}

static TEST_UNUSED void until_receivers(filch_channel *channel, unsigned count)
{
    UNTIL(length(channel, &channel->receivers) == count);
}

/* One call, made by a task or by a thread. */
typedef struct one_call {
    filch_channel *channel;
    bool is_send;
    int value, result;
    uint64_t deadline_ns;
    counter *ended;
} one_call;

static TEST_UNUSED int do_call(filch_frame *f, void *arg)
{
    one_call *c = arg;
    uint64_t deadline_ns = c->deadline_ns ? c->deadline_ns : FILCH_NO_DEADLINE;

    c->result = c->is_send ? filch_channel_send_until(f, c->channel, &c->value, deadline_ns)
                           : filch_channel_receive_until(f, c->channel, &c->value, deadline_ns);
    if (c->ended)
        counter_add(c->ended, 1);
    return 0;
}

static TEST_UNUSED void *call_on_thread(void *arg)
{
    do_call(NULL, arg);
    return NULL;
}

/* Spawn `count` tasks that receive from the channel, and return when all of them wait. */
static TEST_UNUSED void let_wait(filch_scope *scope, one_call *calls, unsigned count,
                                 filch_channel *channel)
{
    for (unsigned i = 0; i < count; i++) {
        calls[i] = (one_call){.channel = channel, .value = -1};
        assert_int_equal(filch_scope_spawn(NULL, scope, do_call, &calls[i]), 0);
        until_receivers(channel, i + 1);
    }
}

#endif
