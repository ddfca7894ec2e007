/* SPDX-License-Identifier: MIT */
/*
 * Many at once: tasks that wait for the same event, operations on the same descriptor, opens of a
 * FIFO, connects to a full queue.
 */
#include "attack.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- tasks ----------------------------------------------------------------------------------- */

#define CROWD_MAX 1500

typedef struct crowd {
    filch_event start;
    filch_atomic_u64 arrived, left;
} crowd;

static int stand_in_crowd(filch_frame *f, void *arg)
{
    crowd *c = arg;
    uint64_t number_of_task = get(&c->arrived);
    int err;

    add(&c->arrived, 1);
    if (number_of_task % 3 == 0)
        err = filch_sleep_ns(f, number_of_task % 7 * 100000);
    else if (number_of_task % 3 == 1)
        err = filch_event_wait_until(f, &c->start, filch_after_ns(number_of_task * 1000));
    else
        err = filch_event_wait(f, &c->start);
    add(&c->left, 1);
    return err == -ETIMEDOUT ? 0 : err;
}

void op_crowd(filch_frame *f, actor *a)
{
    filch_scope_options options = {.size = sizeof options, .cancel_on_error = true};
    unsigned count = sized(one_in(a, 4) ? 100 + below(a, CROWD_MAX) : 1 + below(a, 100));
    bool is_to_cancel = one_in(a, 4);
    uint64_t spawned = 0;
    crowd c = {.arrived = {0}};
    filch_scope scope;

    if (!f && a->is_inside)
        return;
    note(a, "tasks", count);
    note_if(a, is_to_cancel, "cancelled");
    CHECK_EQUAL(filch_scope_open(f, &scope, f ? NULL : some_pool(a), &options), 0);
    for (unsigned i = 0; i < count; i++)
        spawned += ok(f, a, filch_scope_spawn(f, &scope, stand_in_crowd, &c), MAY_END);
    if (is_to_cancel)
        filch_scope_cancel(&scope);
    else
        filch_event_set(&c.start);
    int err = filch_scope_close(f, &scope);
    if (ok(f, a, err, is_to_cancel ? MAY_END : 0))
        CHECK_EQUAL(get(&c.arrived), spawned);
    CHECK_EQUAL(get(&c.left), get(&c.arrived));
}

/* ---- operations on one descriptor ------------------------------------------------------------ */

#define RIVALS 6

typedef struct rivals {
    int pair[2];
    filch_atomic_u64 sent, received;
    actor actors[2 * RIVALS];
    filch_scope scope;
} rivals;

typedef struct rival {
    rivals *all;
    unsigned index;
} rival;

static int send_as_rival(filch_frame *f, void *arg)
{
    rival *r = arg;
    actor *a = &r->all->actors[r->index];
    char bytes[300] = {0};
    unsigned times = sized(1 + below(a, 40));

    actor_begins(a);
    note(a, "times", times);
    for (unsigned i = times; i > 0; i--) {
        filch_op op = filch_op_send(r->all->pair[1], bytes, 1 + below(a, sizeof bytes), 0);
        bool has_deadline = one_in(a, 4);
        ssize_t put = filch_op_run(f, &op, has_deadline ? some_deadline(a) : FILCH_NO_DEADLINE);
        if (ok(f, a, put, may_fail_io(has_deadline ? MAY_TIME_OUT : 0)))
            add(&r->all->sent, (uint64_t)put);
        else if (put == -ECANCELED)
            return put;
    }
    actor_ends(a);
    return 0;
}

/* Receive until nothing has come for a while. */
static int receive_as_rival(filch_frame *f, void *arg)
{
    rival *r = arg;
    actor *a = &r->all->actors[r->index];
    char bytes[500];

    actor_begins(a);
    for (unsigned failed = 0; failed < 10;) {
        filch_op op = filch_op_recv(r->all->pair[0], bytes, 1 + below(a, sizeof bytes), 0);
        ssize_t got = filch_op_run(f, &op, some_deadline(a));
        if (ok(f, a, got, may_fail_io(MAY_TIME_OUT)))
            add(&r->all->received, (uint64_t)got);
        else if (got == -ECANCELED)
            return (int)got;
        failed += got <= 0;
    }
    actor_ends(a);
    return 0;
}

static int end_of_rivals(filch_frame *f, void *arg)
{
    rivals *all = arg;

    filch_sleep_ns(f, 2000000);
    filch_scope_cancel(&all->scope);
    return 0;
}

/* All senders and receivers use the same two descriptors. If the receivers have ended, a sender may
 * wait for ever: so the scope is cancelled after a while. */
