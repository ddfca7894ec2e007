/* SPDX-License-Identifier: MIT */
/*
 * Input and output for tasks: calls that look blocking, but suspend the task and not its thread.
 *
 *     FILCH_TASK(int, serve, (int, fd))                    // one connection
 *     {
 *         char buffer[4096];
 *         ssize_t got, err = 0;
 *         while (err >= 0 && (got = filch_recv(FILCH_HERE, fd, buffer, sizeof buffer, 0)) > 0)
 *             err = filch_send_all(FILCH_HERE, fd, buffer, (size_t)got, 0);
 *         return filch_close(FILCH_HERE, fd);
 *     }
 *
 * While a task waits for the kernel, its worker runs other tasks, and thieves can steal what the
 * task has forked. Each call takes the frame `f` of the calling task: FILCH_HERE in a FILCH_TASK,
 * or the argument of a scope's task. On a plain thread, pass NULL: the call blocks that thread.
 *
 * Results
 *   - What the system call of that name returns, or -errno. errno is not used.
 *   - Like the system call it may do less than asked for. Calls that end in _all do not.
 *   - No call fails with -EINTR.
 *   - A send to a closed connection returns -EPIPE and raises no SIGPIPE. A write raises SIGPIPE,
 *     as write(2) does.
 *
 * Cancellation and deadlines
 *   - -ECANCELED: the task's scope is cancelled (filch/scope.h). -ETIMEDOUT: the deadline has
 *     passed. -ENOMEM, if the operation has to wait: there is no memory for a stack on which the
 *     task's forks could run, or for what the pool needs to do I/O.
 *   - In all three cases the operation has been cancelled, and its buffer belongs to the caller
 *     again. If it was too late to cancel the operation, its result is returned: no byte is lost.
 *   - An operation that need not wait succeeds in a cancelled task, too. But after 16 of them in a
 *     row the task yields (filch_yield). If the task is cancelled by then, the next operation is
 *     not carried out: -ECANCELED.
 *   - filch_close closes in any case, and need not be shielded.
 *
 * Several in flight
 *   Each call is an operation (filch_op) that is run at once. With the operation itself you can set
 *   a deadline, and have several in flight:
 *
 *     filch_op op = filch_op_recv(fd, buffer, sizeof buffer, 0);
 *     ssize_t got = filch_op_run(f, &op, filch_after_ms(500)); // with a deadline
 *
 *     filch_op in = filch_op_pread(from, a, n, offset), out = filch_op_pwrite(to, b, n, offset);
 *     filch_op_start(f, &in);                                  // both at once
 *     filch_op_start(f, &out);
 *     ssize_t got = filch_op_wait(f, &in, FILCH_NO_DEADLINE);
 *     ssize_t put = filch_op_wait(f, &out, FILCH_NO_DEADLINE);
 *
 * How it is carried out: FILCH_IO
 *   A pool chooses when it first does I/O. The environment variable FILCH_IO asks for one of:
 *   - uring: io_uring, one ring per worker. The default.
 *   - epoll: system calls that do not block, epoll, and threads for files (filch/blocking.h). Also
 *     used where the kernel or a container refuses io_uring.
 *   - threads: the same, but one extra thread waits in epoll instead of idle workers. The default
 *     under valgrind, which does not follow io_uring.
 *   The results are the same. A pool that does no I/O has no ring, no thread and no signal handler
 *   for it.
 *
 *   With rings, SIGURG belongs to the library: an idle worker sends it to a worker that computes
 *   while operations complete on its ring. A handler that was installed before gets all other
 *   SIGURG.
 *
 * Where a worker may wait for a disk or a network
 *   - Entries of a directory, and attributes of a name in it, on a local file system, as long as
 *     they come quickly (src/io/README.md).
 *   - A close of a file on a network file system, which writes back what is left.
 *   - A directory on a network file system, if its descriptor number belonged to a local
 *     directory that was closed by close(2) instead of filch_close.
 *
 * Descriptors
 *   - They may be blocking or non-blocking.
 *   - With epoll, and on a plain thread with a deadline, a socket is non-blocking while it
 *     connects. A listener becomes non-blocking for good: another task or process may be accepting
 *     from it, and would block if that were undone.
 *   - Close descriptors with filch_close. It cancels the pool's operations in flight on the
 *     descriptor. They return -ECANCELED though their task is not cancelled. On rings, cancelling a
 *     splice needs Linux 6.6.
 *   - If a thread has begun a call on the file, filch_close waits until that call returns.
 *   - On rings, filch_close of a directory does not cancel operations on paths that are relative to
 *     it, and does not wait for them: wait for these first.
 *   - With a NULL frame, or from a task of another pool, filch_close cancels nothing: first wait
 *     for the operations in flight.
 *   - On rings, the kernel may keep a closed file open until the worker that carried out its last
 *     operation waits or looks for work. So the other side may see the end later. A task must not
 *     block its worker in the kernel for that, with poll(2) for example: filch_poll does not.
 *   - With epoll, the same may follow from a close(2), or from a filch_close with a NULL frame or
 *     by a task of another pool than those that have used the descriptor. The kernel may keep the
 *     file open until a thread of such a pool has its next event.
 *
 * struct statx is that of sys/stat.h, for programs that define _GNU_SOURCE. Events of filch_poll
 * are those of poll.h.
 */
