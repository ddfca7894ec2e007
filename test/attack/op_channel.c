/* SPDX-License-Identifier: MIT */
/*
 * Channels and select, between tasks and plain threads. What was sent is received, or still there.
 */
#include "attack.h"

#define ENDS_MAX 8

/* ---- a channel of its own -------------------------------------------------------------------- */

typedef struct market {
    filch_channel *channel;
    filch_atomic_u64 sent, received, sent_count, received_count;
} market;

typedef struct end {
    market *m;
    actor a;
    unsigned count; /* entries to send; receivers go on until the channel is closed */
    bool is_receiver, is_thread, has_deadlines, closes;
    helper h;
} end;

static int send_one(filch_frame *f, end *e, uint64_t entry)
{
    filch_case cases[] = {filch_case_send(e->m->channel, &entry),
                          filch_case_time(some_deadline(&e->a))};

    if (!e->has_deadlines)
        return filch_channel_send(f, e->m->channel, &entry);
    if (one_in(&e->a, 2))
        return filch_channel_send_until(f, e->m->channel, &entry, some_deadline(&e->a));
    int chosen = filch_select(f, cases, COUNT_OF(cases));
    return chosen < 0 ? chosen : chosen == 0 ? cases[0].result : -ETIMEDOUT;
}

static int receive_one(filch_frame *f, end *e, uint64_t *entry)
{
    if (!e->has_deadlines)
        return filch_channel_receive(f, e->m->channel, entry);
    return filch_channel_receive_until(f, e->m->channel, entry, some_deadline(&e->a));
}

/* Time-outs are tried again, but not for ever: the other side may have given up. */
static void trade(filch_frame *f, void *arg)
{
    end *e = arg;
    uint64_t entry = 0;
    bool is_over = false;

    actor_begins(&e->a);
    for (unsigned i = 0, failed = 0; failed < 50 && (e->is_receiver || i < e->count) && !is_over;) {
        if (!e->is_receiver)
            entry = number(&e->a) >> 20;
        int err = e->is_receiver ? receive_one(f, e, &entry) : send_one(f, e, entry);
        if (ok(f, &e->a, err, MAY_BREAK | (e->has_deadlines ? MAY_TIME_OUT : 0))) {
            add(e->is_receiver ? &e->m->received : &e->m->sent, entry);
            add(e->is_receiver ? &e->m->received_count : &e->m->sent_count, 1);
            i++;
        } else {
            failed++;
            is_over = err != -ETIMEDOUT;
        }
    }
    /* No task or thread waits for this end any more. */
    if (e->is_receiver || e->closes)
        filch_channel_close(e->m->channel);
    act(f, &e->a);
}

static int trade_as_task(filch_frame *f, void *arg)
{
    trade(f, arg);
    return 0;
}

static void check_market(market *m)
{
    uint64_t entry;

    CHECK_EQUAL(filch_channel_count(m->channel), get(&m->sent_count) - get(&m->received_count));
    while (filch_channel_try_receive(m->channel, &entry) == 0) {
        add(&m->received, entry);
        add(&m->received_count, 1);
    }
    CHECK_EQUAL(get(&m->sent_count), get(&m->received_count));
    CHECK_EQUAL(get(&m->sent), get(&m->received));
    filch_channel_destroy(m->channel);
}

