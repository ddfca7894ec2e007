/* SPDX-License-Identifier: MIT */
/*
 * The routes RETRY and THREAD. The task carries the operation out itself, and is suspended in
 * between. If the task goes on instead (filch_op_start), a separate task does so: the carrier.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "block/blocking.h"
#include "io/epoll.h"
#include "io/ops.h"
#include "io/route.h"
#include "wait/spawn.h"

#include <fcntl.h>
#include <filch/scope.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pauses between two tries double from the first to the last. */
#define FIRST_PAUSE_NS 50000
#define LAST_PAUSE_NS 10000000

/* Sleep until the next try. -ETIMEDOUT, -ECANCELED: do not try again. */
static int pause_until(filch_frame *f, uint64_t *pause_ns, uint64_t deadline_ns)
{
    uint64_t now_ns = filch_clock_ns(), next_ns = now_ns + *pause_ns;

    if (*pause_ns < LAST_PAUSE_NS)
        *pause_ns *= 2;
    return now_ns >= deadline_ns
               ? -ETIMEDOUT
               : filch_sleep_until(f, next_ns < deadline_ns ? next_ns : deadline_ns);
}

/* Until end_use, filch_close does not close the descriptor, provided that there is an epoll to
 * count the use. Returns 0; -ECANCELED: the descriptor was closed since the operation started; or
 * -errno. */
static int begin_use(filch_io *io, filch_epoll *epoll, const filch_op *op)
{
    if (epoll)
        return filch_epoll_begin_try(epoll, op);
    return filch_io_has_closed(io, op) ? -ECANCELED : 0;
}

static void end_use(filch_epoll *epoll, const filch_op *op)
{
    if (epoll)
        filch_epoll_end_try(epoll, op);
}

/* ---- THREAD ---------------------------------------------------------------------------------- */

typedef struct call {
    filch_io *io;
    filch_op *op;
    uint64_t deadline_ns;
    int own_fd;         /* a duplicate of op->fd, for this call only; -1: there is none */
    int own_fd2;        /* a duplicate of op->fd2, if that is a directory; or -1 */
    filch_epoll *epoll; /* keeps op->fd from being closed during the call; NULL: nothing does */
} call;

/* If the descriptor was closed before begin_use, its number may be another file by now: do not
 * call. From begin_use on, the call has its own duplicate, or a close waits for the call. */
static int call_on_thread(void *arg)
{
    const call *c = arg;
    filch_op *op = c->op;
    int fd = op->fd, fd2 = op->fd2;

    op->result = begin_use(c->io, c->epoll, op);
    if (op->result)
        return 0;
    op->fd = c->own_fd >= 0 ? c->own_fd : fd;
    if (c->own_fd2 >= 0)
        op->fd2 = c->own_fd2;
    op->result = filch_op_has(op, FILCH_TRAIT_OPENS) ? filch_op_open(op)
                                                     : filch_op_call_until(op, c->deadline_ns);
    op->fd = fd;
    if (c->own_fd2 >= 0)
        op->fd2 = fd2;
    end_use(c->epoll, op);
    return 0;
}

/* A duplicate of the descriptor; -1: none. Files and block devices are not duplicated: closing any
 * descriptor of a file ends its locks of fcntl(2). */
static int duplicate(int fd)
{
    struct statx info;
    bool may_have_locks = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) ||
                          S_ISREG(info.stx_mode) || S_ISBLK(info.stx_mode);
    return may_have_locks ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Before a thread has begun the call, a cancellation, the deadline or a close of the descriptor
 * prevents it. */
static void call_blocking(filch_frame *f, filch_io *io, filch_op *op, uint64_t deadline_ns)
{
    bool has_two_dirs = filch_op_has(op, FILCH_TRAIT_TWO_DIRS) && op->fd2 >= 0;
    call c = {.io = io,
              .op = op,
              .deadline_ns = deadline_ns,
              .own_fd = duplicate(op->fd),
              .own_fd2 = has_two_dirs ? duplicate(op->fd2) : -1};

    /* Without a duplicate the descriptor is a file: the call waits for a disk only, so a close can
     * wait for the call. For a terminal, which may be stopped for ever, there is a duplicate. */
    if (c.own_fd < 0 && op->fd >= 0)
        c.epoll = filch_io_epoll(io);
    filch_io_count_op(io->pool, op, 1);
    int err = filch_blocking_until(f, FILCH_LANE_FILES, call_on_thread, &c, deadline_ns);
    /* An open that waits for another process must not keep a thread: the other open may need it. */
    for (uint64_t pause_ns = FIRST_PAUSE_NS; !err && filch_op_waits_to_open(op);) {
        err = pause_until(f, &pause_ns, deadline_ns);
        if (!err)
            err = filch_blocking_until(f, FILCH_LANE_FILES, call_on_thread, &c, deadline_ns);
    }
    if (err)
        op->result = err;
    if (op->result < 0)
        filch_op_undo(op);
    filch_io_count_op(io->pool, op, -1u);
    if (c.own_fd >= 0)
        close(c.own_fd);
    if (c.own_fd2 >= 0)
        close(c.own_fd2);
}