#ifndef FILCH_IO_H
#define FILCH_IO_H

#include <filch/pool.h>
#include <filch/sync.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;
struct statx;

/* ---- operations ------------------------------------------------------------------------------ */

/* Each operation: its code, and its name in a dump. Append only: codes are part of the ABI. */
#define FILCH_OPS(X)                                                                               \
    X(READ, read)                                                                                  \
    X(WRITE, write)                                                                                \
    X(READV, readv)                                                                                \
    X(WRITEV, writev)                                                                              \
    X(RECV, recv)                                                                                  \
    X(SEND, send)                                                                                  \
    X(RECVMSG, recvmsg)                                                                            \
    X(SENDMSG, sendmsg)                                                                            \
    X(ACCEPT, accept)                                                                              \
    X(CONNECT, connect)                                                                            \
    X(POLL, poll)                                                                                  \
    X(SPLICE, splice)                                                                              \
    X(SHUTDOWN, shutdown)                                                                          \
    X(OPEN, open)                                                                                  \
    X(CLOSE, close)                                                                                \
    X(STATX, statx)                                                                                \
    X(FSYNC, fsync)                                                                                \
    X(RENAME, rename)                                                                              \
    X(UNLINK, unlink)                                                                              \
    X(MKDIR, mkdir)                                                                                \
    X(GETDENTS, getdents)                                                                          \
    X(LINK, link)

typedef enum filch_op_code {
    FILCH_OP_NONE,
#define FILCH_OP_CODE(CODE, name) FILCH_OP_##CODE,
    FILCH_OPS(FILCH_OP_CODE)
#undef FILCH_OP_CODE
        FILCH_OP_COUNT
} filch_op_code;

/* One operation, made by the functions below. It and all that it points to must stay in place
 * until it is complete. Its members belong to the library. */
typedef struct filch_op filch_op;
struct filch_op {
    unsigned char code;
    unsigned char stage, is_cancelled, is_patient; /* of the route that carries it out */
    int fd, fd2;
    unsigned flags, mode;
    uint32_t closings; /* filch_close calls on its descriptors before it was started */
    const void *path;
    void *buffer;
    size_t bytes;
    uint64_t offset;

    ssize_t result;
    filch_atomic_u64 state; /* src/io/op.h */
    void *strand, *source, *carrier;
    filch_op *next, *target;
};

