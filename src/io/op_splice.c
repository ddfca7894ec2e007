/* SPDX-License-Identifier: MIT */
/*
 * Splices, from fd2 to fd: the only operation that waits for two descriptors.
 */
#include "io/entry.h"
#include "io/ops.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

/* The side that a splice waits for, in its `mode`; 0: not known. */
enum { SPLICE_FOR_INPUT = 1, SPLICE_FOR_ROOM = 2 };

static ssize_t splice_some(filch_op *op, unsigned flags)
{
    loff_t from = (loff_t)(intptr_t)op->path, to = (loff_t)op->offset;
    return filch_result_of(splice(op->fd2, from < 0 ? NULL : &from, op->fd, to < 0 ? NULL : &to,
                                  op->bytes, op->flags | flags));
}

ssize_t filch_call_splice(filch_op *op)
{
    if (op->flags & SPLICE_F_NONBLOCK)
        filch_splice_prepare(op);
    return splice_some(op, 0);
}

ssize_t filch_try_splice(filch_op *op, bool is_ready)
{
    ssize_t result = splice_some(op, SPLICE_F_NONBLOCK);
    (void)is_ready;

    if (result == -EAGAIN)
        filch_splice_find_side(op);
    return result;
}

void filch_fill_splice(const filch_op *op, struct io_uring_sqe *entry)
{
    entry->opcode = IORING_OP_SPLICE;
    entry->fd = op->fd;
    entry->off = op->offset;
    entry->splice_fd_in = op->fd2;
    entry->splice_off_in = (uint64_t)(uintptr_t)op->path;
    entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
    entry->splice_flags = op->flags;
}

unsigned filch_events_splice(const filch_op *op)
{
    if (filch_op_is_dontwait(op))
        return 0;
    return op->mode == SPLICE_FOR_INPUT ? POLLIN : op->mode == SPLICE_FOR_ROOM ? POLLOUT : 0;
}

void filch_splice_find_side(filch_op *op)
{
    op->mode = filch_poll_fd(op->fd2, POLLIN, 0) > 0 ? SPLICE_FOR_ROOM : SPLICE_FOR_INPUT;
}

int filch_splice_fd(const filch_op *op)
{
    return op->mode == SPLICE_FOR_INPUT ? op->fd2 : op->fd;
}

void filch_splice_prepare(const filch_op *op)
{
    struct stat info;
    int flags = fcntl(op->fd, F_GETFL);

    if (flags >= 0 && !(flags & O_NONBLOCK) && fstat(op->fd, &info) == 0 && S_ISSOCK(info.st_mode))
        fcntl(op->fd, F_SETFL, flags | O_NONBLOCK);
}
