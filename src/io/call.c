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

/* Between tries of what no event tells of. */
#define LAST_PAUSE_MS 10

const char *filch_op_name(const filch_op *op)
{
    static const char *const names[FILCH_OP_COUNT] = {"no operation",
#define FILCH_OP_NAME(CODE, name) #name,
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
    return (off_t)op->offset; /* FILCH_FILE_POSITION is -1 */
}

static unsigned send_flags(const filch_op *op)
{
    return op->flags | MSG_NOSIGNAL;
}

/* Reads and writes by preadv2(2), which takes flags. */
static ssize_t transfer(filch_op *op, int flags)
{
    struct iovec one = {op->buffer, op->bytes};
    bool is_vector = op->code == FILCH_OP_READV || op->code == FILCH_OP_WRITEV;
    const struct iovec *parts = is_vector ? op->buffer : &one;
    int count = is_vector ? (int)op->bytes : 1;

    if (op->code == FILCH_OP_READ || op->code == FILCH_OP_READV)
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
    return count < 0                  ? -errno
           : count == 0               ? -EAGAIN
           : (one.revents & POLLNVAL) ? -EBADF
                                      : one.revents;
}

static ssize_t splice_some(filch_op *op, unsigned flags)
{
    loff_t from = (loff_t)(intptr_t)op->path, to = (loff_t)op->offset;
    return result_of(splice(op->fd2, from < 0 ? NULL : &from, op->fd, to < 0 ? NULL : &to,
                            op->bytes, op->flags | flags));
}

/* What a splice waits for, in its `mode`. */
enum { SPLICE_FOR_INPUT = 1, SPLICE_FOR_ROOM = 2 };

void filch_op_find_wait(filch_op *op)
{
    if (op->code == FILCH_OP_SPLICE)
        op->mode = poll_now(op->fd2, POLLIN, 0) > 0 ? SPLICE_FOR_ROOM : SPLICE_FOR_INPUT;
}

int filch_op_fd(const filch_op *op)
{
    return op->code == FILCH_OP_SPLICE && op->mode == SPLICE_FOR_INPUT ? op->fd2 : op->fd;
}

static ssize_t try_splice(filch_op *op)
{
    ssize_t result = splice_some(op, SPLICE_F_NONBLOCK);

    if (result == -EAGAIN)
        filch_op_find_wait(op);
    return result;
}

static ssize_t call_once(filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_READ:
    case FILCH_OP_WRITE:
    case FILCH_OP_READV:
    case FILCH_OP_WRITEV:
        return transfer(op, 0);
    case FILCH_OP_RECV:
    case FILCH_OP_RECVMSG:
        return filch_op_receive(op, 0);
    case FILCH_OP_SEND:
        return result_of(send(op->fd, op->buffer, op->bytes, (int)send_flags(op)));
    case FILCH_OP_SENDMSG:
        return result_of(sendmsg(op->fd, op->buffer, (int)send_flags(op)));
    case FILCH_OP_ACCEPT:
        return accept_one(op);
    case FILCH_OP_CONNECT:
        return result_of(connect(op->fd, op->path, (socklen_t)op->bytes));
    case FILCH_OP_POLL:
        return poll_now(op->fd, op->flags, -1);
    case FILCH_OP_SPLICE:
        if (op->flags & SPLICE_F_NONBLOCK)
            filch_op_prepare_splice(op);
        return splice_some(op, 0);
    case FILCH_OP_SHUTDOWN:
        return result_of(shutdown(op->fd, (int)op->flags));
    case FILCH_OP_OPEN:
        return result_of(openat(op->fd, op->path, (int)op->flags | O_CLOEXEC, (mode_t)op->mode));
    case FILCH_OP_CLOSE:
        return result_of(close(op->fd));
    case FILCH_OP_STATX:
        return result_of(statx(op->fd, op->path, (int)op->flags, op->mode, op->buffer));
    case FILCH_OP_FSYNC:
        return result_of(op->flags ? fdatasync(op->fd) : fsync(op->fd));
    case FILCH_OP_RENAME:
        return result_of(renameat2(op->fd, op->path, op->fd2, op->buffer, op->flags));
    case FILCH_OP_UNLINK:
        return result_of(unlinkat(op->fd, op->path, (int)op->flags));
    case FILCH_OP_MKDIR:
        return result_of(mkdirat(op->fd, op->path, (mode_t)op->mode));
    case FILCH_OP_GETDENTS:
        return result_of(syscall(SYS_getdents64, op->fd, op->buffer, op->bytes));
    case FILCH_OP_NONE:
    case FILCH_OP_COUNT:
        break;
    }
    return -EINVAL;
}