/* Start the operation, and wait until it is complete. The calls further down do this. */
FILCH_API ssize_t filch_op_run(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/*
 * Start the operation, and go on. The same task has to wait for it before the task ends. Returns 0,
 * or -EINVAL: there is no such operation, or it was started and not waited for.
 *
 * The call may wait
 *   - with NULL for f: the operation is carried out at once;
 *   - if the operation reads or writes at the position of a file, or writes to a device, and has to
 *     wait: such operations keep their order;
 *   - where there is no memory.
 */
FILCH_API int filch_op_start(filch_frame *f, filch_op *op);

/* Wait until the operation is complete. After -ETIMEDOUT and -ECANCELED it is complete, too: it
 * was cancelled. -EINVAL: it was not started. -EOWNERDEAD: in the child of a fork(), for an
 * operation of the parent. */
FILCH_API ssize_t filch_op_wait(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/* Cancel an operation that was started: its wait returns -ECANCELED, unless it is complete. The
 * task still has to wait for it. */
FILCH_API void filch_op_cancel(filch_frame *f, filch_op *op);

/* Is the operation complete, so that filch_op_wait returns at once? */
FILCH_API bool filch_op_is_done(filch_op *op);

/* ---- how to make them ------------------------------------------------------------------------ */

/* The current directory: AT_FDCWD, which a strict compiler does not declare. */
#define FILCH_CWD (-100)

/* The position of the file itself, as for read(2). */
#define FILCH_FILE_POSITION UINT64_MAX

FILCH_INLINE filch_op filch_op_make(filch_op_code code, int fd, const void *path, void *buffer,
                                    size_t bytes, uint64_t offset, unsigned flags, unsigned mode)
{
    filch_op op;
    memset(&op, 0, sizeof op);
    op.code = (unsigned char)code;
    op.fd = fd;
    op.fd2 = -1;
    op.flags = flags;
    op.mode = mode;
    op.path = path;
    op.buffer = buffer;
    op.bytes = bytes;
    op.offset = offset;
    return op;
}

FILCH_INLINE filch_op filch_op_pread(int fd, void *buffer, size_t bytes, uint64_t offset)
{
    return filch_op_make(FILCH_OP_READ, fd, NULL, buffer, bytes, offset, 0, 0);
}

FILCH_INLINE filch_op filch_op_pwrite(int fd, const void *buffer, size_t bytes, uint64_t offset)
{
    return filch_op_make(FILCH_OP_WRITE, fd, NULL, (void *)(uintptr_t)buffer, bytes, offset, 0, 0);
}

FILCH_INLINE filch_op filch_op_read(int fd, void *buffer, size_t bytes)
{
    return filch_op_pread(fd, buffer, bytes, FILCH_FILE_POSITION);
}

FILCH_INLINE filch_op filch_op_write(int fd, const void *buffer, size_t bytes)
{
    return filch_op_pwrite(fd, buffer, bytes, FILCH_FILE_POSITION);
}

FILCH_INLINE filch_op filch_op_preadv(int fd, const struct iovec *parts, int count, uint64_t offset)
{
    return filch_op_make(FILCH_OP_READV, fd, NULL, (void *)(uintptr_t)parts, (size_t)count, offset,
                         0, 0);
}

FILCH_INLINE filch_op filch_op_pwritev(int fd, const struct iovec *parts, int count,
                                       uint64_t offset)
{
    return filch_op_make(FILCH_OP_WRITEV, fd, NULL, (void *)(uintptr_t)parts, (size_t)count, offset,
                         0, 0);
}

/* flags: as for recv(2) and send(2). With MSG_DONTWAIT the operation does not wait. With
 * MSG_WAITALL on a stream it waits until the buffer is full. It returns fewer bytes before the end
 * of the stream, an error, a deadline or a cancellation. A recvmsg also ends with the bytes that
 * brought descriptors. If other control data comes more than once, the last is returned. */
FILCH_INLINE filch_op filch_op_recv(int fd, void *buffer, size_t bytes, int flags)
{
    return filch_op_make(FILCH_OP_RECV, fd, NULL, buffer, bytes, 0, (unsigned)flags, 0);
}

FILCH_INLINE filch_op filch_op_send(int fd, const void *buffer, size_t bytes, int flags)
{
    return filch_op_make(FILCH_OP_SEND, fd, NULL, (void *)(uintptr_t)buffer, bytes, 0,
                         (unsigned)flags, 0);
}

FILCH_INLINE filch_op filch_op_recvmsg(int fd, struct msghdr *message, int flags)
{
    return filch_op_make(FILCH_OP_RECVMSG, fd, NULL, message, 0, 0, (unsigned)flags, 0);
}

FILCH_INLINE filch_op filch_op_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return filch_op_make(FILCH_OP_SENDMSG, fd, NULL, (void *)(uintptr_t)message, 0, 0,
                         (unsigned)flags, 0);
}

/* The result is the descriptor of the connection, which is closed on exec. flags: SOCK_NONBLOCK.
 * `address` and `length`: as for accept(2), or NULL. */
FILCH_INLINE filch_op filch_op_accept(int fd, struct sockaddr *address, socklen_t *length,
                                      int flags)
{
    return filch_op_make(FILCH_OP_ACCEPT, fd, length, address, 0, 0, (unsigned)flags, 0);
}

/* If the address is AF_UNIX and the queue of the listener is full, connect waits. If the socket
 * is non-blocking, it returns -EAGAIN instead, as connect(2). */
FILCH_INLINE filch_op filch_op_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    return filch_op_make(FILCH_OP_CONNECT, fd, address, NULL, length, 0, 0, 0);
}