/* ---- RETRY ----------------------------------------------------------------------------------- */

/* An event tells when to try again: wait for it. Returns 0: try again; or the error that ends the
 * operation. */
static int poll_until(filch_frame *f, filch_io *io, const filch_op *op, uint64_t deadline_ns)
{
    filch_op polling = filch_op_poll(op->fd, filch_op_events(op));

    filch_op_start(f, &polling);
    /* A close that has looked for operations in flight before the poll did not find it. */
    if (filch_io_has_closed(io, op))
        filch_op_cancel(f, &polling);
    ssize_t result = filch_op_wait(f, &polling, deadline_ns);
    return result == -ECANCELED || result == -ETIMEDOUT || result == -ENOMEM ? (int)result : 0;
}

static void try_until(filch_frame *f, filch_io *io, filch_op *op, uint64_t deadline_ns)
{
    filch_epoll *epoll = filch_io_epoll(io);
    uint64_t pause_ns = FIRST_PAUSE_NS;
    bool polls = filch_op_is_for_all(op);

    filch_io_count_op(io->pool, op, 1);
    for (bool is_over = false; !is_over;) {
        unsigned received = op->mode;
        int err =
            polls ? poll_until(f, io, op, deadline_ns) : pause_until(f, &pause_ns, deadline_ns);
        if (!err)
            err = begin_use(io, epoll, op);
        if (err) {
            filch_op_undo(op);
            op->result = filch_op_fail(op, err);
            break;
        }
        is_over = filch_op_try_at_once(op);
        end_use(epoll, op);
        if (!filch_op_is_for_all(op))
            continue;
        /* If the event brought no bytes, the next poll may report it at once, too: POLLERR lasts
         * while the socket's error queue has an entry. So pause before that poll. */
        polls = !polls || op->mode > received;
        if (op->mode > received)
            pause_ns = FIRST_PAUSE_NS;
    }
    filch_io_count_op(io->pool, op, -1u);
}

void filch_op_carry_out(filch_frame *f, filch_io *io, filch_op *op, filch_route route,
                        uint64_t deadline_ns)
{
    if (route == FILCH_ROUTE_THREAD)
        call_blocking(f, io, op, deadline_ns);
    else
        try_until(f, io, op, deadline_ns);
}

/* ---- the carrier ----------------------------------------------------------------------------- */

typedef struct carrier {
    filch_scope scope; /* has only the carrier's task; used to cancel it */
    filch_io *io;
    filch_op *op, own; /* the carrier carries out its own copy of the operation */
    filch_route route;
} carrier;

static void carry(filch_frame *f, filch_spawned *spawned, int refused)
{
    carrier *c = spawned->arg;

    if (!refused)
        filch_op_carry_out(f, c->io, &c->own, c->route, FILCH_NO_DEADLINE);
    filch_strand *strand =
        filch_op_complete(c->op, refused ? filch_op_fail(&c->own, refused) : c->own.result);
    if (strand)
        filch_strand_resume(strand);
}

bool filch_op_leave_to_task(filch_io *io, filch_op *op, filch_route route)
{
    filch_spawned *spawned;
    carrier *c = filch_calloc(1, sizeof *c);

    if (!c || filch_scope_open(NULL, &c->scope, io->pool, NULL))
        goto free_carrier;
    if (filch_spawn_task(NULL, &c->scope, carry, 0, &spawned))
        goto close_scope;
    c->io = io;
    c->op = op;
    c->own = *op;
    c->route = route;
    op->carrier = c;
    spawned->arg = c;
    filch_io_count_op(io->pool, op, 1);
    filch_spawn_go(spawned);
    return true;

close_scope:
    filch_scope_close(NULL, &c->scope);
free_carrier:
    free(c);
    return false;
}

void filch_op_cancel_task(filch_op *op)
{
    carrier *c = op->carrier;
    filch_scope_cancel(&c->scope);
}

void filch_op_end_task(filch_frame *f, filch_op *op)
{
    carrier *c = op->carrier;
    filch_frame *shield = filch_shield(f);

    filch_scope_close(f, &c->scope);
    filch_unshield(f, shield);
    free(c);
    op->carrier = NULL;
}