/* Is it a connect to a socket of this machine? It is made at once; if the queue of the listener is full, the kernel tells nobody else when it has room. */
static bool is_connect_here(const filch_op *op)
{
    const struct sockaddr *address = op->path;
    return op->code == FILCH_OP_CONNECT && address && op->bytes >= sizeof address->sa_family &&
           address->sa_family == AF_UNIX;
}

unsigned filch_op_events(const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_RECV:
    case FILCH_OP_RECVMSG:
    case FILCH_OP_ACCEPT:
        return POLLIN;
    case FILCH_OP_READ:
    case FILCH_OP_READV:
        return op->offset == FILCH_FILE_POSITION ? POLLIN : 0;
    case FILCH_OP_SEND:
    case FILCH_OP_SENDMSG:
        return POLLOUT;
    case FILCH_OP_CONNECT:
        return is_connect_here(op) ? 0 : POLLOUT;
    case FILCH_OP_WRITE:
    case FILCH_OP_WRITEV:
        return op->offset == FILCH_FILE_POSITION ? POLLOUT : 0;
    case FILCH_OP_POLL:
        return op->flags | POLLERR | POLLHUP; /* these come unasked */
    case FILCH_OP_SPLICE:
        if (filch_op_is_impatient(op))
            return 0;
        return op->mode == SPLICE_FOR_INPUT ? POLLIN : op->mode == SPLICE_FOR_ROOM ? POLLOUT : 0;
    default:
        return 0;
    }
}

bool filch_op_is_impatient(const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_RECV:
    case FILCH_OP_SEND:
    case FILCH_OP_RECVMSG:
    case FILCH_OP_SENDMSG:
        return op->flags & MSG_DONTWAIT;
    case FILCH_OP_SPLICE:
        return op->flags & SPLICE_F_NONBLOCK;
    case FILCH_OP_CONNECT:
        return is_connect_here(op) &&
               op->mode & O_NONBLOCK; /* as the system call: it was so before */
    default:
        return false;
    }
}

static bool is_transfer(const filch_op *op)
{
    return op->code >= FILCH_OP_READ && op->code <= FILCH_OP_WRITEV;
}

bool filch_op_has_to_be_ready(const filch_op *op)
{
    return is_transfer(op) && op->result == -EOPNOTSUPP;
}

bool filch_op_moves_file(const filch_op *op, bool *is_to_device)
{
    struct stat info;

    *is_to_device = false;
    if (!is_transfer(op) || op->offset != FILCH_FILE_POSITION || fstat(op->fd, &info))
        return false;
    *is_to_device =
        S_ISCHR(info.st_mode) && (op->code == FILCH_OP_WRITE || op->code == FILCH_OP_WRITEV);
    return S_ISREG(info.st_mode);
}

/* ---- blocking ----------------------------------------------------------------------------------- */

/* A connect that was begun goes on by itself. How it ended; -EAGAIN: it has not. */
static ssize_t finish_connect(filch_op *op, int timeout_ms)
{
    int err = 0;
    socklen_t length = sizeof err;
    ssize_t events = poll_now(op->fd, POLLOUT, timeout_ms);

    while (events == -EINTR)
        events = poll_now(op->fd, POLLOUT, timeout_ms);
    if (events < 0)
        return events;
    return getsockopt(op->fd, SOL_SOCKET, SO_ERROR, &err, &length) ? -errno : -err;
}

/* -EAGAIN is no result of a call that blocks, unless it was asked for: the descriptor itself is non-blocking. */
static bool is_to_be_waited_for(const filch_op *op, ssize_t result)
{
    return result == -EAGAIN && !filch_op_is_impatient(op) && filch_op_events(op);
}

ssize_t filch_op_call(filch_op *op)
{
    for (;;) {
        ssize_t result = call_once(op);
        if (op->code == FILCH_OP_CONNECT)
            return result == -EINTR || result == -EINPROGRESS ? finish_connect(op, -1) : result;
        if (op->code == FILCH_OP_CLOSE && result == -EINTR)
            return 0; /* on Linux it is closed */
        if (result == -EAGAIN)
            filch_op_find_wait(op);
        if (is_to_be_waited_for(op, result))
            poll_now(filch_op_fd(op), filch_op_events(op), -1);
        else if (result != -EINTR)
            return result;
    }
}

