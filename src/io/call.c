/* SPDX-License-Identifier: MIT */
/*
 * Operations as plain system calls: those that block, and those that do not.
 */
#include "base/clock.h"
#include "io/io.h"

#include <errno.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* What a pipe that is ready for writing takes in any case. */
#define PIPE_ROOM 4096

const char *filch_op_name(const filch_op *op)
{
    static const char *const names[FILCH_OP_COUNT] = {
        "no operation",
#define FILCH_OP_NAME(name) #name,
        FILCH_OPS(FILCH_OP_NAME)
#undef FILCH_OP_NAME
    };
    return names[op->code];
}

static ssize_t result_of(long result)
{
    return result < 0 ? -errno : result;
}

static off_t offset_of(const filch_op *op)
{
    return (off_t)op->offset; /* FILCH_HERE_IN_FILE is -1 */
}

static unsigned send_flags(const filch_op *op)
{
    return op->flags | MSG_NOSIGNAL;
}

/* Reads and writes by preadv2(2), which takes flags. */
static ssize_t transfer(filch_op *op, int flags)
{
    struct iovec one = {op->buffer, op->bytes};
    bool is_vector = op->code == FILCH_OP_readv || op->code == FILCH_OP_writev;
    const struct iovec *parts = is_vector ? op->buffer : &one;
    int count = is_vector ? (int)op->bytes : 1;

    if (op->code == FILCH_OP_read || op->code == FILCH_OP_readv)
        return result_of(preadv2(op->fd, parts, count, offset_of(op), flags));
    return result_of(pwritev2(op->fd, parts, count, offset_of(op), flags));
}

static ssize_t accept_one(filch_op *op)
{
    return result_of(accept4(op->fd, op->buffer, (socklen_t *)(uintptr_t)op->path,
                             (int)op->flags | SOCK_CLOEXEC));
}

static ssize_t poll_now(int fd, unsigned events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = (short)events};
    int count = poll(&one, 1, timeout_ms);
    return count < 0 ? -errno : count == 0 ? -EAGAIN : (one.revents & POLLNVAL) ? -EBADF : one.revents;
}

static ssize_t splice_some(filch_op *op, unsigned flags)
{
    loff_t from = (loff_t)(intptr_t)op->path, to = (loff_t)op->offset;
    return result_of(splice(op->fd2, from < 0 ? NULL : &from, op->fd, to < 0 ? NULL : &to,
                            op->bytes, op->flags | flags));
}

static ssize_t call_once(filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_read:
    case FILCH_OP_write:
    case FILCH_OP_readv:
    case FILCH_OP_writev:
        return transfer(op, 0);
    case FILCH_OP_recv:
        return result_of(recv(op->fd, op->buffer, op->bytes, (int)op->flags));
    case FILCH_OP_send:
        return result_of(send(op->fd, op->buffer, op->bytes, (int)send_flags(op)));
    case FILCH_OP_recvmsg:
        return result_of(recvmsg(op->fd, op->buffer, (int)op->flags));
    case FILCH_OP_sendmsg:
        return result_of(sendmsg(op->fd, op->buffer, (int)send_flags(op)));
    case FILCH_OP_accept:
        return accept_one(op);
    case FILCH_OP_connect:
        return result_of(connect(op->fd, op->path, (socklen_t)op->bytes));
    case FILCH_OP_poll:
        return poll_now(op->fd, op->flags, -1);
    case FILCH_OP_splice:
        return splice_some(op, 0);
    case FILCH_OP_shutdown:
        return result_of(shutdown(op->fd, (int)op->flags));
    case FILCH_OP_open:
        return result_of(openat(op->fd, op->path, (int)op->flags | O_CLOEXEC, (mode_t)op->mode));
    case FILCH_OP_close:
        return result_of(close(op->fd));
    case FILCH_OP_statx:
        return result_of(statx(op->fd, op->path, (int)op->flags, op->mode, op->buffer));
    case FILCH_OP_fsync:
        return result_of(op->flags ? fdatasync(op->fd) : fsync(op->fd));
    case FILCH_OP_rename:
        return result_of(renameat2(op->fd, op->path, op->fd2, op->buffer, op->flags));
    case FILCH_OP_unlink:
        return result_of(unlinkat(op->fd, op->path, (int)op->flags));
    case FILCH_OP_mkdir:
        return result_of(mkdirat(op->fd, op->path, (mode_t)op->mode));
    case FILCH_OP_getdents:
        return result_of(syscall(SYS_getdents64, op->fd, op->buffer, op->bytes));
    case FILCH_OP_NONE:
    case FILCH_OP_COUNT:
        break;
    }
    return -EINVAL;
}