void op_rivals(filch_frame *f, actor *a)
{
    rivals *all = calloc(1, sizeof *all);
    char bytes[1000];
    ssize_t got;

    if (!f && a->is_inside) {
        free(all);
        return;
    }
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (one_in(a, 2) ? SOCK_NONBLOCK : 0), 0,
                     all->pair) == 0);
    CHECK_EQUAL(filch_scope_open(f, &all->scope, f ? NULL : some_pool(a), NULL), 0);
    for (unsigned i = 0; i < 2 * RIVALS; i++) {
        rival r = {all, i};
        all->actors[i] = part_of(a, 2 * RIVALS);
        all->actors[i].is_cancellable = true;
        all->actors[i].is_shielded = false;
        name_actor(&all->actors[i], i % 2 ? "sender" : "receiver", i / 2 + 1);
        ok(f, a,
           filch_scope_spawn_copy(f, &all->scope, i % 2 ? send_as_rival : receive_as_rival, &r,
                                  sizeof r),
           0);
    }
    if (!ok(f, a, filch_scope_spawn(f, &all->scope, end_of_rivals, all), 0))
        filch_scope_cancel(&all->scope);
    ok(f, a, filch_scope_close(f, &all->scope), MAY_END);
    close(all->pair[1]);
    /* The child of a fork() may still have the other end. */
    while ((got = recv(all->pair[0], bytes, sizeof bytes, 0)) != 0)
        if (got > 0)
            add(&all->received, (uint64_t)got);
        else if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = all->pair[0], .events = POLLIN}, 1, -1);
        else
            CHECK(errno == EINTR);
    CHECK_EQUAL(get(&all->received), get(&all->sent));
    close(all->pair[0]);
    free(all);
}

/* ---- opens that wait for each other ---------------------------------------------------------- */

typedef struct fifo {
    char name[32];
    filch_scope scope;
    actor actors[2];
    filch_atomic_u64 sent, received;
} fifo;

static int write_fifo(filch_frame *f, void *arg)
{
    fifo *o = arg;
    actor *a = &o->actors[0];

    actor_begins(a);
    int fd = filch_openat(f, the_world.folder_fd, o->name, O_WRONLY, 0);
    if (!ok(f, a, fd, may_fail_io(0)))
        return fd;
    ssize_t put = filch_write(f, fd, "attack", 6);
    if (ok(f, a, put, may_fail_io(MAY_BREAK)))
        add(&o->sent, (uint64_t)put);
    CHECK_EQUAL(filch_close(f, fd), 0);
    actor_ends(a);
    return put < 0 ? (int)put : 0;
}

static int read_fifo(filch_frame *f, void *arg)
{
    fifo *o = arg;
    actor *a = &o->actors[1];
    char bytes[20];

    actor_begins(a);
    int fd = filch_openat(f, the_world.folder_fd, o->name, O_RDONLY, 0);
    if (!ok(f, a, fd, may_fail_io(0)))
        return fd;
    ssize_t got = filch_read_all(f, fd, bytes, sizeof bytes);
    if (ok(f, a, got, may_fail_io(0)))
        add(&o->received, (uint64_t)got);
    CHECK_EQUAL(filch_close(f, fd), 0);
    actor_ends(a);
    return got < 0 ? (int)got : 0;
}

static void open_fifo(filch_frame *f, actor *a)
{
    bool is_to_cancel = one_in(a, 4), is_short = false;
    filch_scope_options options = {.size = sizeof options,
                                   .cancel_on_error = true,
                                   .deadline_ns = one_in(a, 4) ? some_deadline(a) : 0};
    fifo *o = calloc(1, sizeof *o);

    snprintf(o->name, sizeof o->name, "p%llx", (unsigned long long)number(a));
    CHECK(mkfifoat(the_world.folder_fd, o->name, 0600) == 0);
    CHECK_EQUAL(filch_scope_open(f, &o->scope, f ? NULL : some_pool(a), &options), 0);
    for (unsigned i = 0; i < 2; i++) {
        o->actors[i] = part_of(a, 2);
        o->actors[i].is_cancellable = true;
        o->actors[i].is_shielded = false;
        name_actor(&o->actors[i], i ? "reader" : "writer", 0);
    }
    is_short |= !ok(f, a, filch_scope_spawn(f, &o->scope, write_fifo, o), MAY_END);
    is_short |= !ok(f, a, filch_scope_spawn(f, &o->scope, read_fifo, o), MAY_END);
    if (is_to_cancel || is_short)
        filch_scope_cancel(&o->scope);
    int err = filch_scope_close(f, &o->scope);
    bool may_end = is_to_cancel || is_short;
    if (ok(f, a, err,
           may_fail_io((may_end ? MAY_END : 0) |
                       (options.deadline_ns || may_end || (f && a->is_cancellable)
                            ? MAY_TIME_OUT | MAY_BREAK
                            : 0))))
        CHECK_EQUAL(get(&o->sent), get(&o->received));
    unlinkat(the_world.folder_fd, o->name, 0);
    free(o);
}

