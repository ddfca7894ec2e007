/* SPDX-License-Identifier: MIT */
/*
 * What neither a ring nor an event carries out: on a thread for calls that block, or by trying again and again. The task waits meanwhile; if it goes on instead, a task of its own does so for it.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "block/blocking.h"
#include "io/io.h"
#include "io/op.h"
#include "wait/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <filch/scope.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between tries of what nothing else tells of. */
#define FIRST_PAUSE_NS 50000
#define LAST_PAUSE_NS 10000000

/* ---- on a thread ---------------------------------------------------------------------------------- */

typedef struct call {
    filch_io *io;
    filch_op *op;
    uint64_t deadline_ns;
    int own_fd; /* for the file of op->fd, and nobody else's; -1: there is none */
    filch_epoll *
        epoll; /* then it keeps op->fd from being closed while the call is made; NULL: nothing does */
} call;

/* Where the descriptor was closed before this began, its number may be another file's. Later the call has its own, or who closes it waits. */
static int call_on_thread(void *arg)
{
    const call *c = arg;
    filch_op *op = c->op;
    int fd = op->fd;

    op->result = c->epoll                         ? filch_epoll_begin_try(c->epoll, op)
                 : filch_io_has_closed(c->io, op) ? -ECANCELED
                                                  : 0;
    if (op->result)
        return 0;
    op->fd = c->own_fd >= 0 ? c->own_fd : fd;
    op->result =
        op->code == FILCH_OP_OPEN ? filch_op_open(op) : filch_op_call_until(op, c->deadline_ns);
    op->fd = fd;
    if (c->epoll)
        filch_epoll_end_try(c->epoll, op);
    return 0;
}

/* A descriptor of the same file, to be closed afterwards; -1: none. Not of what may have locks of fcntl(2): they end when any descriptor of the file is closed. */
static int duplicate(int fd)
{
    struct statx info;
    bool may_have_locks = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) ||
                          S_ISREG(info.stx_mode) || S_ISBLK(info.stx_mode);
    return may_have_locks ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Between two tries, for a time that grows. 0; or -ETIMEDOUT, -ECANCELED: there is to be no other. */
static int pause_until(filch_frame *f, uint64_t *pause_ns, uint64_t deadline_ns)
{
    uint64_t now_ns = filch_clock_ns(), next_ns = now_ns + *pause_ns;

    if (*pause_ns < LAST_PAUSE_NS)
        *pause_ns *= 2;
    return now_ns >= deadline_ns
               ? -ETIMEDOUT
               : filch_sleep_until(f, next_ns < deadline_ns ? next_ns : deadline_ns);
}

/* On a thread for calls that block. The task waits; if it is cancelled, or its deadline passes, or its descriptor is closed, before the call has begun, that was all. */
static void call_blocking(filch_frame *f, filch_io *io, filch_op *op, uint64_t deadline_ns)
{
    call c = {.io = io, .op = op, .deadline_ns = deadline_ns, .own_fd = duplicate(op->fd)};

    /* What is left waits for a disk, and a close can wait for that; a terminal may be stopped for ever. */
    if (c.own_fd < 0 && op->fd >= 0)
        c.epoll = filch_io_epoll(io);
    filch_io_count_op(io->pool, op, 1);
    int err = filch_blocking_until(f, FILCH_LANE_FILES, call_on_thread, &c, deadline_ns);
    /* An open that waits for somebody else must not keep a thread: it may be the one that the other needs. */
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
}

/* ---- again and again ------------------------------------------------------------------------------ */

/* Nothing tells when it can go on: a socket of this machine whose listener has no room in its queue, a descriptor that epoll has no memory for, or anything in a pool that has got no threads. So it is tried again and again,
 * with pauses that grow. */
static void try_until(filch_frame *f, filch_io *io, filch_op *op, uint64_t deadline_ns)
{
    filch_epoll *epoll = filch_io_epoll(io);
    uint64_t pause_ns = FIRST_PAUSE_NS;

    filch_io_count_op(io->pool, op, 1);
    for (bool is_over = false; !is_over;) {
        int err = pause_until(f, &pause_ns, deadline_ns);
        if (!err)
            err = epoll                         ? filch_epoll_begin_try(epoll, op)
                  : filch_io_has_closed(io, op) ? -ECANCELED
                                                : 0;
        if (err) {
            filch_op_undo(op);
            op->result = filch_op_fail(op, err);
            break;
        }
        is_over = filch_op_try_at_once(op);
        if (epoll)
            filch_epoll_end_try(epoll, op);
    }
    filch_io_count_op(io->pool, op, -1u);
}

void filch_op_carry_out(filch_frame *f, filch_io *io, filch_op *op, bool is_call,
                        uint64_t deadline_ns)
{
    if (is_call)
        call_blocking(f, io, op, deadline_ns);
    else
        try_until(f, io, op, deadline_ns);
}

/* ---- by a task of its own -------------------------------------------------------------------------- */

/* The task that starts an operation goes on, and nothing carries that out that could be told to: then another task waits for it. */
typedef struct carrier {
    filch_scope scope; /* of that task alone: to cancel it */
    filch_io *io;
    filch_op *op, own; /* and a copy for whoever carries it out */
    bool is_call;
} carrier;

static void carry(filch_frame *f, filch_spawned *spawned, int refused)
{
    carrier *c = spawned->arg;

    if (!refused)
        filch_op_carry_out(f, c->io, &c->own, c->is_call, FILCH_NO_DEADLINE);
    filch_strand *strand = filch_op_end(c->op, refused ? refused : c->own.result);
    if (strand)
        filch_strand_resume(strand);
}

bool filch_op_leave_to_task(filch_io *io, filch_op *op, bool is_call)
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
    c->is_call = is_call;
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
