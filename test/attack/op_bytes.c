/* SPDX-License-Identifier: MIT */
/*
 * Bytes through pipes and socket pairs: by tasks and threads, by operations that are started,
 * cancelled and closed, and by splice.
 */
#include "wire.h"

#include <fcntl.h>
#include <poll.h>

/* ---- from one side to the other -------------------------------------------------------------- */

typedef struct side {
    wire *w;
    actor a;
    size_t bytes; /* to send */
    bool is_thread;
    helper h;
} side;

static void send_side(filch_frame *f, void *arg)
{
    side *s = arg;
    actor_begins(&s->a);
    wire_send(f, &s->a, s->w, s->bytes);
    act(f, &s->a);
}

/* The sender may wait for a thread that gives up. */
static void receive_side(filch_frame *f, void *arg)
{
    side *s = arg;
    actor_begins(&s->a);
    if (!wire_receive(f, &s->a, s->w))
        wire_finish(f, s->w);
    act(f, &s->a);
}

static int send_task(filch_frame *f, void *arg)
{
    send_side(f, arg);
    return 0;
}

/* A task that gives up ends the scope, and with it the sender. */
static int receive_task(filch_frame *f, void *arg)
{
    side *s = arg;
    actor_begins(&s->a);
    if (!wire_receive(f, &s->a, s->w)) {
        actor_ends(&s->a);
        return -EPROTO;
    }
    act(f, &s->a);
    return 0;
}

static side side_of(actor *a, wire *w, unsigned shares, const char *name)
{
    side s = {.w = w, .a = part_of(a, shares), .is_thread = one_in(a, 4), .bytes = below(a, 100)};

    if (one_in(a, 2))
        s.bytes *= 1 + below(a, 2000);
    s.bytes = sized((unsigned)s.bytes);
    s.a.is_shielded = false;
    s.a.is_cancellable = !s.is_thread;
    name_actor(&s.a, name, 0);
    note_if(&s.a, s.is_thread, "thread");
    return s;
}

/* If one task gets no memory, it cancels the other one, which might wait for it. The plain thread
 * that sends may go on: its bytes are drained. */
void op_bytes(filch_frame *f, actor *a)
{
    filch_scope_options options = {.size = sizeof options,
                                   .cancel_on_error = true,
                                   .deadline_ns = one_in(a, 6) ? some_deadline(a) : 0};
    bool is_to_cancel = one_in(a, 6), is_short = false;
    filch_scope scope;
    wire w;

    if (!f && a->is_inside)
        return;
    wire_open(&w, a);
    side sender = side_of(a, &w, 3, "sender"), receiver = side_of(a, &w, 2, "receiver");
    note(a, "bytes", sender.bytes);
    note_if(a, w.is_socket, "socket");
    note_if(a, options.deadline_ns, "deadline");
    note_if(a, is_to_cancel, "cancelled");
    CHECK_EQUAL(filch_scope_open(f, &scope, f ? NULL : some_pool(a), &options), 0);
    if (receiver.is_thread)
        helper_start(&receiver.h, receive_side, &receiver);
    else
        is_short |= !ok(f, a, filch_scope_spawn(f, &scope, receive_task, &receiver), MAY_END);
    if (sender.is_thread)
        helper_start(&sender.h, send_side, &sender);
    else
        is_short |= !ok(f, a, filch_scope_spawn(f, &scope, send_task, &sender), MAY_END);
    if (is_to_cancel || is_short)
        filch_scope_cancel(&scope);
    int err = filch_scope_close(f, &scope);
    bool may_end = is_to_cancel || is_short || (f && a->is_cancellable && !a->is_shielded);
    bool may_give_up = may_end || options.deadline_ns || may_fail_io(0);
    CHECK(err == 0 || (err == -ECANCELED && may_end) || (err == -EPROTO && may_give_up) ||
          (err == -ETIMEDOUT && options.deadline_ns) ||
          (err == -ENOMEM && the_world.may_lack_memory));
    if (!sender.is_thread && w.out >= 0)
        close(w.out);
    if (receiver.is_thread)
        helper_join(f, &receiver.h);
    wire_finish(f, &w);
    if (sender.is_thread)
        helper_join(f, &sender.h);
    wire_close(&w);
}

/* ---- several started operations -------------------------------------------------------------- */

#define STARTED_MAX 8

typedef struct late {
    wire wires[STARTED_MAX];
    unsigned count, bytes, delay_us;
} late;

/* Sends when all operations wait, or before. */
static void send_late(filch_frame *f, void *arg)
{
    unsigned char bytes[100];
    late *l = arg;

    (void)f;
    if (l->delay_us)
        usleep(l->delay_us);
    for (unsigned i = 0; i < l->count; i++) {
        wire *w = &l->wires[i];
        wire_fill(w, 0, bytes, l->bytes);
        while (write(w->out, bytes, l->bytes) < 0)
            CHECK(errno == EINTR);
        w->sent = l->bytes;
    }
}

