/* SPDX-License-Identifier: MIT */
/*
 * Transfers of bytes from and to files, pipes and devices: read, write, readv, writev; and fsync.
 */
#include "io/entry.h"
#include "io/ops.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe that is ready for writing has room for this many bytes. */
#define PIPE_ROOM 4096

static bool is_read(const filch_op *op)
{
    return op->code == FILCH_OP_READ || op->code == FILCH_OP_READV;
}

static bool is_vector(const filch_op *op)
{
    return op->code == FILCH_OP_READV || op->code == FILCH_OP_WRITEV;
}

/* By preadv2(2) and pwritev2(2), which take flags. */
static ssize_t transfer(filch_op *op, int flags)
{
    struct iovec one = {op->buffer, op->bytes};
    const struct iovec *parts = is_vector(op) ? op->buffer : &one;
    int count = is_vector(op) ? (int)op->bytes : 1;
    off_t offset = (off_t)op->offset; /* FILCH_FILE_POSITION is -1 */

    if (is_read(op))
        return filch_result_of(preadv2(op->fd, parts, count, offset, flags));
    return filch_result_of(pwritev2(op->fd, parts, count, offset, flags));
}

ssize_t filch_call_transfer(filch_op *op)
{
    return transfer(op, 0);
}

/* Write the bytes that a ready pipe surely takes, from the first part that is not empty. */
static ssize_t write_some(const filch_op *op)
{
    struct iovec one = {op->buffer, op->bytes};
    const struct iovec *parts = is_vector(op) ? op->buffer : &one;
    size_t count = is_vector(op) ? op->bytes : 1;

    for (; count > 1 && parts->iov_len == 0; count--)
        parts++;
    one = count > 0 ? *parts : (struct iovec){NULL, 0};
    if (one.iov_len > PIPE_ROOM)
        one.iov_len = PIPE_ROOM;
    return filch_result_of(write(op->fd, one.iov_base, one.iov_len));
}

static bool is_pipe(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

/* The descriptor has no RWF_NOWAIT, but was reported as ready. Another operation may have taken the
 * data or the room, so poll once more. No other operation of this pool comes between the poll and
 * the call: one thread at a time tries the operations on a descriptor.
 *
 * Only pipes are written to. How much a terminal takes is not known, and for other devices one
 * write may be one message: -EOPNOTSUPP. */
static ssize_t transfer_ready(filch_op *op)
{
    ssize_t events = filch_poll_fd(op->fd, filch_op_events(op), 0);

    if (events < 0)
        return events;
    if (is_read(op))
        return transfer(op, 0);
    return is_pipe(op->fd) ? write_some(op) : -EOPNOTSUPP;
}

ssize_t filch_try_transfer(filch_op *op, bool is_ready)
{
    ssize_t result = transfer(op, RWF_NOWAIT);

    if (result != -EOPNOTSUPP)
        return result;
    if (!filch_op_events(op))
        return -EAGAIN;
    return is_ready ? transfer_ready(op) : -EOPNOTSUPP;
}

unsigned filch_events_stream_in(const filch_op *op)
{
    return op->offset == FILCH_FILE_POSITION ? POLLIN : 0;
}

unsigned filch_events_stream_out(const filch_op *op)
{
    return op->offset == FILCH_FILE_POSITION ? POLLOUT : 0;
}

bool filch_op_moves_position(const filch_op *op, bool *is_to_device)
{
    struct stat info;

    *is_to_device = false;
    if (!filch_op_has(op, FILCH_TRAIT_TRANSFERS) || op->offset != FILCH_FILE_POSITION ||
        fstat(op->fd, &info))
        return false;
    *is_to_device = S_ISCHR(info.st_mode) && !is_read(op);
    return S_ISREG(info.st_mode);
}

void filch_fill_read(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_READ, op);
}

void filch_fill_write(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_WRITE, op);
}

void filch_fill_readv(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_READV, op);
}

void filch_fill_writev(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_buffer(entry, IORING_OP_WRITEV, op);
}

/* ---- fsync ----------------------------------------------------------------------------------- */

ssize_t filch_call_fsync(filch_op *op)
{
    return filch_result_of(op->flags ? fdatasync(op->fd) : fsync(op->fd));
}

void filch_fill_fsync(const filch_op *op, struct io_uring_sqe *entry)
{
    entry->opcode = IORING_OP_FSYNC;
    entry->fd = op->fd;
    entry->fsync_flags = op->flags ? IORING_FSYNC_DATASYNC : 0;
}