/* Wait for its events, or where none tell, for a while. True: it is ready. */
static bool wait_until(const filch_op *op, uint64_t left_ns, int pause_ms)
{
    uint64_t left_ms = (left_ns + 999999) / 1000000;
    int timeout_ms = left_ms > 3600000 ? 3600000 : (int)left_ms;

    if (filch_op_events(op))
        return poll_now(filch_op_fd(op), filch_op_events(op), timeout_ms) > 0;
    poll(NULL, 0, timeout_ms < pause_ms ? timeout_ms : pause_ms);
    return false;
}

/* Has somebody opened a FIFO for writing, which was opened for reading without waiting for that? Of one who has closed it again poll(2) tells, of others tee(2), and leaves what is in there. 0; -EAGAIN: nobody has; or -errno. */
static ssize_t find_writer(int fd)
{
    int ends[2];

    if (poll_now(fd, POLLIN, 0) > 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    ssize_t result = tee(fd, ends[1], 1, SPLICE_F_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
    return result == 0 ? -EAGAIN : 0;
}

/* Of a file and of a FIFO, for whose reader or writer, or the holder of whose lease, an open may have to wait. It is opened non-blocking, which tells of all but a writer that is missing; its descriptor is in `fd2` until there is one. */
ssize_t filch_op_open(filch_op *op)
{
    struct stat info;
    int flags = (int)op->flags;

    if (op->fd2 < 0) {
        bool may_wait =
            !(flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) &&
            fstatat(op->fd, op->path, &info, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) == 0 &&
            (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode));
        op->stage = may_wait;
        if (!may_wait)
            return filch_op_call(op);
        ssize_t fd =
            result_of(openat(op->fd, op->path, flags | O_CLOEXEC | O_NONBLOCK, (mode_t)op->mode));
        if (fd < 0)
            return fd == -EINTR || (fd == -ENXIO && S_ISFIFO(info.st_mode)) ? -EAGAIN : fd;
        op->fd2 = (int)fd;
    }
    ssize_t err = (flags & O_ACCMODE) == O_RDONLY ? find_writer(op->fd2) : 0;
    if (err == -EAGAIN)
        return err;
    if (err || fcntl(op->fd2, F_SETFL, flags)) {
        err = err ? err : -errno;
        filch_op_undo(op);
        return err;
    }
    int fd = op->fd2;
    op->fd2 = -1;
    return fd;
}

bool filch_op_waits_to_open(const filch_op *op)
{
    return op->code == FILCH_OP_OPEN && op->stage && op->result == -EAGAIN;
}

ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns)
{
    bool is_splice = op->code == FILCH_OP_SPLICE, is_open = op->code == FILCH_OP_OPEN;
    int pause_ms = 1;

    if (deadline_ns == FILCH_NO_DEADLINE ||
        (!is_splice && !is_open && !is_connect_here(op) && !filch_op_events(op)))
        return filch_op_call(op);
    if (is_splice)
        filch_op_prepare_splice(op);
    for (bool is_ready = false;;) {
        op->result = is_open ? filch_op_open(op) : filch_op_try(op, is_ready);
        bool is_full = op->result == -EAGAIN && is_connect_here(op) && !filch_op_is_impatient(op);
        if (!is_full && !filch_op_waits_to_open(op) && !is_to_be_waited_for(op, op->result) &&
            (is_ready || !filch_op_has_to_be_ready(op)))
            return filch_op_has_to_be_ready(op) ? filch_op_call(op) : op->result;
        uint64_t now_ns = filch_clock_ns();
        if (now_ns >= deadline_ns) {
            filch_op_undo(op);
            return filch_op_fail(op, -ETIMEDOUT);
        }
        is_ready = wait_until(op, deadline_ns - now_ns, pause_ms);
        pause_ms += pause_ms < LAST_PAUSE_MS;
    }
}

/* ---- without blocking ------------------------------------------------------------------------------ */

static bool make_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

void filch_op_prepare_splice(const filch_op *op)
{
    struct stat info;
    int flags = fcntl(op->fd, F_GETFL);

    if (flags >= 0 && !(flags & O_NONBLOCK) && fstat(op->fd, &info) == 0 && S_ISSOCK(info.st_mode))
        fcntl(op->fd, F_SETFL, flags | O_NONBLOCK);
}

