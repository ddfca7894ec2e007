/* SPDX-License-Identifier: MIT */
/*
 * TCP on the loopback interface: servers that accept one by one or by a stream, clients that
 * connect; bytes that come as a stream.
 */
#include "wire.h"

#include <netinet/in.h>

#define CLIENTS_MAX 6

typedef struct server {
    int listener;
    struct sockaddr_in address;
    unsigned count;
    bool has_stream;
    int may; /* what calls may return: a peer that has given up resets the connection */
    actor a;
    filch_scope scope;
    filch_atomic_u64 served, sent, received;
    filch_atomic_u32 fds[CLIENTS_MAX]; /* accepted, and not closed yet; plus 1 */
    struct client {
        struct server *s;
        actor a;
        unsigned bytes, index;
        bool has_deadline;
    } clients[CLIENTS_MAX], sessions[CLIENTS_MAX];
} server;

/* Only one task closes the descriptor. */
static void close_session(filch_frame *f, server *s, unsigned index)
{
    /* acq_rel: what was written comes first. */
    uint32_t fd = filch_exchange_acq_rel(&s->fds[index], 0);

    if (fd > 0)
        CHECK_EQUAL(filch_close(f, (int)fd - 1), 0);
}

/* Count the bytes until the end; then answer with their number. */
static int serve(filch_frame *f, void *arg)
{
    struct client *c = arg;
    server *s = c->s;
    /* relaxed: the spawn carried it. */
    int fd = (int)filch_load_relaxed(&s->fds[c->index]) - 1;
    unsigned char buffer[700];
    uint64_t sum = 0;
    filch_stream stream;
    ssize_t got;

    actor_begins(&c->a);
    filch_stream_recv(&stream, fd, 0);
    for (unsigned failed = 0; failed < 20;) {
        bool has_deadline = c->has_deadline && failed < 10;
        uint64_t deadline_ns = has_deadline ? some_deadline(&c->a) : FILCH_NO_DEADLINE;
        filch_op op = filch_op_recv(fd, buffer, sizeof buffer, 0);
        got = s->has_stream ? filch_stream_next(f, &stream, deadline_ns)
                            : filch_op_run(f, &op, deadline_ns);
        if (got == 0)
            break;
        if (ok(f, &c->a, got, s->may | (has_deadline ? MAY_TIME_OUT : 0)))
            sum += (uint64_t)got;
        else
            failed++;
        if (got == -ECANCELED)
            break;
    }
    filch_stream_close(f, &stream);
    act(f, &c->a);
    actor_begins(&c->a); /* again: the answer may wait */
    if (got == 0) {
        add(&s->received, sum);
        got = filch_send_all(f, fd, &sum, sizeof sum, 0);
        if (ok(f, &c->a, got, s->may))
            add(&s->served, 1);
    }
    close_session(f, s, c->index);
    actor_ends(&c->a);
    return got < 0 ? (int)got : 0;
}

static int accept_one(filch_frame *f, server *s, filch_stream *stream)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;

    if (s->has_stream)
        return (int)filch_stream_next(f, stream, FILCH_NO_DEADLINE);
    int fd = one_in(&s->a, 2) ? filch_accept(f, s->listener, NULL, NULL, 0)
                              : filch_accept(f, s->listener, (struct sockaddr *)&address, &length,
                                             one_in(&s->a, 2) ? SOCK_NONBLOCK : 0);
    return fd;
}

static int accept_all(filch_frame *f, void *arg)
{
    server *s = arg;
    filch_stream stream;
    int err = 0;

    actor_begins(&s->a);
    filch_stream_accept(&stream, s->listener, 0);
    for (unsigned i = 0, failed = 0; i < s->count && failed < 30;) {
        int fd = accept_one(f, s, &stream);
        if (!ok(f, &s->a, fd, s->may)) {
            failed++;
            err = fd;
            if (fd == -ECANCELED)
                break;
            continue;
        }
        err = 0;
        s->sessions[i].index = i;
        /* relaxed: the spawn carries it. */
        filch_store_relaxed(&s->fds[i], (uint32_t)fd + 1);
        err = filch_scope_spawn(f, &s->scope, serve, &s->sessions[i]);
        if (!ok(f, &s->a, err, MAY_END)) {
            close_session(f, s, i);
            break;
        }
        i++;
    }
    filch_stream_close(f, &stream);
    actor_ends(&s->a);
    return err;
}

