/* SPDX-License-Identifier: MIT */
/*
 * Receiving: recv, recvmsg.
 *
 * With MSG_WAITALL, a non-blocking call returns the bytes that have come. So the operation counts
 * received bytes in `mode`, and the next call goes on behind them. A ring waits for all bytes by
 * itself. But if a close cancels the operation by mistake (README.md, Close), the operation ends
 * with the bytes that it has. Then its next entry goes on behind these, too.
 */
#include "io/entry.h"
#include "io/ops.h"

/* No system call receives more. */
#define RECEIVED_MAX 0x7ffff000u

/* Does the operation wait until its buffer is full? Not with MSG_PEEK: the bytes stay in the
 * socket, and the next call would return the same bytes. */
static bool is_for_all(const filch_op *op)
{
    return filch_op_has(op, FILCH_TRAIT_RECEIVES) && op->flags & MSG_WAITALL &&
           !(op->flags & (MSG_DONTWAIT | MSG_PEEK | MSG_OOB | MSG_ERRQUEUE));
}

ssize_t filch_op_fail(const filch_op *op, ssize_t err)
{
    return is_for_all(op) && op->mode > 0 ? (ssize_t)op->mode : err;
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
 * first call is kept. The control data is that of the last call. */
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
        message->msg_controllen = rest.msg_controllen;
        message->msg_flags = rest.msg_flags;
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

    if (!is_for_all(op))
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

bool filch_op_goes_on(filch_op *op, ssize_t result)
{
    if (result <= 0 || !is_for_all(op))
        return false;
    op->mode += (unsigned)result;
    /* The stream may have ended. Without POLL_FIRST the next entry reports that at once. */
    op->is_patient = false;
    return op->mode < bytes_to_receive(op) && is_stream(op->fd);
}

struct iovec filch_op_rest(const filch_op *op)
{
    const struct msghdr *message = op->buffer;
    struct iovec part = {op->buffer, op->bytes};
    size_t skip = op->mode, left = bytes_to_receive(op) - op->mode;

    for (size_t i = 0; op->code == FILCH_OP_RECVMSG && i < message->msg_iovlen; i++) {
        part = message->msg_iov[i];
        if (skip < part.iov_len)
            break;
        skip -= part.iov_len;
    }
    part.iov_base = (char *)part.iov_base + skip;
    part.iov_len -= skip;
    part.iov_len = part.iov_len < left ? part.iov_len : left;
    return part;
}

/* Fill the first entry, or an entry that goes on behind the bytes received so far. */
static void fill_receive(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    filch_fill_buffer(entry, opcode, op);
    entry->msg_flags = op->flags;
    if (opcode == IORING_OP_RECVMSG)
        entry->len = 1;
    if (op->mode > 0) {
        struct iovec rest = filch_op_rest(op);
        entry->opcode = IORING_OP_RECV;
        entry->addr = (uint64_t)(uintptr_t)rest.iov_base;
        entry->len = (uint32_t)rest.iov_len;
    }
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
