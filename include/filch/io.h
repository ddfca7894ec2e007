/* SPDX-License-Identifier: MIT */
/*
 * Input and output that costs no thread: calls that look blocking, and suspend the task.
 *
 *     FILCH_TASK(int, serve, (int, fd))                    one connection, straight on
 *     {
 *         char buffer[4096];
 *         ssize_t got, err = 0;
 *         while (err >= 0 && (got = filch_recv(FILCH_HERE, fd, buffer, sizeof buffer, 0)) > 0)
 *             err = filch_send_all(FILCH_HERE, fd, buffer, (size_t)got, 0);
 *         return filch_close(FILCH_HERE, fd);
 *     }
 *
 * While a task waits for the kernel its worker runs others, and what the task has forked can be stolen. All calls take the handle `f` (that of a scope's task, FILCH_HERE in a
 * FILCH_TASK); with NULL, on a thread of one's own, they block that thread. They return what the system call of that name does, or -errno; errno is not used. None fails with -EINTR. Sends
 * raise no SIGPIPE: -EPIPE says it; writes do, as write(2). Like the system calls they may do less than asked for, but for those that end in _all.
 *
 * A task whose scope is cancelled gets -ECANCELED (filch/scope.h), one whose deadline has passed -ETIMEDOUT, one for whose forks there is no memory -ENOMEM (filch/wait.h); then the operation has been taken back, and the buffer is the caller's
 * again. If it was too late to take it back, its result is returned, so that no byte is lost. An operation that need not wait succeeds in a cancelled task, too; but after 16 of
 * them a task lets others run (filch_yield), and if it is cancelled by then, the next is not carried out: -ECANCELED. filch_close closes in any case, and need not be shielded.
 *
 * Each call is an operation that is run at once. With the operation itself in hand it can have a deadline, and several can be in flight:
 *
 *     filch_op op = filch_op_recv(fd, buffer, sizeof buffer, 0);
 *     ssize_t got = filch_op_run(f, &op, filch_after_ms(500));             with a deadline
 *
 *     filch_op in = filch_op_pread(from, a, n, offset), out = filch_op_pwrite(to, b, n, offset);
 *     filch_op_start(f, &in);                                              both at once
 *     filch_op_start(f, &out);
 *     ssize_t got = filch_op_wait(f, &in, FILCH_NO_DEADLINE), put = filch_op_wait(f, &out, FILCH_NO_DEADLINE);
 *
 * How it is done is chosen for each pool when it first does I/O: by io_uring, a ring for each worker; where the kernel or a container refuses that, by epoll, with system calls that do not
 * block, and threads for files (filch/blocking.h); or by epoll on a thread of its own. The environment variable FILCH_IO asks for one of them: uring, epoll, threads. The results are the same. A pool
 * that does no I/O has no ring, no thread and no signal handler for it. With rings, SIGURG is the library's: a worker that computes while operations complete on its ring gets it from one that is idle.
 * A handler that was there before is called for all others.
 *
 * A worker does not wait for a disk or a network, but in these: the entries of a directory, and the attributes of one, of a file system of this machine, as long as they come quickly (src/io/README.md); a close of a file of
 * a network file system, which writes back what is left; and whatever is closed by close(2) instead, if its number is then a directory elsewhere.
 *
 * struct statx is that of sys/stat.h, which has it for programs that define _GNU_SOURCE; events of filch_poll are those of poll.h.
 *
 * The descriptors may be blocking or not; with epoll, and on a plain thread with a deadline, a socket that is connected becomes non-blocking while it is, and one that is accepted from for good: another
 * task or process may be accepting from it, which would block if it were undone. Close a descriptor with filch_close, which takes back what is in flight on it in this pool; that returns -ECANCELED then,
 * though its task is not cancelled. (Of splices on rings only from Linux 6.6 on.) It waits for a call on a file that a thread has begun with. With a NULL handle, or from a task of another pool, it takes nothing back: then wait for what is in flight first.
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

/* ---- operations -------------------------------------------------------------------------------- */

/* What an operation does, its name in a dump. */
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

/* One operation. It and all it points to stay where they are until it is complete. Made by the functions below; its members are the library's. */
typedef struct filch_op filch_op;
struct filch_op {
    unsigned char code;
    unsigned char stage, is_cancelled, is_patient; /* of whoever carries it out */
    int fd, fd2;
    unsigned flags, mode;
    uint32_t closings; /* of its descriptors, before it was started */
    const void *path;
    void *buffer;
    size_t bytes;
    uint64_t offset;

    ssize_t result;
    filch_atomic_u64 state; /* src/io/op.h */
    void *strand, *source, *carrier;
    filch_op *next, *target;
};