/* The result is the set of events (POLLIN, ...) that have come. A hang-up (POLLHUP) and an error
 * (POLLERR) are reported unasked. */
FILCH_INLINE filch_op filch_op_poll(int fd, unsigned events)
{
    return filch_op_make(FILCH_OP_POLL, fd, NULL, NULL, 0, 0, events, 0);
}

/* As splice(2). The offset of a pipe is FILCH_FILE_POSITION. With SPLICE_F_NONBLOCK it does not
 * wait. A socket that is spliced to becomes non-blocking, and stays so. */
FILCH_INLINE filch_op filch_op_splice(int from, uint64_t from_offset, int to, uint64_t to_offset,
                                      size_t bytes, unsigned flags)
{
    filch_op op = filch_op_make(FILCH_OP_SPLICE, to, NULL, NULL, bytes, to_offset, flags, 0);
    op.fd2 = from;
    op.path = (const void *)(uintptr_t)from_offset;
    return op;
}

FILCH_INLINE filch_op filch_op_shutdown(int fd, int how)
{
    return filch_op_make(FILCH_OP_SHUTDOWN, fd, NULL, NULL, 0, 0, (unsigned)how, 0);
}

/* A path is relative to the directory `at`, or with FILCH_CWD to the current directory. The
 * descriptor is closed on exec. As open(2), the call waits for the other end of a FIFO, and for the
 * holder of a lease on the file. It goes on within 10 ms after that. */
FILCH_INLINE filch_op filch_op_openat(int at, const char *path, int flags, mode_t mode)
{
    return filch_op_make(FILCH_OP_OPEN, at, path, NULL, 0, 0, (unsigned)flags, (unsigned)mode);
}

FILCH_INLINE filch_op filch_op_close(int fd)
{
    return filch_op_make(FILCH_OP_CLOSE, fd, NULL, NULL, 0, 0, 0, 0);
}

/* As statx(2); with an empty path and AT_EMPTY_PATH, of the descriptor `at`. */
FILCH_INLINE filch_op filch_op_statx(int at, const char *path, int flags, unsigned mask,
                                     struct statx *result)
{
    return filch_op_make(FILCH_OP_STATX, at, path, result, 0, 0, (unsigned)flags, mask);
}

/* `data_only`: as fdatasync(2). */
FILCH_INLINE filch_op filch_op_fsync(int fd, bool data_only)
{
    return filch_op_make(FILCH_OP_FSYNC, fd, NULL, NULL, 0, 0, data_only, 0);
}

/* flags: as for renameat2(2). */
FILCH_INLINE filch_op filch_op_renameat(int at, const char *path, int new_at, const char *new_path,
                                        unsigned flags)
{
    filch_op op =
        filch_op_make(FILCH_OP_RENAME, at, path, (void *)(uintptr_t)new_path, 0, 0, flags, 0);
    op.fd2 = new_at;
    return op;
}