static int visit(filch_frame *f, void *arg)
{
    struct client *c = arg;
    server *s = c->s;
    unsigned char buffer[3000];
    uint64_t count = 0;
    int fd =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (one_in(&c->a, 2) ? SOCK_NONBLOCK : 0), 0);

    if (fd < 0)
        FAIL("socket: %s", strerror(errno));
    actor_begins(&c->a);
    memset(buffer, 'x', sizeof buffer);
    ssize_t err = filch_connect(f, fd, (struct sockaddr *)&s->address, sizeof s->address);
    ok(f, &c->a, err, s->may);
    for (unsigned left = c->bytes; err >= 0 && left > 0;) {
        size_t some = 1 + below(&c->a, sizeof buffer);
        err = filch_send_all(f, fd, buffer, some < left ? some : left, 0);
        if (ok(f, &c->a, err, s->may | MAY_BREAK))
            left -= (unsigned)err;
    }
    if (err >= 0) {
        add(&s->sent, c->bytes);
        err = filch_shutdown(f, fd, SHUT_WR);
        ok(f, &c->a, err, s->may);
    }
    if (err >= 0) {
        err = filch_read_all(f, fd, &count, sizeof count);
        /* The server may have given up. */
        if (ok(f, &c->a, err, s->may) && err == sizeof count)
            CHECK_EQUAL(count, c->bytes);
        else
            err = err < 0 ? err : -EPROTO;
    }
    CHECK_EQUAL(filch_close(f, fd), 0);
    actor_ends(&c->a);
    return (int)(err < 0 ? err : 0);
}

static bool open_listener(server *s)
{
    socklen_t length = sizeof s->address;

    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&s->address, sizeof s->address) ||
        listen(s->listener, CLIENTS_MAX) ||
        getsockname(s->listener, (struct sockaddr *)&s->address, &length))
        FAIL("no listener: %s", strerror(errno));
    return true;
}

/* All tasks end with the first that fails. */
static void serve_clients(filch_frame *f, actor *a, bool has_stream)
{
    filch_scope_options options = {.size = sizeof options,
                                   .cancel_on_error = true,
                                   .deadline_ns = one_in(a, 6) ? some_deadline(a) : 0};
    bool is_to_cancel = one_in(a, 6), is_short = false;
    server *s = calloc(1, sizeof *s);

    if ((!f && a->is_inside) || !open_listener(s)) {
        free(s);
        return;
    }
    s->count = sized(1 + below(a, CLIENTS_MAX));
    s->has_stream = has_stream;
    bool may_end = is_to_cancel || options.deadline_ns || (f && a->is_cancellable);
    s->may = may_fail_io(may_end || the_world.may_lack_memory ? MAY_FAIL : 0);
    if (options.deadline_ns)
        s->may |= MAY_TIME_OUT;
    CHECK_EQUAL(filch_scope_open(f, &s->scope, f ? NULL : some_pool(a), &options), 0);
    s->a = part_of(a, 2 * s->count + 2);
    s->a.is_cancellable = true;
    s->a.is_shielded = false;
    note(a, "clients", s->count);
    note_if(a, is_to_cancel, "cancelled");
    note_if(a, options.deadline_ns, "deadline");
    name_actor(&s->a, "server", 0);
    for (unsigned i = 0; i < s->count; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct client *c = k ? &s->clients[i] : &s->sessions[i];
            *c = (struct client){.s = s,
                                 .a = part_of(a, 2 * s->count + 1),
                                 .bytes = sized(below(a, one_in(a, 3) ? 100000 : 2000)),
                                 .index = i,
                                 .has_deadline = one_in(a, 3)};
            c->a.is_cancellable = true;
            c->a.is_shielded = false;
            name_actor(&c->a, k ? "client" : "session", i + 1);
            if (k)
                note(&c->a, "bytes", c->bytes);
            note_if(&c->a, !k && c->has_deadline, "deadlines");
        }
    is_short |= !ok(f, a, filch_scope_spawn(f, &s->scope, accept_all, s), MAY_END);
    for (unsigned i = 0; i < s->count; i++)
        is_short |= !ok(f, a, filch_scope_spawn(f, &s->scope, visit, &s->clients[i]), MAY_END);
    if (is_to_cancel || is_short)
        filch_scope_cancel(&s->scope);
    int err = filch_scope_close(f, &s->scope);
    if (ok(f, a, err, s->may | (is_to_cancel || is_short ? MAY_END : 0))) {
        CHECK_EQUAL(get(&s->served), s->count);
        CHECK_EQUAL(get(&s->received), get(&s->sent));
    }
    for (unsigned i = 0; i < s->count; i++)
        close_session(f, s, i);
    close(s->listener);
    free(s);
}

void op_tcp(filch_frame *f, actor *a)
{
    serve_clients(f, a, false);
}

void op_stream(filch_frame *f, actor *a)
{
    serve_clients(f, a, true);
}