/* Start it, and wait for its end: what the calls further down do. */
FILCH_API ssize_t filch_op_run(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/* Start it, and go on. It is waited for by the same task, before that ends. With NULL for f it is carried out at once; and so, as a call that the task waits for here, is a read or write at the position of a file, or a write to a device, that would have to wait: their order is kept. Where there is no thread, or no
 * memory, it may wait here, too. 0, or -EINVAL: there is no such operation, or this one
 * has been started and not waited for. */
FILCH_API int filch_op_start(filch_frame *f, filch_op *op);

/* Wait for its end. On -ETIMEDOUT and -ECANCELED, too, it is over. */
FILCH_API ssize_t filch_op_wait(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/* Take back one that was started: its wait returns -ECANCELED, unless it is complete. It still has to be waited for. */
FILCH_API void filch_op_cancel(filch_frame *f, filch_op *op);

/* Has it ended, so that filch_op_wait returns at once? */
FILCH_API bool filch_op_is_done(filch_op *op);

/* ---- how to make them -------------------------------------------------------------------------- */

/* AT_FDCWD, also where the compiler is strict: the current directory. */
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

/* flags: as for recv(2) and send(2). With MSG_DONTWAIT it does not wait. With MSG_WAITALL, of a stream, it waits until the buffer is full: fewer bytes are the last ones before the end, an error, a deadline or a cancellation. */
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

/* The result is the descriptor of the connection. flags: SOCK_NONBLOCK; it is closed on exec in any case. `address` and `length` as for accept(2), or NULL. */
FILCH_INLINE filch_op filch_op_accept(int fd, struct sockaddr *address, socklen_t *length,
                                      int flags)
{
    return filch_op_make(FILCH_OP_ACCEPT, fd, length, address, 0, 0, (unsigned)flags, 0);
}

/* To a socket of this machine (AF_UNIX) whose listener has no room in its queue: it waits, or if the socket is non-blocking, the result is -EAGAIN as of connect(2). */
FILCH_INLINE filch_op filch_op_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    return filch_op_make(FILCH_OP_CONNECT, fd, address, NULL, length, 0, 0, 0);
}

/* The result is which of the events (POLLIN, ...) have come; a hang-up (POLLHUP) and an error (POLLERR) do so unasked. */
FILCH_INLINE filch_op filch_op_poll(int fd, unsigned events)
{
    return filch_op_make(FILCH_OP_POLL, fd, NULL, NULL, 0, 0, events, 0);
}

/* As splice(2); offsets of a pipe are FILCH_FILE_POSITION; with SPLICE_F_NONBLOCK it does not wait. A socket that is spliced to becomes non-blocking, and stays so. */
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

/* A path is relative to the directory `at`, or with AT_FDCWD, here FILCH_CWD, to the current one. The descriptor is closed on exec. One of a FIFO waits for its other end, as open(2), and one of a file that somebody has a lease on
 * for that; what comes is seen after 10 ms at most. */
FILCH_INLINE filch_op filch_op_openat(int at, const char *path, int flags, mode_t mode)
{
    return filch_op_make(FILCH_OP_OPEN, at, path, NULL, 0, 0, (unsigned)flags, (unsigned)mode);
}

FILCH_INLINE filch_op filch_op_close(int fd)
{
    return filch_op_make(FILCH_OP_CLOSE, fd, NULL, NULL, 0, 0, 0, 0);
}

/* As statx(2); with an empty path and AT_EMPTY_PATH, of the descriptor. */
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

/* Entries of a directory, as getdents64(2) writes them; filch_dir below reads them. */
FILCH_INLINE filch_op filch_op_getdents(int fd, void *buffer, size_t bytes)
{
    return filch_op_make(FILCH_OP_GETDENTS, fd, NULL, buffer, bytes, 0, 0, 0);
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* Each is filch_op_run of the operation of that name, without a deadline. */

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

/* The whole buffer, however many system calls that takes. Returns `bytes`, or -errno; then some of it may have been written. -EIO: the system call wrote nothing, and said nothing. */
FILCH_API ssize_t filch_write_all(filch_frame *f, int fd, const void *buffer, size_t bytes);
FILCH_API ssize_t filch_send_all(filch_frame *f, int fd, const void *buffer, size_t bytes,
                                 int flags);

/* Until the buffer is full, or there is no more: then less than `bytes`. */
FILCH_API ssize_t filch_read_all(filch_frame *f, int fd, void *buffer, size_t bytes);

/* So many bytes of a file to a socket or a pipe, from this offset on. Returns how many; fewer: the file has no more. */
FILCH_API ssize_t filch_sendfile(filch_frame *f, int to, int from, uint64_t offset, size_t bytes);

/* As getaddrinfo(3), whose results it returns; EAI_CANCELED when the task was cancelled before it began. freeaddrinfo(3) frees the list. */
FILCH_API int filch_getaddrinfo(filch_frame *f, const char *host, const char *service,
                                const struct addrinfo *hints, struct addrinfo **list);

/* ---- directories ------------------------------------------------------------------------------- */

/* Entries of a directory, without "." and "..", in no order. */
typedef struct filch_dir {
    int fd;
    void *buffer;
    size_t at, end;
} filch_dir;

typedef struct filch_dirent {
    const char *name; /* until the next call */
    uint64_t inode;
    unsigned char
        type; /* DT_REG, DT_DIR, ... of dirent.h; DT_UNKNOWN where the file system does not say */
} filch_dirent;

/* 0 or -errno. */
FILCH_API int filch_dir_open(filch_frame *f, filch_dir *dir, int at, const char *path);

/* 1: there is an entry; 0: there is none any more; or -errno. */
FILCH_API int filch_dir_next(filch_frame *f, filch_dir *dir, filch_dirent *entry);

FILCH_API void filch_dir_close(filch_frame *f, filch_dir *dir);

/* ---- how ----------------------------------------------------------------------------------------- */

/* How the pool does its I/O, or would: "uring", "epoll", "threads". NULL: no pool. */
FILCH_API const char *filch_pool_io(filch_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