/* Two steps: begun, and after the descriptor is ready its end. Whether it is ready is asked anew: the event may have been of another file that had this number. */
static ssize_t try_connect(filch_op *op)
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
        fcntl(op->fd, F_SETFL, flags);
        return result;
    }
    ssize_t result = finish_connect(op, 0);
    if (result != -EAGAIN)
        fcntl(op->fd, F_SETFL, (int)op->mode);
    return result;
}

void filch_op_undo(filch_op *op)
{
    if (op->code == FILCH_OP_CONNECT && !op->source && op->stage == 1)
        fcntl(op->fd, F_SETFL, (int)op->mode);
    if (op->code == FILCH_OP_OPEN && op->fd2 >= 0) {
        close(op->fd2);
        op->fd2 = -1;
    }
}

/* As much as a pipe takes in any case when it is ready: of the first part that has something. */
static ssize_t write_some(const filch_op *op)
{
    struct iovec one = {op->buffer, op->bytes};
    const struct iovec *parts = op->code == FILCH_OP_WRITEV ? op->buffer : &one;
    size_t count = op->code == FILCH_OP_WRITEV ? op->bytes : 1;

    for (; count > 1 && parts->iov_len == 0; count--)
        parts++;
    one = count > 0 ? *parts : (struct iovec){NULL, 0};
    if (one.iov_len > PIPE_ROOM)
        one.iov_len = PIPE_ROOM;
    return result_of(write(op->fd, one.iov_base, one.iov_len));
}

static bool is_pipe(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

/* A stream that cannot be asked not to block, but has been ready: what it takes or has now. Another operation may have had that since, so it is asked once more; between that and the
 * call nobody else comes: one thread at a time tries what is about a descriptor. How much a terminal takes nobody knows, and to other devices what is written at once may be one message: -EOPNOTSUPP. */
static ssize_t transfer_ready(filch_op *op)
{
    ssize_t events = poll_now(op->fd, filch_op_events(op), 0);

    if (events < 0)
        return events;
    if (op->code == FILCH_OP_READ || op->code == FILCH_OP_READV)
        return transfer(op, 0);
    return is_pipe(op->fd) ? write_some(op) : -EOPNOTSUPP;
}

static ssize_t try_transfer(filch_op *op, bool is_ready)
{
    ssize_t result = transfer(op, RWF_NOWAIT);

    if (result != -EOPNOTSUPP)
        return result;
    if (!filch_op_events(op))
        return -EAGAIN;
    return is_ready ? transfer_ready(op) : -EOPNOTSUPP;
}

/* A descriptor of the path, if the kernel has all of it in memory; -EAGAIN else. */
static ssize_t open_cached(int at, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED | resolve};
    ssize_t fd = result_of(syscall(SYS_openat2, at, path, &how, sizeof how));

    /* What may come from a kernel or a container that does not have the call says nothing. */
    return fd == -ENOSYS || fd == -EPERM || fd == -EINVAL || fd == -E2BIG ? -EAGAIN : fd;
}

/* Attributes without asking anybody, of a file system that lies here; -EAGAIN: it does not. There what the kernel has is all there is. */
static ssize_t statx_local(int fd, unsigned flags, unsigned mask, struct statx *info)
{
    flags = (flags & ~(unsigned)AT_STATX_SYNC_TYPE) | AT_STATX_DONT_SYNC | AT_EMPTY_PATH;
    ssize_t result = result_of(statx(fd, "", (int)flags, mask, info));
    return result == 0 && !filch_mount_is_local(info) ? -EAGAIN : result;
}

