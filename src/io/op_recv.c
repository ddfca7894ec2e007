/* SPDX-License-Identifier: MIT */
/*
 * Receiving: recv, recvmsg.
 *
 * With MSG_WAITALL, a non-blocking call returns the bytes that have come. So the operation counts
 * received bytes in `mode`, and the next call goes on behind them. Such an operation goes to no
 * ring. There it would miss three things (Linux 6.18):
 *   - descriptors that come with the bytes;
 *   - the end of an AF_UNIX stream, if that comes with the last bytes;
 *   - the end of a message.
 */
#include "io/entry.h"
#include "io/ops.h"

/* No system call receives more. */
#define RECEIVED_MAX 0x7ffff000u

/* Not with MSG_PEEK: the bytes stay in the socket, and the next call would return the same
 * bytes. */
bool filch_op_is_for_all(const filch_op *op)
{
    return filch_op_has(op, FILCH_TRAIT_RECEIVES) && op->flags & MSG_WAITALL &&
           !(op->flags & (MSG_DONTWAIT | MSG_PEEK | MSG_OOB | MSG_ERRQUEUE));
}

ssize_t filch_op_fail(const filch_op *op, ssize_t err)
{
    return filch_op_is_for_all(op) && op->mode > 0 ? (ssize_t)op->mode : err;
}

static size_t bytes_to_receive(const filch_op *op)
{
    const struct msghdr *message = op->buffer;
    size_t bytes = op->bytes;

    if (op->code == FILCH_OP_RECVMSG) {
        bytes = 0;
        for (size_t i = 0; i < message->msg_iovlen && bytes < RECEIVED_MAX; i++)
            bytes += message->msg_iov[i].iov_len;
    }
    return bytes < RECEIVED_MAX ? bytes : RECEIVED_MAX;
}

/* Receive the rest of a message, or the first eight parts of the rest. The sender reported by the
 * first call is kept. The control data is that of the last call that had any. */
static ssize_t receive_rest(filch_op *op, int flags)
{
    struct msghdr *message = op->buffer, rest = *message;
    struct iovec parts[8];
    size_t skip = op->mode, count = 0;

    for (size_t i = 0; i < message->msg_iovlen && count < sizeof parts / sizeof *parts; i++) {
        struct iovec part = message->msg_iov[i];
        if (skip < part.iov_len)
            parts[count++] = (struct iovec){(char *)part.iov_base + skip, part.iov_len - skip};
        skip -= skip < part.iov_len ? skip : part.iov_len;
    }
    rest.msg_iov = parts;
    rest.msg_iovlen = count;
    rest.msg_name = NULL;
    rest.msg_namelen = 0;
    rest.msg_controllen = op->bytes;
    ssize_t got = filch_result_of(recvmsg(op->fd, &rest, flags));
    if (got >= 0) {
        if (rest.msg_controllen > 0)
            message->msg_controllen = rest.msg_controllen;
        message->msg_flags = rest.msg_flags | (message->msg_flags & MSG_CTRUNC);
    }
    return got;
}

static ssize_t receive_some(filch_op *op, int flags)
{
    struct msghdr *message = op->buffer;

    if (op->code == FILCH_OP_RECV)
        return filch_result_of(
            recv(op->fd, (char *)op->buffer + op->mode, op->bytes - op->mode, flags));
    if (op->mode > 0)
        return receive_rest(op, flags);
    /* Keep the size of the control buffer: the call overwrites it with the number of bytes used. */
    op->bytes = message ? message->msg_controllen : 0;
    return filch_result_of(recvmsg(op->fd, message, flags));
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/* Have descriptors come with the bytes? Another call could overwrite them, so the operation ends,
 * as the kernel's own MSG_WAITALL does. */
static bool has_descriptors(const filch_op *op)
{
    struct msghdr *message = op->buffer;

    if (op->code != FILCH_OP_RECVMSG)
        return false;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS)
            return true;
    return false;
}

static ssize_t receive(filch_op *op, unsigned more_flags)
{
    int flags = (int)(op->flags | more_flags);

    if (!filch_op_is_for_all(op))
        return receive_some(op, flags);
    for (;;) {
        ssize_t got = receive_some(op, flags);
        if (got == -EAGAIN || got == -EINTR)
            return got;
        if (got <= 0)
            return filch_op_fail(op, got);
        op->mode += (unsigned)got;
        if (op->mode >= bytes_to_receive(op) || !is_stream(op->fd) || has_descriptors(op))
            return (ssize_t)op->mode;
    }
}

ssize_t filch_call_recv(filch_op *op)
{
    return receive(op, 0);
}

ssize_t filch_try_recv(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return receive(op, MSG_DONTWAIT);
}

/* ---- on a ring ------------------------------------------------------------------------------- */

static void fill_receive(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    filch_fill_buffer(entry, opcode, op);
    entry->msg_flags = op->flags;
    if (opcode == IORING_OP_RECVMSG)
        entry->len = 1;
}

void filch_fill_recv(const filch_op *op, struct io_uring_sqe *entry)
{
    fill_receive(entry, IORING_OP_RECV, op);
    /* Nearly always no bytes have come yet, so wait without a first try. */
    entry->ioprio = op->is_patient ? IORING_RECVSEND_POLL_FIRST : 0;
}

void filch_fill_recvmsg(const filch_op *op, struct io_uring_sqe *entry)
{
    fill_receive(entry, IORING_OP_RECVMSG, op);
}
