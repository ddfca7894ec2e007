/* SPDX-License-Identifier: MIT */
/*
 * Channels and select, used by threads: each entry arrives once, with its data, and no thread waits
 * while there is an entry or room for it.
 *
 * Senders and receivers meet in a channel without room, or with room for one entry. Some time out,
 * some select. Entries are pointers to plain memory. The thread that gets the last entry, or learns
 * that the channel is closed, destroys the channel. The other side may not have returned yet.
 */
#include <filch/channel.h>
#include <filch/future.h>

#include "mc/mc.h"

#include <errno.h>
#include <stdlib.h>

/* A thread's clock comes this far only by a time-out. */
#define DEADLINE_NS 1000000000u

static filch_channel *channel, *other;
static filch_future *future;
static int payload[3];  /* plain: the data of the entries */
static int received[3]; /* plain: written by one thread, read after its join */
static filch_atomic_u32 sent_count, received_count;

static void make(size_t capacity)
{
    mc_check(filch_channel_create(&channel, sizeof(int *), capacity) == 0, "a channel is created");
    mc_check(filch_channel_create(&other, sizeof(int *), capacity) == 0, "a channel is created");
    future = calloc(1, sizeof *future);
    filch_future_init(future);
}

static void setup_meeting(void)
{
    make(0);
}

static void setup_room(void)
{
    make(1);
}

/* ---- to send --------------------------------------------------------------------------------- */

static void send_to(filch_channel *to, int which)
{
    int *entry = &payload[which];

    payload[which] = 1;
    mc_check(filch_channel_send(NULL, to, &entry) == 0, "an entry is sent");
    filch_fetch_add_relaxed(&sent_count, 1);
}

static void send_one(void)
{
    send_to(channel, mc_self() - 1);
}

static void send_two(void)
{
    send_to(channel, 0);
    send_to(channel, 1);
}

static void send_to_other(void)
{
    send_to(other, mc_self() - 1);
}

static void send_in_time(void)
{
    const int which = mc_self() - 1;
    int *entry = &payload[which];

    payload[which] = 1;
    int err = filch_channel_send_until(NULL, channel, &entry, DEADLINE_NS);
    mc_check(err == 0 || err == -ETIMEDOUT || err == -EPIPE, "an entry is sent, or not");
    if (err == 0)
        filch_fetch_add_relaxed(&sent_count, 1);
}

static void close_channel(void)
{
    filch_channel_close(channel);
}

static void set_future(void)
{
    payload[mc_self() - 1] = 1;
    filch_future_set(future, &payload[mc_self() - 1], 0);
}

/* ---- to receive ------------------------------------------------------------------------------ */

static void check_entry(const int *entry)
{
    mc_check(*entry == 1, "what was written before it was sent comes with it");
    received[entry - payload]++;
    filch_fetch_add_relaxed(&received_count, 1);
}

static void receive_one(void)
{
    int *entry;

    mc_check(filch_channel_receive(NULL, channel, &entry) == 0, "an entry is received");
    check_entry(entry);
}

static void receive_and_destroy(void)
{
    receive_one();
    filch_channel_destroy(channel);
}

static void receive_two_and_destroy(void)
{
    receive_one();
    receive_and_destroy();
}

static void receive_all(void)
{
    int *entry, err;

    while ((err = filch_channel_receive(NULL, channel, &entry)) == 0)
        check_entry(entry);
    mc_check(err == -EPIPE, "the channel is closed");
}

static void receive_in_time(void)
{
    int *entry, err = filch_channel_receive_until(NULL, channel, &entry, DEADLINE_NS);

    mc_check(err == 0 || err == -ETIMEDOUT || err == -EPIPE, "an entry is received, or not");
    if (err == 0)
        check_entry(entry);
}

static void receive_in_time_and_close(void)
{
    receive_in_time();
    close_channel();
}

/* ---- to select ------------------------------------------------------------------------------- */

static void receive_either(void)
{
    int *entries[2];
    filch_case cases[] = {filch_case_receive(channel, &entries[0]),
                          filch_case_receive(other, &entries[1])};

    for (int i = 0; i < 2; i++) {
        int chosen = filch_select(NULL, cases, 2);
        mc_check(chosen >= 0 && cases[chosen].result == 0, "one of the cases is done");
        check_entry(entries[chosen]);
    }
}