/* An open of a file or a directory may wait for somebody who has a lease on it (fcntl(2)), unless it is non-blocking; so it is, and afterwards it is not. If the path leads to something else by now, that makes a difference: -EAGAIN. */
static ssize_t open_without_lease(const filch_op *op)
{
    struct stat info;
    ssize_t fd = open_cached(op->fd, op->path, op->flags | O_NONBLOCK, 0);

    if (fd < 0 || (fstat((int)fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
                   fcntl((int)fd, F_SETFL, (int)op->flags) == 0))
        return fd;
    close((int)fd);
    return -EAGAIN;
}

/* An open that would wait for nobody: of a file or a directory, and not of a pipe or a device, on a file system that lies here: to open a file is a question to its file system, even when the way to it is in
 * memory. */
static ssize_t try_open(filch_op *op)
{
    struct statx info;
    bool waits_for_nobody = op->flags & (O_DIRECTORY | O_NONBLOCK);

    /* One that creates or cuts is no matter of the cache. */
    if (op->flags & (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)))
        return -EAGAIN;
    /* This one asks nobody. */
    if (op->flags & O_PATH)
        return open_cached(op->fd, op->path, op->flags, 0);
    /* From a directory that is known to lie here (dir.c), as long as the way leads to no other file system. */
    if (waits_for_nobody && op->bytes) {
        ssize_t fd = open_cached(op->fd, op->path, op->flags, RESOLVE_NO_XDEV);
        if (fd != -EXDEV)
            return fd;
    }
    ssize_t place =
        open_cached(op->fd, op->path, O_PATH | (op->flags & (O_NOFOLLOW | O_DIRECTORY)), 0);
    if (place < 0)
        return place;
    info.stx_mode = 0;
    bool is_quick = statx_local((int)place, 0, STATX_TYPE, &info) == 0 &&
                    (waits_for_nobody || S_ISREG(info.stx_mode) || S_ISDIR(info.stx_mode));
    close((int)place);
    op->stage = !waits_for_nobody && S_ISFIFO(info.stx_mode);
    if (!is_quick)
        return -EAGAIN;
    return waits_for_nobody ? open_cached(op->fd, op->path, op->flags, 0) : open_without_lease(op);
}

static ssize_t try_statx(filch_op *op)
{
    if (op->flags & AT_EMPTY_PATH && !*(const char *)op->path)
        return statx_local(op->fd, op->flags, op->mode, op->buffer); /* the inode is in memory */
    ssize_t place = open_cached(op->fd, op->path,
                                O_PATH | (op->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0u), 0);
    /* The call itself needs no descriptor. */
    if (place == -EMFILE || place == -ENFILE || place == -ENOMEM)
        return -EAGAIN;
    if (place < 0)
        return place;
    ssize_t result = statx_local((int)place, op->flags, op->mode, op->buffer);
    close((int)place);
    return result;
}

static ssize_t try_once(filch_op *op, bool is_ready)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_READ:
    case FILCH_OP_WRITE:
    case FILCH_OP_READV:
    case FILCH_OP_WRITEV:
        return try_transfer(op, is_ready);
    case FILCH_OP_RECV:
    case FILCH_OP_RECVMSG:
        return filch_op_receive(op, MSG_DONTWAIT);
    case FILCH_OP_SEND:
        return result_of(send(op->fd, op->buffer, op->bytes, (int)(send_flags(op) | MSG_DONTWAIT)));
    case FILCH_OP_SENDMSG:
        return result_of(sendmsg(op->fd, op->buffer, (int)(send_flags(op) | MSG_DONTWAIT)));
    case FILCH_OP_ACCEPT:
        return make_nonblocking(op->fd) ? accept_one(op) : -errno;
    case FILCH_OP_CONNECT:
        return try_connect(op);
    case FILCH_OP_POLL:
        return poll_now(op->fd, op->flags, 0);
    case FILCH_OP_SPLICE:
        return try_splice(op);
    case FILCH_OP_SHUTDOWN:
    case FILCH_OP_CLOSE:
        return call_once(op);
    case FILCH_OP_OPEN:
        return try_open(op);
    case FILCH_OP_STATX:
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
    while (result == -EINTR && op->code != FILCH_OP_CLOSE);
    return op->code == FILCH_OP_CLOSE && result == -EINTR ? 0 : result;
}

bool filch_op_is_tried_first(const filch_op *op)
{
    switch ((filch_op_code)op->code) {
    case FILCH_OP_RECV:
    case FILCH_OP_RECVMSG:
        return op->flags & MSG_DONTWAIT;
    case FILCH_OP_ACCEPT:
    case FILCH_OP_CONNECT:
    case FILCH_OP_POLL:
    case FILCH_OP_SPLICE:
        return false;
    case FILCH_OP_WRITE:
    case FILCH_OP_WRITEV:
        /* Few file systems can write without waiting; streams are asked by the ring. */
        return false;
    case FILCH_OP_READ:
    case FILCH_OP_READV:
        /* Files, for their cache. Streams most often have nothing yet when they are asked. */
        return op->offset != FILCH_FILE_POSITION;
    default:
        return true;
    }
}
