/* SPDX-License-Identifier: MIT */
/*
 * An echo server: one task per connection, written as straight-line code, and no thread blocks.
 *
 * Connections and bytes come from streams (filch/stream.h): the task requests them once, and a
 * silent connection holds no buffer.
 *
 *     echo                serve its own clients, then exit; this mode is the test
 *     echo <port>         serve 127.0.0.1:<port> until interrupted
 */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <filch/filch.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 100, ROUNDS = 10 };

static struct sockaddr_in address = {.sin_family = AF_INET};

/* ---- the server ------------------------------------------------------------------------------ */

typedef struct server {
    filch_scope scope;
    filch_stream incoming;
    _Atomic bool is_accepting; /* a task waits for the next connection, or all have come */
    unsigned left;             /* connections to come; 0: without end */
} server;

static void serve(filch_frame *f, int fd)
{
    filch_stream bytes;
    ssize_t got;

    filch_stream_recv(&bytes, fd, 0);
    while ((got = filch_stream_next(f, &bytes, FILCH_NO_DEADLINE)) > 0)
        if (filch_send_all(f, fd, bytes.data, (size_t)got, 0) < 0)
            break;
    filch_stream_close(f, &bytes);
    filch_close(f, fd);
}

/* Returns the next connection, or -ECANCELED. */
static int accept_next(filch_frame *f, server *s)
{
    int fd, one = 1;

    /* An aborted connection does not stop the server. If descriptors or memory are exhausted, wait
     * until other connections return some. */
    while ((fd = (int)filch_stream_next(f, &s->incoming, FILCH_NO_DEADLINE)) < 0)
        if (fd != -ECONNABORTED && (fd == -ECANCELED || filch_sleep_ns(f, 10000000)))
            return -ECANCELED;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/*
 * One task at a time accepts. With a connection it lets another task accept, and serves the
 * connection itself. The other task may never begin: there may be no memory for its stack, or the
 * scope is cancelled (filch/scope.h). Nothing is lost then, because it has no connection yet, and
 * the first task that has served its own accepts the next one.
 */
static int accept_and_serve(filch_frame *f, void *arg)
{
    server *s = arg;

    while (!atomic_exchange(&s->is_accepting, true)) {
        int fd = accept_next(f, s);
        if (fd < 0)
            return fd;
        if (s->left != 1) {
            s->left -= s->left > 0;
            atomic_store(&s->is_accepting, false);
            filch_scope_spawn(f, &s->scope, accept_and_serve, s);
        }
        serve(f, fd);
    }
    return 0; /* the error of one client does not stop the server */
}

/* Serve `count` connections; 0: serve without end. */
static int serve_some(filch_frame *f, int listener, unsigned count)
{
    server s = {.left = count};
    int err = filch_scope_open(f, &s.scope, NULL, NULL);

    if (err)
        return err;
    filch_stream_accept(&s.incoming, listener, 0);
    err = accept_and_serve(f, &s);
    filch_scope_close(f, &s.scope); /* its errors are those of tasks that had no connection */
    filch_stream_close(f, &s.incoming);
    return err;
}

/* ---- the program ----------------------------------------------------------------------------- */

typedef struct program {
    int listener, err;
} program;

static int serve_clients(filch_frame *f, void *arg)
{
    const program *p = arg;
    return serve_some(f, p->listener, CLIENTS);
}

static int ask(filch_frame *f, void *arg)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int err = filch_connect(f, fd, (struct sockaddr *)&address, sizeof address);
    uint64_t answer = 0;
    (void)arg;

    for (uint64_t i = 0; !err && i < ROUNDS; i++)
        if (filch_send_all(f, fd, &i, sizeof i, 0) < 0 ||
            filch_recv(f, fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer || answer != i)
            err = -EPROTO;
    filch_close(f, fd);
    return err;
}

/* Without memory for all of these tasks, some would wait for ever for those that do not run: so an
 * error of one of them cancels the others. */
static int serve_own_clients(filch_frame *f, program *p)
{
    const filch_scope_options options = {.size = sizeof options, .cancel_on_error = true};
    socklen_t length = sizeof address;
    filch_scope scope;

    getsockname(p->listener, (struct sockaddr *)&address, &length);
    int err = filch_scope_open(f, &scope, NULL, &options);
    if (err)
        return err;
    err = filch_scope_spawn(f, &scope, serve_clients, p);
    for (int i = 0; !err && i < CLIENTS; i++)
        err = filch_scope_spawn(f, &scope, ask, NULL);
    if (err)
        filch_scope_cancel(&scope);
    int closed = filch_scope_close(f, &scope);
    return closed ? closed : err;
}

static void run(filch_frame *f, void *arg)
{
    program *p = arg;

    if (address.sin_port != 0) {
        p->err = serve_some(f, p->listener, 0);
        return;
    }
    p->err = serve_own_clients(f, p);
    if (!p->err)
        printf("%d clients, %d answers each: all right\n", CLIENTS, ROUNDS);
}

int main(int argc, char **argv)
{
    program p = {.listener = socket(AF_INET, SOCK_STREAM, 0)};
    filch_pool *pool;
    int one = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    setsockopt(p.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(p.listener, (struct sockaddr *)&address, sizeof address) || listen(p.listener, 1024)) {
        perror("echo");
        return 1;
    }
    p.err = filch_pool_create(&pool, NULL);
    if (!p.err) {
        filch_run(pool, run, &p);
        filch_pool_destroy(pool);
    }
    if (p.err)
        fprintf(stderr, "echo: %s\n", filch_strerror(p.err));
    close(p.listener);
    return p.err ? 1 : 0;
}