void op_started(filch_frame *f, actor *a)
{
    late l = {.count = sized(1 + below(a, STARTED_MAX)),
              .bytes = sized(1 + below(a, 100)),
              .delay_us = below(a, 3) ? below(a, 1000) : 0};
    unsigned char bytes[STARTED_MAX][100];
    filch_op ops[STARTED_MAX], polls[STARTED_MAX];
    helper h;

    note(a, "operations", l.count);
    note(a, "bytes", l.bytes);
    note(a, "us", l.delay_us);
    for (unsigned i = 0; i < l.count; i++)
        wire_open(&l.wires[i], a);
    helper_start(&h, send_late, &l);
    for (unsigned i = 0; i < l.count; i++) {
        wire *w = &l.wires[i];
        polls[i] = filch_op_poll(w->in, POLLIN);
        ops[i] = w->is_socket ? filch_op_recv(w->in, bytes[i], 100, 0)
                              : filch_op_read(w->in, bytes[i], 100);
        CHECK_EQUAL(filch_op_start(f, &polls[i]), 0);
        CHECK_EQUAL(filch_op_start(f, &ops[i]), 0);
        CHECK_EQUAL(filch_op_start(f, &ops[i]), -EINVAL);
    }
    for (unsigned i = 0; i < l.count; i++) {
        wire *w = &l.wires[i];
        int may = may_fail_io(0);
        uint64_t deadline_ns = FILCH_NO_DEADLINE;
        if (one_in(a, 4)) {
            filch_op_cancel(f, one_in(a, 2) ? &ops[i] : &polls[i]);
            may |= MAY_END;
        }
        if (one_in(a, 3)) {
            deadline_ns = some_deadline(a);
            may |= MAY_TIME_OUT;
        }
        ssize_t got = filch_op_wait(f, &ops[i], deadline_ns);
        if (ok(f, a, got, may))
            wire_check(w, bytes[i], (size_t)got);
        /* Perhaps the bytes are gone now, and the poll would wait for ever. */
        filch_op_cancel(f, &polls[i]);
        ok(f, a, filch_op_wait(f, &polls[i], FILCH_NO_DEADLINE), may | MAY_END);
    }
    helper_join(f, &h);
    for (unsigned i = 0; i < l.count; i++) {
        close(l.wires[i].out);
        wire_finish(f, &l.wires[i]);
        wire_close(&l.wires[i]);
    }
}

/* ---- closed while operations are in flight --------------------------------------------------- */

/* Without memory, filch_op_start waits until its operation is complete: here that is never. */
void op_closed(filch_frame *f, actor *a)
{
    unsigned char bytes[4][10];
    unsigned count = sized(1 + below(a, COUNT_OF(bytes)));
    filch_op ops[COUNT_OF(bytes)];
    wire w;

    if (!f || may_fail_io(0))
        return;
    note(a, "operations", count);
    wire_open(&w, a);
    for (unsigned i = 0; i < count; i++) {
        ops[i] = one_in(a, 3) ? filch_op_poll(w.in, POLLIN)
                              : filch_op_read(w.in, bytes[i], sizeof bytes[i]);
        CHECK_EQUAL(filch_op_start(f, &ops[i]), 0);
    }
    if (one_in(a, 2))
        filch_yield(f);
    if (one_in(a, 3))
        filch_sleep_ns(f, below(a, 200000));
    CHECK_EQUAL(filch_close(f, w.in), 0);
    for (unsigned i = 0; i < count; i++)
        CHECK_EQUAL(filch_op_wait(f, &ops[i], FILCH_NO_DEADLINE), -ECANCELED);
    close(w.out);
}

/* ---- splice ---------------------------------------------------------------------------------- */

#define SPLICED_MAX 4000

void op_spliced(filch_frame *f, actor *a)
{
    unsigned char bytes[SPLICED_MAX];
    size_t count = sized(1 + below(a, SPLICED_MAX)), moved = 0;
    wire from, to;

    note(a, "bytes", count);
    do {
        wire_open(&from, a);
        if (from.is_socket) {
            close(from.in);
            close(from.out);
        }
    } while (from.is_socket);
    wire_open(&to, a);
    to.seed = from.seed;
    wire_fill(&from, 0, bytes, count);
    CHECK(write(from.out, bytes, count) == (ssize_t)count);
    from.sent = count;
    close(from.out);
    for (unsigned failed = 0; failed < 10;) {
        bool has_deadline = one_in(a, 3);
        filch_op op = filch_op_splice(from.in, FILCH_FILE_POSITION, to.out, FILCH_FILE_POSITION,
                                      1 + below(a, SPLICED_MAX), 0);
        ssize_t got = filch_op_run(f, &op, has_deadline ? some_deadline(a) : FILCH_NO_DEADLINE);
        if (got == 0)
            break;
        if (ok(f, a, got, may_fail_io(has_deadline ? MAY_TIME_OUT : 0)))
            moved += (size_t)got;
        else
            failed++;
    }
    to.sent = moved;
    close(to.out);
    wire_finish(f, &to);
    wire_close(&to);
    from.received = moved;
    wire_finish(f, &from);
    wire_close(&from);
}
