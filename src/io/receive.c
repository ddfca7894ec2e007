/* SPDX-License-Identifier: MIT */
/*
 * Receiving by plain system calls, also until all has come; and what of that is to be known of rings.
 *
 * With MSG_WAITALL a call that does not block returns what is there. So the operation counts what it has, and the next call goes on behind that. A ring waits for all by itself, but when it takes an operation back by
 * mistake, that ends with what it has: then the next entry goes on behind that, too.
 */
#include "io/io.h"

#include <errno.h>

/* No system call receives more. */
#define RECEIVED_MAX 0x7ffff000u

static ssize_t result_of(long result)
{
    return result < 0 ? -errno : result;
}

/* Does it wait until its buffer is full? What has come so far is counted in its `mode`. With MSG_PEEK nothing is taken, and there would be nothing new to wait for. */
static bool is_for_all(const filch_op *op)
{
    return (op->code == FILCH_OP_RECV || op->code == FILCH_OP_RECVMSG) && op->flags & MSG_WAITALL &&
           !(op->flags & (MSG_DONTWAIT | MSG_PEEK | MSG_OOB | MSG_ERRQUEUE));
}

void filch_op_begin(filch_op *op)
{
    op->stage = 0;
    if (op->code == FILCH_OP_RECV || op->code == FILCH_OP_RECVMSG)
        op->mode = 0;
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

/* The rest of a message, or the first parts of that. What its first part had to say of its sender stays; of what came beside the bytes the last counts. */
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
    ssize_t got = result_of(recvmsg(op->fd, &rest, flags));
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
        return result_of(recv(op->fd, (char *)op->buffer + op->mode, op->bytes - op->mode, flags));
    if (op->mode > 0)
        return receive_rest(op, flags);
    /* The call writes how much of that room it has used. */
    op->bytes = message ? message->msg_controllen : 0;
    return result_of(recvmsg(op->fd, message, flags));
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/* Descriptors came with the bytes: others that may follow would take their place, so the kernel ends it there, too. */
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

ssize_t filch_op_receive(filch_op *op, unsigned more)
{
    if (!is_for_all(op))
        return receive_some(op, (int)(op->flags | more));
    for (;;) {
        ssize_t got = receive_some(op, (int)(op->flags | more));
        if (got == -EAGAIN || got == -EINTR)
            return got;
        if (got <= 0)
            return filch_op_fail(op, got);
        op->mode += (unsigned)got;
        if (op->mode >= bytes_to_receive(op) || !is_stream(op->fd) || has_descriptors(op))
            return (ssize_t)op->mode;
    }
}

bool filch_op_goes_on(filch_op *op, ssize_t result)
{
    if (result <= 0 || !is_for_all(op))
        return false;
    op->mode += (unsigned)result;
    /* Perhaps that was the end of the stream: then it is told at once. */
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