/* If a task gets no memory, the scope is cancelled, as for all tasks that wait for each other. */
void op_channel(filch_frame *f, actor *a)
{
    filch_scope_options options = {.size = sizeof options,
                                   .cancel_on_error = true,
                                   .deadline_ns = one_in(a, 6) ? some_deadline(a) : 0};
    market m = {.channel = NULL};
    unsigned count = 1 + sized(1 + below(a, ENDS_MAX - 1)), capacity;
    end *ends = calloc(count, sizeof *ends);
    bool is_short = false;
    filch_scope scope;

    if (!f && a->is_inside) {
        free(ends);
        return;
    }
    capacity = below(a, 2) ? 0 : below(a, 9);
    note(a, "capacity", capacity);
    note_if(a, options.deadline_ns, "deadline");
    if (!ok(NULL, a, filch_channel_create(&m.channel, sizeof(uint64_t), capacity), 0)) {
        free(ends);
        return;
    }
    CHECK_EQUAL(filch_scope_open(f, &scope, f ? NULL : some_pool(a), &options), 0);
    for (unsigned i = 0; i < count; i++) {
        end *e = &ends[i];
        e->m = &m;
        e->a = part_of(a, count + 1 - i);
        e->a.is_shielded = false;
        e->is_receiver = i == 0 || (i > 1 && one_in(a, 2));
        e->is_thread = one_in(a, 4);
        e->has_deadlines = one_in(a, 3);
        e->closes = one_in(a, 3);
        e->count = sized(1 + below(a, 60));
        e->a.is_cancellable = !e->is_thread;
        name_actor(&e->a, e->is_receiver ? "receiver" : "sender", i + 1);
        note_if(&e->a, e->is_thread, "thread");
        note_if(&e->a, e->has_deadlines, "deadlines");
        note_if(&e->a, e->is_receiver || e->closes, "closes");
        if (!e->is_receiver)
            note(&e->a, "entries", e->count);
        if (e->is_thread)
            helper_start(&e->h, trade, e);
        else if (!ok(f, a, filch_scope_spawn(f, &scope, trade_as_task, e), MAY_END))
            is_short = true;
    }
    if (is_short)
        filch_scope_cancel(&scope);
    else
        /* The receivers go on until the channel is closed. */
        filch_sleep_ns(f, below(a, 500000));
    if (one_in(a, 2) || !options.deadline_ns)
        filch_channel_close(m.channel);
    int err = filch_scope_close(f, &scope);
    CHECK(err == 0 || err == -ECANCELED || err == -ETIMEDOUT ||
          (err == -ENOMEM && the_world.may_lack_memory));
    filch_channel_close(m.channel);
    for (unsigned i = 0; i < count; i++)
        if (ends[i].is_thread)
            helper_join(f, &ends[i].h);
    check_market(&m);
    free(ends);
}

/* ---- the channels of all --------------------------------------------------------------------- */

void op_shared(filch_frame *f, actor *a)
{
    static const char *const names[] = {"try_send", "try_receive", "send_until", "receive_until"};
    unsigned number = below(a, CHANNELS);
    filch_channel *channel = the_world.channels[number];
    uint64_t entry = 1 + below(a, 1000);
    unsigned way = below(a, COUNT_OF(names));
    int err;

    note(a, names[way], number + 1);
    switch (way) {
    case 0:
        err = filch_channel_try_send(channel, &entry);
        CHECK(err == 0 || err == -EAGAIN);
        add(&the_world.sent, err ? 0 : entry);
        break;
    case 1:
        err = filch_channel_try_receive(channel, &entry);
        CHECK(err == 0 || err == -EAGAIN);
        add(&the_world.received, err ? 0 : entry);
        break;
    case 2:
        if (ok(f, a, filch_channel_send_until(f, channel, &entry, some_deadline(a)), MAY_TIME_OUT))
            add(&the_world.sent, entry);
        break;
    default:
        if (ok(f, a, filch_channel_receive_until(f, channel, &entry, some_deadline(a)),
               MAY_TIME_OUT))
            add(&the_world.received, entry);
    }
}

void op_select(filch_frame *f, actor *a)
{
    filch_future never = FILCH_FUTURE_INIT;
    uint64_t out[6], in[6];
    filch_case cases[7];
    unsigned count = sized(1 + below(a, COUNT_OF(out)));

    note(a, "cases", count + 1);
    for (unsigned i = 0; i < count; i++) {
        unsigned number = below(a, CHANNELS);
        filch_channel *channel = the_world.channels[number];
        out[i] = 1 + below(a, 1000);
        switch (below(a, 5)) {
        case 0:
        case 1:
            note(a, "send", number + 1);
            cases[i] = filch_case_send(channel, &out[i]);
            break;
        case 2:
        case 3:
            note(a, "receive", number + 1);
            cases[i] = filch_case_receive(channel, &in[i]);
            break;
        default:
            cases[i] = filch_case_future(&never);
        }
    }
    bool is_try = one_in(a, 4);
    cases[count++] = filch_case_time(some_deadline(a));
    int chosen = is_try ? filch_select_try(cases, count) : filch_select(f, cases, count);
    if (is_try && chosen == -EAGAIN)
        return;
    if (!ok(f, a, chosen, 0) || chosen == (int)count - 1)
        return;
    CHECK(chosen < (int)count);
    CHECK_EQUAL(cases[chosen].result, 0);
    switch (cases[chosen].kind) {
    case FILCH_CASE_SEND:
        add(&the_world.sent, out[chosen]);
        break;
    case FILCH_CASE_RECEIVE:
        add(&the_world.received, in[chosen]);
        break;
    default:
        FAIL("case %d is not ready, but was chosen", chosen);
    }
}
