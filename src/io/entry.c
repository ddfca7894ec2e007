/* SPDX-License-Identifier: MIT */
/*
 * Operations as entries of a ring.
 */
#include "io/uring.h"

static void fill_path(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->path;
}

static void fill_buffer(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->buffer;
    entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
    entry->off = op->offset;
}

/* Or go on to receive, behind what has come. */
static void fill_receive(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    fill_buffer(entry, opcode, op);
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

static void fill_itself(struct io_uring_sqe *entry, const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_READ:
        fill_buffer(entry, IORING_OP_READ, op);
        break;
    case FILCH_OP_WRITE:
        fill_buffer(entry, IORING_OP_WRITE, op);
        break;
    case FILCH_OP_READV:
        fill_buffer(entry, IORING_OP_READV, op);
        break;
    case FILCH_OP_WRITEV:
        fill_buffer(entry, IORING_OP_WRITEV, op);
        break;
    case FILCH_OP_RECV:
        fill_receive(entry, IORING_OP_RECV, op);
        /* Nearly always there is nothing yet: do not try, just wait. */
        entry->ioprio = op->is_patient ? IORING_RECVSEND_POLL_FIRST : 0;
        break;
    case FILCH_OP_SEND:
        fill_buffer(entry, IORING_OP_SEND, op);
        entry->msg_flags = op->flags | MSG_NOSIGNAL;
        break;
    case FILCH_OP_RECVMSG:
        fill_receive(entry, IORING_OP_RECVMSG, op);
        break;
    case FILCH_OP_SENDMSG:
        fill_buffer(entry, IORING_OP_SENDMSG, op);
        entry->msg_flags = op->flags | MSG_NOSIGNAL;
        entry->len = 1;
        break;
    case FILCH_OP_ACCEPT:
        fill_buffer(entry, IORING_OP_ACCEPT, op);
        entry->addr2 = (uint64_t)(uintptr_t)op->path;
        entry->accept_flags = op->flags | SOCK_CLOEXEC;
        break;
    case FILCH_OP_CONNECT:
        fill_path(entry, IORING_OP_CONNECT, op);
        entry->off = op->bytes;
        break;
    case FILCH_OP_POLL:
        entry->opcode = IORING_OP_POLL_ADD;
        entry->fd = op->fd;
        entry->poll32_events = op->flags;
        break;
    case FILCH_OP_SPLICE:
        entry->opcode = IORING_OP_SPLICE;
        entry->fd = op->fd;
        entry->off = op->offset;
        entry->splice_fd_in = op->fd2;
        entry->splice_off_in = (uint64_t)(uintptr_t)op->path;
        entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
        entry->splice_flags = op->flags;
        break;
    case FILCH_OP_OPEN:
        fill_path(entry, IORING_OP_OPENAT, op);
        entry->open_flags = op->flags | O_CLOEXEC;
        entry->len = op->mode;
        /* At once the kernel opens what it finds in memory as if it were to be non-blocking, which makes a difference for pipes and devices. What can be opened at once has been. */
        entry->flags = IOSQE_ASYNC;
        break;
    case FILCH_OP_STATX:
        fill_path(entry, IORING_OP_STATX, op);
        entry->len = op->mode;
        entry->off = (uint64_t)(uintptr_t)op->buffer;
        entry->statx_flags = op->flags;
        break;
    case FILCH_OP_FSYNC:
        entry->opcode = IORING_OP_FSYNC;
        entry->fd = op->fd;
        entry->fsync_flags = op->flags ? IORING_FSYNC_DATASYNC : 0;
        break;
    case FILCH_OP_RENAME:
        fill_path(entry, IORING_OP_RENAMEAT, op);
        entry->len = (uint32_t)op->fd2;
        entry->off = (uint64_t)(uintptr_t)op->buffer;
        entry->rename_flags = op->flags;
        break;
    case FILCH_OP_UNLINK:
        fill_path(entry, IORING_OP_UNLINKAT, op);
        entry->unlink_flags = op->flags;
        break;
    case FILCH_OP_MKDIR:
        fill_path(entry, IORING_OP_MKDIRAT, op);
        entry->len = op->mode;
        break;
    default:
        /* Carried out at once, or on a thread. */
        break;
    }
}

static void fill_cancel(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    if (op->target != op) {
        entry->addr = (uint64_t)(uintptr_t)op->target;
    } else if (op->mode) {
        entry->len = op->mode;
        entry->cancel_flags = IORING_ASYNC_CANCEL_OP | IORING_ASYNC_CANCEL_ALL;
    } else {
        entry->fd = op->fd;
        entry->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
    }
}

static void fill_poll(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = filch_op_fd(op);
    entry->poll32_events = filch_op_events(op);
}

/* Accept again and again; or receive so, into buffers of the ring. */
static void fill_stream(struct io_uring_sqe *entry, const filch_op *op)
{
    fill_itself(entry, op);
    if (op->code == FILCH_OP_ACCEPT) {
        entry->ioprio = IORING_ACCEPT_MULTISHOT;
    } else {
        entry->ioprio = IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
        entry->flags = IOSQE_BUFFER_SELECT;
    }
}

void filch_op_fill(const filch_op *op, struct io_uring_sqe *entry)
{
    entry->user_data = (uint64_t)(uintptr_t)op;
    if (op->target)
        fill_cancel(entry, op);
    else if (op->stage == FILCH_STAGE_POLL)
        fill_poll(entry, op);
    else if (op->stage == FILCH_STAGE_STREAM)
        fill_stream(entry, op);
    else
        fill_itself(entry, op);
}