/* ---- connects to a full queue ---------------------------------------------------------------- */

#define GUESTS 5

typedef struct queue {
    struct sockaddr_un address;
    int listener;
    filch_scope scope;
    filch_atomic_u64 connected, accepted;
    actor actors[GUESTS + 1];
} queue;

typedef struct guest {
    queue *q;
    unsigned index;
} guest;

static int join_queue(filch_frame *f, void *arg)
{
    guest *g = arg;
    queue *q = g->q;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    actor_begins(&q->actors[g->index]);
    int err = filch_connect(f, fd, (struct sockaddr *)&q->address, sizeof q->address);
    if (ok(f, &q->actors[g->index], err, may_fail_io(0)))
        add(&q->connected, 1);
    CHECK_EQUAL(filch_close(f, fd), 0);
    actor_ends(&q->actors[g->index]);
    return err;
}

static int serve_queue(filch_frame *f, void *arg)
{
    queue *q = arg;
    actor *a = &q->actors[GUESTS];
    int fd = 0;

    actor_begins(a);
    for (unsigned i = 0, failed = 0; i < GUESTS && failed < 20;) {
        if (one_in(a, 2))
            filch_sleep_ns(f, below(a, 500000));
        fd = filch_accept(f, q->listener, NULL, NULL, 0);
        if (ok(f, a, fd, may_fail_io(0))) {
            add(&q->accepted, 1);
            i++;
            CHECK_EQUAL(filch_close(f, fd), 0);
        } else if (fd == -ECANCELED) {
            break;
        } else {
            failed++;
        }
    }
    actor_ends(a);
    return fd < 0 ? fd : 0;
}

static void connect_to_queue(filch_frame *f, actor *a)
{
    filch_scope_options options = {.size = sizeof options, .cancel_on_error = true};
    bool is_to_cancel = one_in(a, 4), is_short = false;
    queue *q = calloc(1, sizeof *q);

    q->address.sun_family = AF_UNIX;
    snprintf(q->address.sun_path, sizeof q->address.sun_path, "%s/u%llx", the_world.folder,
             (unsigned long long)number(a));
    q->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (q->listener < 0 || bind(q->listener, (struct sockaddr *)&q->address, sizeof q->address) ||
        listen(q->listener, 0))
        FAIL("no listener: %s", strerror(errno));
    CHECK_EQUAL(filch_scope_open(f, &q->scope, f ? NULL : some_pool(a), &options), 0);
    for (unsigned i = 0; i <= GUESTS; i++) {
        q->actors[i] = part_of(a, GUESTS + 1);
        q->actors[i].is_cancellable = true;
        q->actors[i].is_shielded = false;
        name_actor(&q->actors[i], i < GUESTS ? "guest" : "server", i < GUESTS ? i + 1 : 0);
    }
    is_short |= !ok(f, a, filch_scope_spawn(f, &q->scope, serve_queue, q), MAY_END);
    for (unsigned i = 0; i < GUESTS; i++) {
        guest g = {q, i};
        is_short |=
            !ok(f, a, filch_scope_spawn_copy(f, &q->scope, join_queue, &g, sizeof g), MAY_END);
    }
    if (is_to_cancel || is_short)
        filch_scope_cancel(&q->scope);
    int err = filch_scope_close(f, &q->scope);
    if (ok(f, a, err, may_fail_io(is_to_cancel || is_short ? MAY_END : 0))) {
        CHECK_EQUAL(get(&q->connected), GUESTS);
        CHECK_EQUAL(get(&q->accepted), GUESTS);
    }
    close(q->listener);
    unlink(q->address.sun_path);
    free(q);
}

void op_waiting(filch_frame *f, actor *a)
{
    if (!f && a->is_inside)
        return;
    bool is_fifo = one_in(a, 2);
    note_if(a, true, is_fifo ? "opens of a FIFO" : "connects to a full queue");
    if (is_fifo)
        open_fifo(f, a);
    else
        connect_to_queue(f, a);
}