unsigned filch_op_events(const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_recv:
    case FILCH_OP_recvmsg:
    case FILCH_OP_accept:
        return POLLIN;
    case FILCH_OP_read:
    case FILCH_OP_readv:
        return op->offset == FILCH_HERE_IN_FILE ? POLLIN : 0;
    case FILCH_OP_send:
    case FILCH_OP_sendmsg:
    case FILCH_OP_connect:
        return POLLOUT;
    case FILCH_OP_write:
    case FILCH_OP_writev:
        return op->offset == FILCH_HERE_IN_FILE ? POLLOUT : 0;
    case FILCH_OP_poll:
        return op->flags;
    default:
        return 0;
    }
}

bool filch_op_moves_file(const filch_op *op)
{
    struct stat info;

    return op->code <= FILCH_OP_writev && op->offset == FILCH_HERE_IN_FILE &&
           fstat(op->fd, &info) == 0 && S_ISREG(info.st_mode);
}

/* ---- blocking ----------------------------------------------------------------------------------- */

/* A connect that was interrupted goes on by itself. */
static ssize_t finish_connect(filch_op *op)
{
    int err = 0;
    socklen_t length = sizeof err;
    ssize_t events = poll_now(op->fd, POLLOUT, -1);

    while (events == -EINTR)
        events = poll_now(op->fd, POLLOUT, -1);
    if (events < 0)
        return events;
    return getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &err, &length) ? -errno : -err;
}

/* -EAGAIN is no result of a call that blocks, unless it was asked for: the descriptor itself is non-blocking. */
static bool is_to_be_waited_for(const filch_op *op, ssize_t result)
{
    return result == -EAGAIN && filch_op_events(op) && !(op->flags & MSG_DONTWAIT && op->code != FILCH_OP_poll &&
                                                        op->code != FILCH_OP_accept);
}

ssize_t filch_op_call(filch_op *op)
{
    for (;;) {
        ssize_t result = call_once(op);
        if (op->code == FILCH_OP_connect && (result == -EINTR || result == -EINPROGRESS))
            return finish_connect(op);
        if (op->code == FILCH_OP_close && result == -EINTR)
            return 0; /* on Linux it is closed */
        if (is_to_be_waited_for(op, result))
            poll_now(op->fd, filch_op_events(op), -1);
        else if (result != -EINTR)
            return result;
    }
}

ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns)
{
    unsigned events = filch_op_events(op);

    if (deadline_ns == FILCH_NO_DEADLINE || !events)
        return filch_op_call(op);
    for (bool is_ready = false;;) {
        ssize_t result = filch_op_try(op, is_ready);
        if (!is_to_be_waited_for(op, result))
            return result == -EOPNOTSUPP ? filch_op_call(op) : result;
        uint64_t now_ns = filch_clock_ns();
        if (now_ns >= deadline_ns)
            return -ETIMEDOUT;
        uint64_t left_ms = (deadline_ns - now_ns + 999999) / 1000000;
        is_ready = poll_now(op->fd, events, left_ms > 3600000 ? 3600000 : (int)left_ms) > 0;
    }
}

/* ---- without blocking ------------------------------------------------------------------------------ */

static bool make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

/* Two steps: begun, and after the descriptor is ready its end. */
static ssize_t try_connect(filch_op *op, bool is_ready)
{
    if (op->stage == 0) {
        int flags = fcntl(op->fd, F_GETFL);
        if (flags < 0)
            return -errno;
        op->mode = (unsigned)flags;
        fcntl(op->fd, F_SETFL, flags | O_NONBLOCK);
        ssize_t result = result_of(connect(op->fd, op->path, (socklen_t)op->bytes));
        if (result == -EINPROGRESS || result == -EINTR) {
            op->stage = 1;
            return -EAGAIN;
        }
        /* A socket of this machine whose queue is full: -EAGAIN, and nothing to wait for. */
        fcntl(op->fd, F_SETFL, flags);
        return result == -EAGAIN ? -EOPNOTSUPP : result;
    }
    if (!is_ready && poll_now(op->fd, POLLOUT, 0) < 0)
        return -EAGAIN;
    fcntl(op->fd, F_SETFL, (int)op->mode);
    return finish_connect(op);
}

void filch_op_undo(filch_op *op)
{
    if (op->code == FILCH_OP_connect && !op->source && op->stage == 1)
        fcntl(op->fd, F_SETFL, (int)op->mode);
}

/* A stream that cannot be asked not to block, but is ready: what it takes or has now. */
static ssize_t transfer_ready(filch_op *op)
{
    filch_op some = *op;
    struct iovec first;

    if (op->code == FILCH_OP_writev) {
        first = *(const struct iovec *)op->buffer;
        some.code = FILCH_OP_write;
        some.buffer = first.iov_base;
        some.bytes = first.iov_len;
    }
    if (some.code == FILCH_OP_write && some.bytes > PIPE_ROOM)
        some.bytes = PIPE_ROOM;
    return transfer(&some, 0);
}