/* Two selects that meet: one sends, the other receives, by either channel. */
static void select_to_send(void)
{
    int *entry = &payload[0];
    filch_case cases[] = {filch_case_send(channel, &entry), filch_case_send(other, &entry)};

    payload[0] = 1;
    int chosen = filch_select(NULL, cases, 2);
    mc_check(chosen >= 0 && cases[chosen].result == 0, "one of the cases is done");
    filch_fetch_add_relaxed(&sent_count, 1);
}

static void select_to_receive(void)
{
    int *entries[2];
    filch_case cases[] = {filch_case_receive(other, &entries[0]),
                          filch_case_receive(channel, &entries[1])};
    int chosen = filch_select(NULL, cases, 2);

    mc_check(chosen >= 0 && cases[chosen].result == 0, "one of the cases is done");
    check_entry(entries[chosen]);
}

/* The future is completed in any case, and then belongs to this thread alone. */
static void select_future(void)
{
    int *entry;
    void *value;
    filch_case cases[] = {filch_case_receive(channel, &entry), filch_case_future(future)};
    int chosen = filch_select(NULL, cases, 2);

    mc_check(chosen >= 0 && cases[chosen].result == 0, "one of the cases is done");
    if (chosen == 0)
        check_entry(entry);
    else
        receive_one();
    mc_check(filch_future_get(NULL, future, &value) == 0 && *(int *)value == 1,
             "the future is complete");
    free(future);
}

static void await_any_and_free(void)
{
    filch_future *futures[] = {future};

    mc_check(filch_future_wait_any(NULL, futures, 1, FILCH_NO_DEADLINE) == 0,
             "one of the futures is complete");
    free(future);
}

static void select_in_time(void)
{
    int *entry;
    filch_case cases[] = {filch_case_receive(channel, &entry), filch_case_time(DEADLINE_NS)};
    int chosen = filch_select(NULL, cases, 2);

    mc_check(chosen >= 0, "one of the cases is done");
    if (chosen == 0 && cases[0].result == 0)
        check_entry(entry);
    close_channel();
}

/* ---- programs -------------------------------------------------------------------------------- */

static void finish(void)
{
    for (int i = 0; i < 3; i++)
        mc_check(received[i] <= 1, "an entry is received once");
    mc_check(filch_load_relaxed(&received_count) == filch_load_relaxed(&sent_count),
             "what was sent is received, and nothing else");
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    /* All spins in the library are bounded, and may end without news. */
    options.spins = MC_ALWAYS;
    mc_options timed = options;
    timed.timeouts = 1;
    const mc_options two = mc_bounded(options, 2, 1), timed_one = mc_bounded(timed, 1, 1),
                     timed_two = mc_bounded(timed, 2, 1);
    const struct {
        mc_program program;
        const mc_options *options;
    } programs[] = {
        {{"channel, meeting", setup_meeting, {send_one, receive_and_destroy}, finish}, &options},
        {{"channel, room", setup_room, {send_two, receive_two_and_destroy}, finish}, &options},
        {{"channel, two", setup_meeting, {send_two, receive_two_and_destroy}, finish}, &two},
        {{"channel, senders", setup_meeting, {send_one, send_one, receive_two_and_destroy}, finish},
         &two},
        {{"channel, senders, room",
          setup_room,
          {send_one, send_one, receive_two_and_destroy},
          finish},
         &two},
        {{"channel, closed", setup_meeting, {close_channel, receive_all}, finish}, &options},
        {{"channel, timed", setup_meeting, {send_in_time, receive_in_time_and_close}, finish},
         &timed},
        {{"channel, timed, receivers",
          setup_meeting,
          {send_in_time, receive_in_time, receive_in_time_and_close},
          finish},
         &timed_one},
        {{"select", setup_meeting, {send_one, send_to_other, receive_either}, finish}, &two},
        {{"select, select", setup_meeting, {select_to_send, select_to_receive}, finish}, &options},
        {{"select, future", setup_meeting, {send_one, set_future, select_future}, finish}, &two},
        {{"select, await_any", setup_meeting, {set_future, await_any_and_free}, NULL}, &options},
        {{"select, timed", setup_meeting, {send_in_time, select_in_time}, finish}, &timed_two},
    };
    int code = 0;

    for (unsigned i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        mc_result r = mc_run(&programs[i].program, programs[i].options);
        code |= r.verdict == MC_SKIPPED ? 0 : mc_report(r);
    }
    return code;
}