/* flags: AT_SYMLINK_FOLLOW; AT_EMPTY_PATH with an empty path: link the descriptor `at` itself. */
FILCH_INLINE filch_op filch_op_linkat(int at, const char *path, int new_at, const char *new_path,
                                      int flags)
{
    filch_op op = filch_op_make(FILCH_OP_LINK, at, path, (void *)(uintptr_t)new_path, 0, 0,
                                (unsigned)flags, 0);
    op.fd2 = new_at;
    return op;
}

/* flags: AT_REMOVEDIR. */
FILCH_INLINE filch_op filch_op_unlinkat(int at, const char *path, int flags)
{
    return filch_op_make(FILCH_OP_UNLINK, at, path, NULL, 0, 0, (unsigned)flags, 0);
}

FILCH_INLINE filch_op filch_op_mkdirat(int at, const char *path, mode_t mode)
{
    return filch_op_make(FILCH_OP_MKDIR, at, path, NULL, 0, 0, 0, (unsigned)mode);
}

/* Entries of a directory in the form of getdents64(2), which filch_dir below reads. */
FILCH_INLINE filch_op filch_op_getdents(int fd, void *buffer, size_t bytes)
{
    return filch_op_make(FILCH_OP_GETDENTS, fd, NULL, buffer, bytes, 0, 0, 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Each runs the operation of that name without a deadline: filch_op_run. */

FILCH_INLINE ssize_t filch_read(filch_frame *f, int fd, void *buffer, size_t bytes)
{
    filch_op op = filch_op_read(fd, buffer, bytes);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_write(filch_frame *f, int fd, const void *buffer, size_t bytes)
{
    filch_op op = filch_op_write(fd, buffer, bytes);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_pread(filch_frame *f, int fd, void *buffer, size_t bytes,
                                 uint64_t offset)
{
    filch_op op = filch_op_pread(fd, buffer, bytes, offset);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_pwrite(filch_frame *f, int fd, const void *buffer, size_t bytes,
                                  uint64_t offset)
{
    filch_op op = filch_op_pwrite(fd, buffer, bytes, offset);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_readv(filch_frame *f, int fd, const struct iovec *parts, int count)
{
    filch_op op = filch_op_preadv(fd, parts, count, FILCH_FILE_POSITION);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_writev(filch_frame *f, int fd, const struct iovec *parts, int count)
{
    filch_op op = filch_op_pwritev(fd, parts, count, FILCH_FILE_POSITION);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_recv(filch_frame *f, int fd, void *buffer, size_t bytes, int flags)
{
    filch_op op = filch_op_recv(fd, buffer, bytes, flags);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_send(filch_frame *f, int fd, const void *buffer, size_t bytes, int flags)
{
    filch_op op = filch_op_send(fd, buffer, bytes, flags);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_recvmsg(filch_frame *f, int fd, struct msghdr *message, int flags)
{
    filch_op op = filch_op_recvmsg(fd, message, flags);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_sendmsg(filch_frame *f, int fd, const struct msghdr *message, int flags)
{
    filch_op op = filch_op_sendmsg(fd, message, flags);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE ssize_t filch_splice(filch_frame *f, int from, uint64_t from_offset, int to,
                                  uint64_t to_offset, size_t bytes, unsigned flags)
{
    filch_op op = filch_op_splice(from, from_offset, to, to_offset, bytes, flags);
    return filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_accept(filch_frame *f, int fd, struct sockaddr *address, socklen_t *length,
                              int flags)
{
    filch_op op = filch_op_accept(fd, address, length, flags);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_connect(filch_frame *f, int fd, const struct sockaddr *address,
                               socklen_t length)
{
    filch_op op = filch_op_connect(fd, address, length);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_poll(filch_frame *f, int fd, unsigned events)
{
    filch_op op = filch_op_poll(fd, events);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_shutdown(filch_frame *f, int fd, int how)
{
    filch_op op = filch_op_shutdown(fd, how);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_openat(filch_frame *f, int at, const char *path, int flags, mode_t mode)
{
    filch_op op = filch_op_openat(at, path, flags, mode);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_open(filch_frame *f, const char *path, int flags, mode_t mode)
{
    filch_op op = filch_op_openat(FILCH_CWD, path, flags, mode);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_close(filch_frame *f, int fd)
{
    filch_op op = filch_op_close(fd);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_statx(filch_frame *f, int at, const char *path, int flags, unsigned mask,
                             struct statx *result)
{
    filch_op op = filch_op_statx(at, path, flags, mask, result);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_fsync(filch_frame *f, int fd, bool data_only)
{
    filch_op op = filch_op_fsync(fd, data_only);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_renameat(filch_frame *f, int at, const char *path, int new_at,
                                const char *new_path, unsigned flags)
{
    filch_op op = filch_op_renameat(at, path, new_at, new_path, flags);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_rename(filch_frame *f, const char *path, const char *new_path)
{
    filch_op op = filch_op_renameat(FILCH_CWD, path, FILCH_CWD, new_path, 0);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_linkat(filch_frame *f, int at, const char *path, int new_at,
                              const char *new_path, int flags)
{
    filch_op op = filch_op_linkat(at, path, new_at, new_path, flags);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_unlinkat(filch_frame *f, int at, const char *path, int flags)
{
    filch_op op = filch_op_unlinkat(at, path, flags);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_unlink(filch_frame *f, const char *path)
{
    filch_op op = filch_op_unlinkat(FILCH_CWD, path, 0);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_mkdirat(filch_frame *f, int at, const char *path, mode_t mode)
{
    filch_op op = filch_op_mkdirat(at, path, mode);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

FILCH_INLINE int filch_mkdir(filch_frame *f, const char *path, mode_t mode)
{
    filch_op op = filch_op_mkdirat(FILCH_CWD, path, mode);
    return (int)filch_op_run(f, &op, FILCH_NO_DEADLINE);
}

/* Write the whole buffer, however many system calls that takes. Returns `bytes`, or -errno; then
 * some of it may have been written. -EIO: the system call wrote nothing and reported no error. */
FILCH_API ssize_t filch_write_all(filch_frame *f, int fd, const void *buffer, size_t bytes);
FILCH_API ssize_t filch_send_all(filch_frame *f, int fd, const void *buffer, size_t bytes,
                                 int flags);

/* Read until the buffer is full. Fewer than `bytes`: there are no more. Or -errno. */
FILCH_API ssize_t filch_read_all(filch_frame *f, int fd, void *buffer, size_t bytes);

/* Copy bytes of a file, from this offset on, to a socket or a pipe. Returns their number; fewer
 * than `bytes`: the file has no more. Or -errno. */
FILCH_API ssize_t filch_sendfile(filch_frame *f, int to, int from, uint64_t offset, size_t bytes);

/* As getaddrinfo(3), with the same results; EAI_CANCELED: the task was cancelled before the call
 * began. freeaddrinfo(3) frees the list. */
FILCH_API int filch_getaddrinfo(filch_frame *f, const char *host, const char *service,
                                const struct addrinfo *hints, struct addrinfo **list);

/* ---- directories ----------------------------------------------------------------------------- */

/* The entries of a directory without "." and "..", in no order. */
typedef struct filch_dir {
    int fd;
    void *buffer;
    size_t at, end;
} filch_dir;

typedef struct filch_dirent {
    const char *name; /* valid until the next call */
    uint64_t inode;
    unsigned char type; /* DT_REG, ... of dirent.h; DT_UNKNOWN: the file system does not say */
} filch_dirent;

/* 0 or -errno. */
FILCH_API int filch_dir_open(filch_frame *f, filch_dir *dir, int at, const char *path);

/* 1: an entry; 0: there are no more; or -errno. */
FILCH_API int filch_dir_next(filch_frame *f, filch_dir *dir, filch_dirent *entry);

FILCH_API void filch_dir_close(filch_frame *f, filch_dir *dir);

/* ---- how ------------------------------------------------------------------------------------- */

/* How the pool does its I/O, or would do it: "uring", "epoll", "threads". NULL: no pool, or no
 * memory. */
FILCH_API const char *filch_pool_io(filch_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