static ssize_t try_transfer(filch_op *op, bool is_ready)
{
    ssize_t result = transfer(op, RWF_NOWAIT);

    if (result != -EOPNOTSUPP)
        return result;
    if (!filch_op_events(op))
        return -EAGAIN;
    return is_ready ? transfer_ready(op) : -EAGAIN;
}

/* A descriptor of the path, if the kernel has all of it in memory; -EAGAIN else. */
static ssize_t open_cached(int at, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    ssize_t fd = result_of(syscall(SYS_openat2, at, path, &how, sizeof how));

    /* What may come from a kernel or a container that does not have the call says nothing. */
    return fd == -ENOSYS || fd == -EPERM || fd == -EINVAL || fd == -E2BIG ? -EAGAIN : fd;
}

/* An open that would wait for nobody: of a file or a directory, and not of a pipe or a device. */
static ssize_t try_open(filch_op *op)
{
    struct statx info;

    /* One that creates or cuts is no matter of the cache. */
    if (op->flags & (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)))
        return -EAGAIN;
    /* One that says so waits for nobody, whatever it opens. */
    if (op->flags & (O_PATH | O_DIRECTORY | O_NONBLOCK))
        return open_cached(op->fd, op->path, op->flags);
    ssize_t place = open_cached(op->fd, op->path, O_PATH | (op->flags & (O_NOFOLLOW | O_DIRECTORY)));
    if (place < 0)
        return place;
    bool is_plain = statx((int)place, "", AT_EMPTY_PATH, STATX_TYPE, &info) == 0 &&
                    (S_ISREG(info.stx_mode) || S_ISDIR(info.stx_mode));
    close((int)place);
    return is_plain ? open_cached(op->fd, op->path, op->flags) : -EAGAIN;
}

static ssize_t try_statx(filch_op *op)
{
    if (op->flags & AT_EMPTY_PATH && !*(const char *)op->path)
        return call_once(op); /* the inode is in memory */
    ssize_t place = open_cached(op->fd, op->path,
                                O_PATH | (op->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0u));
    if (place < 0)
        return place;
    ssize_t result = result_of(statx((int)place, "", (int)op->flags | AT_EMPTY_PATH, op->mode, op->buffer));
    close((int)place);
    return result;
}

static ssize_t try_once(filch_op *op, bool is_ready)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_read:
    case FILCH_OP_write:
    case FILCH_OP_readv:
    case FILCH_OP_writev:
        return try_transfer(op, is_ready);
    case FILCH_OP_recv:
        return result_of(recv(op->fd, op->buffer, op->bytes, (int)(op->flags | MSG_DONTWAIT)));
    case FILCH_OP_send:
        return result_of(send(op->fd, op->buffer, op->bytes, (int)(send_flags(op) | MSG_DONTWAIT)));
    case FILCH_OP_recvmsg:
        return result_of(recvmsg(op->fd, op->buffer, (int)(op->flags | MSG_DONTWAIT)));
    case FILCH_OP_sendmsg:
        return result_of(sendmsg(op->fd, op->buffer, (int)(send_flags(op) | MSG_DONTWAIT)));
    case FILCH_OP_accept:
        return make_nonblocking(op->fd) ? accept_one(op) : -errno;
    case FILCH_OP_connect:
        return try_connect(op, is_ready);
    case FILCH_OP_poll:
        return poll_now(op->fd, op->flags, 0);
    case FILCH_OP_shutdown:
    case FILCH_OP_close:
        return call_once(op);
    case FILCH_OP_open:
        return try_open(op);
    case FILCH_OP_statx:
        return try_statx(op);
    default:
        return -EAGAIN;
    }
}

ssize_t filch_op_try(filch_op *op, bool is_ready)
{
    ssize_t result;

    do
        result = try_once(op, is_ready);
    while (result == -EINTR && op->code != FILCH_OP_close);
    return op->code == FILCH_OP_close && result == -EINTR ? 0 : result;
}

bool filch_op_is_tried_first(const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_recv:
    case FILCH_OP_recvmsg:
        return op->flags & MSG_DONTWAIT;
    case FILCH_OP_accept:
    case FILCH_OP_connect:
    case FILCH_OP_poll:
        return false;
    case FILCH_OP_write:
    case FILCH_OP_writev:
        /* Few file systems can write without waiting; streams are asked by the ring. */
        return false;
    case FILCH_OP_read:
    case FILCH_OP_readv:
        /* Files, for their cache. Streams most often have nothing yet when they are asked. */
        return op->offset != FILCH_HERE_IN_FILE;
    default:
        return true;
    }
}
