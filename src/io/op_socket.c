/* SPDX-License-Identifier: MIT */
/*
 * Sockets: send, sendmsg, accept, connect, poll, shutdown. Receiving is in op_recv.c.
 */
#include "io/entry.h"
#include "io/ops.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

unsigned filch_events_in(const filch_op *op)
{
    (void)op;
    return POLLIN;
}

unsigned filch_events_out(const filch_op *op)
{
    (void)op;
    return POLLOUT;
}

/* ---- send, sendmsg --------------------------------------------------------------------------- */

static int send_flags(const filch_op *op)
{
    return (int)(op->flags | MSG_NOSIGNAL);
}

ssize_t filch_call_send(filch_op *op)
{
    return filch_result_of(send(op->fd, op->buffer, op->bytes, send_flags(op)));
}

ssize_t filch_try_send(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return filch_result_of(send(op->fd, op->buffer, op->bytes, send_flags(op) | MSG_DONTWAIT));
}

void filch_fill_send(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_SEND, op);
    entry->msg_flags = (uint32_t)send_flags(op);
}

ssize_t filch_call_sendmsg(filch_op *op)
{
    return filch_result_of(sendmsg(op->fd, op->buffer, send_flags(op)));
}

ssize_t filch_try_sendmsg(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return filch_result_of(sendmsg(op->fd, op->buffer, send_flags(op) | MSG_DONTWAIT));
}

void filch_fill_sendmsg(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_SENDMSG, op);
    entry->msg_flags = (uint32_t)send_flags(op);
    entry->len = 1;
}

/* ---- accept ---------------------------------------------------------------------------------- */

ssize_t filch_call_accept(filch_op *op)
{
    return filch_result_of(accept4(op->fd, op->buffer, (socklen_t *)(uintptr_t)op->path,
                                   (int)op->flags | SOCK_CLOEXEC));
}

ssize_t filch_try_accept(filch_op *op, bool is_ready)
{
    int flags = fcntl(op->fd, F_GETFL);
    (void)is_ready;

    /* The listener stays non-blocking: another task or process may be accepting from it, and would
     * block if it were blocking again. */
    if (flags < 0 || (!(flags & O_NONBLOCK) && fcntl(op->fd, F_SETFL, flags | O_NONBLOCK)))
        return -errno;
    return filch_call_accept(op);
}

void filch_fill_accept(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_ACCEPT, op);
    entry->addr2 = (uint64_t)(uintptr_t)op->path;
    entry->accept_flags = op->flags | SOCK_CLOEXEC;
}

/* ---- connect --------------------------------------------------------------------------------- */

/* Does it connect to a socket of this machine? Such a connect completes at once. If the queue of
 * the listener is full, the kernel reports no event when there is room. */
static bool is_local(const filch_op *op)
{
    const struct sockaddr *address = op->path;
    return address && op->bytes >= sizeof address->sa_family && address->sa_family == AF_UNIX;
}

unsigned filch_events_connect(const filch_op *op)
{
    return is_local(op) ? 0 : POLLOUT;
}

/* The result of a connect that was begun; -EAGAIN: it is still in progress. */
static ssize_t finish_connect(filch_op *op, int timeout_ms)
{
    int err = 0;
    socklen_t length = sizeof err;
    ssize_t events = filch_poll_fd(op->fd, POLLOUT, timeout_ms);

    while (events == -EINTR)
        events = filch_poll_fd(op->fd, POLLOUT, timeout_ms);
    if (events < 0)
        return events;
    return getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &err, &length) ? -errno : -err;
}

ssize_t filch_call_connect(filch_op *op)
{
    ssize_t result = filch_result_of(connect(op->fd, op->path, (socklen_t)op->bytes));
    return result == -EINTR || result == -EINPROGRESS ? finish_connect(op, -1) : result;
}

/* Two steps: begin (stage 0), and fetch the result when the descriptor is ready (stage 1). Stage 1
 * polls again: the event may have been about another file that had this number. `mode` keeps the
 * flags that the descriptor had. */
ssize_t filch_try_connect(filch_op *op, bool is_ready)
{
    (void)is_ready;
    if (op->stage == 0) {
        int flags = fcntl(op->fd, F_GETFL);
        if (flags < 0)
            return -errno;
        op->mode = (unsigned)flags;
        /* If the caller made a local socket non-blocking, connect(2) does not wait for the
         * queue. */
        op->flags = is_local(op) ? (unsigned)flags & O_NONBLOCK : 0;
        fcntl(op->fd, F_SETFL, flags | O_NONBLOCK);
        ssize_t result = filch_result_of(connect(op->fd, op->path, (socklen_t)op->bytes));
        if (result == -EINPROGRESS || result == -EINTR) {
            op->stage = 1;
            return -EAGAIN;
        }
        fcntl(op->fd, F_SETFL, flags);
        return result;
    }
    ssize_t result = finish_connect(op, 0);
    if (result != -EAGAIN)
        fcntl(op->fd, F_SETFL, (int)op->mode);
    return result;
}

void filch_undo_connect(filch_op *op)
{
    if (!op->source && op->stage == 1)
        fcntl(op->fd, F_SETFL, (int)op->mode);
}

void filch_fill_connect(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_CONNECT, op);
    entry->off = op->bytes;
}

/* ---- poll ------------------------------------------------------------------------------------ */

ssize_t filch_call_poll(filch_op *op)
{
    return filch_poll_fd(op->fd, op->flags, -1);
}

ssize_t filch_try_poll(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return filch_poll_fd(op->fd, op->flags, 0);
}

unsigned filch_events_poll(const filch_op *op)
{
    return op->flags | POLLERR | POLLHUP; /* the kernel reports these unasked */
}

void filch_fill_poll(const filch_op *op, struct io_uring_sqe *entry)
{
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = op->fd;
    entry->poll32_events = op->flags;
}

/* ---- shutdown -------------------------------------------------------------------------------- */

ssize_t filch_call_shutdown(filch_op *op)
{
    return filch_result_of(shutdown(op->fd, (int)op->flags));
}

ssize_t filch_try_shutdown(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return filch_call_shutdown(op);
}
