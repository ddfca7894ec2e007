/* SPDX-License-Identifier: MIT */
/*
 * Operations on paths: open, close, statx, rename, link, unlink, mkdir; and getdents.
 *
 * A worker may carry out an open or a statx itself if that waits for neither a disk nor a network.
 * So the kernel may look only into its caches (RESOLVE_CACHED), and the file system has to be on
 * this machine. A network file system asks its server even if the path is cached.
 */
#include "base/valgrind.h"
#include "io/entry.h"
#include "io/ops.h"

#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

/* Open the path if the kernel has all of it in memory; -EAGAIN otherwise. */
static ssize_t open_cached(int at, const char *path, uint64_t flags, uint64_t resolve)
{
    if (filch_is_on_valgrind())
        return -EAGAIN;
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_CACHED | resolve};
    ssize_t fd = filch_result_of(syscall(SYS_openat2, at, path, &how, sizeof how));

    /* A kernel or a container without this call may return one of these, which say nothing about
     * the path. */
    return fd == -ENOSYS || fd == -EPERM || fd == -EINVAL || fd == -E2BIG ? -EAGAIN : fd;
}

/* The attributes, without asking another machine; -EAGAIN: the file system is not local. For a
 * local file system, the attributes in the kernel's memory are complete. */
static ssize_t statx_local(int fd, unsigned flags, unsigned mask, struct statx *info)
{
    flags = (flags & ~(unsigned)AT_STATX_SYNC_TYPE) | AT_STATX_DONT_SYNC | AT_EMPTY_PATH;
    ssize_t result = filch_result_of(statx(fd, "", (int)flags, mask, info));
    return result == 0 && !filch_mount_is_local(info) ? -EAGAIN : result;
}

/* ---- open: the call -------------------------------------------------------------------------- */

ssize_t filch_call_open(filch_op *op)
{
    return filch_result_of(openat(op->fd, op->path, (int)op->flags | O_CLOEXEC, (mode_t)op->mode));
}

/* `fd` is a FIFO that was opened for reading, non-blocking. Has a process opened it for writing?
 * poll(2) reports a writer that has closed it again. tee(2) reports other writers, and leaves the
 * bytes in the FIFO. Returns 0: yes; -EAGAIN: no; or -errno. */
static ssize_t find_writer(int fd)
{
    int ends[2];

    if (filch_poll_fd(fd, POLLIN, 0) > 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    ssize_t result = tee(fd, ends[1], 1, SPLICE_F_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
    return result == 0 ? -EAGAIN : 0;
}

/* Regular files and FIFOs are opened non-blocking: a blocking open may wait for the holder of a
 * lease, or for the other end. The open fails in all these cases, except for a FIFO without a
 * writer. Until there is a writer, the descriptor is kept in `fd2`, so that the writer can open its
 * end. */
ssize_t filch_op_open(filch_op *op)
{
    struct stat info;
    int flags = (int)op->flags;

    if (op->fd2 < 0) {
        bool may_block = !(flags & (O_NONBLOCK | O_PATH | O_DIRECTORY));
        int follow = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
        int err = may_block && fstatat(op->fd, op->path, &info, follow) ? -errno : 0;
        /* The path may lead to a FIFO, and a blocking open of that could not be cancelled. */
        if (err == -ENOMEM)
            return err;
        bool may_wait = may_block && !err && (S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode));
        op->stage = may_wait;
        if (!may_wait)
            return filch_op_call(op);
        ssize_t fd = filch_result_of(
            openat(op->fd, op->path, flags | O_CLOEXEC | O_NONBLOCK, (mode_t)op->mode));
        if (fd < 0)
            return fd == -EINTR || (fd == -ENXIO && S_ISFIFO(info.st_mode)) ? -EAGAIN : fd;
        op->fd2 = (int)fd;
    }
    ssize_t err = (flags & O_ACCMODE) == O_RDONLY ? find_writer(op->fd2) : 0;
    if (err == -EAGAIN)
        return err;
    if (err || fcntl(op->fd2, F_SETFL, flags)) {
        err = err ? err : -errno;
        filch_undo_open(op);
        return err;
    }
    int fd = op->fd2;
    op->fd2 = -1;
    return fd;
}

void filch_undo_open(filch_op *op)
{
    if (op->fd2 >= 0) {
        close(op->fd2);
        op->fd2 = -1;
    }
}

/* ---- open: the try --------------------------------------------------------------------------- */

/* Open a file or a directory that may have a lease (fcntl(2)). A blocking open would wait for the
 * lease's holder, so open it non-blocking, and make it blocking afterwards. If the path now leads
 * to another kind of file, its open may have to block: -EAGAIN. */
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

/* Is it sure that the open waits for no other process? Then it is the same with and without
 * O_NONBLOCK. An open with O_CREAT and O_EXCL makes the file, so no process has opened it. */
static bool waits_for_nobody(const filch_op *op)
{
    const unsigned makes_file = O_CREAT | O_EXCL;
    return op->flags & (O_PATH | O_DIRECTORY | O_NONBLOCK) ||
           (op->flags & makes_file) == makes_file;
}

/* Keep the type of the file for filch_fill_open. If the open has to wait for the other end of a
 * FIFO, set `stage`. */
static void set_type(filch_op *op, unsigned mode)
{
    op->offset = mode & S_IFMT;
    op->stage = !waits_for_nobody(op) && S_ISFIFO(mode);
}

/* Opens only files and directories of a local file system: opening a pipe or a device may wait.
 * Finds out the type of other files that are in the cache. */
ssize_t filch_try_open(filch_op *op, bool is_ready)
{
    struct statx info;
    /* Creating or truncating a file needs more than the cache. */
    bool is_cached = !(op->flags & (O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY)));
    (void)is_ready;

    op->offset = 0;
    /* An O_PATH open does not ask the file system. */
    if (op->flags & O_PATH)
        return open_cached(op->fd, op->path, op->flags, 0);
    if (!is_cached && waits_for_nobody(op))
        return -EAGAIN;
    /* The directory is known to be local (quick.c), and the path leads to no other file system. */
    if (waits_for_nobody(op) && op->bytes) {
        ssize_t fd = open_cached(op->fd, op->path, op->flags, RESOLVE_NO_XDEV);
        if (fd != -EXDEV)
            return fd;
    }
    ssize_t place =
        open_cached(op->fd, op->path, O_PATH | (op->flags & (O_NOFOLLOW | O_DIRECTORY)), 0);
    if (place < 0)
        return is_cached ? place : -EAGAIN;
    info.stx_mode = 0;
    bool is_quick = statx_local((int)place, 0, STATX_TYPE, &info) == 0 && is_cached &&
                    (waits_for_nobody(op) || S_ISREG(info.stx_mode) || S_ISDIR(info.stx_mode));
    close((int)place);
    set_type(op, info.stx_mode);
    if (!is_quick)
        return -EAGAIN;
    return waits_for_nobody(op) ? open_cached(op->fd, op->path, op->flags, 0)
                                : open_without_lease(op);
}

/* ---- open: on a ring ------------------------------------------------------------------------- */

/* Does a ring open the file non-blocking, though the caller has not asked for that? A blocking open
 * would wait on a thread of the kernel. There are few of these for each ring: when all wait, the
 * ring carries out no operation on files. Devices are opened as asked: for some, O_NONBLOCK changes
 * more than the wait. */
static bool is_made_nonblocking(const filch_op *op)
{
    return !waits_for_nobody(op) && op->offset != S_IFCHR && op->offset != S_IFBLK;
}

void filch_fill_open(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_OPENAT, op);
    entry->open_flags = op->flags | O_CLOEXEC | (is_made_nonblocking(op) ? O_NONBLOCK : 0u);
    entry->len = op->mode;
    /* Without ASYNC the kernel opens a cached path as with O_NONBLOCK, which is wrong for devices.
     * TRY has already opened the paths that can be opened at once. */
    entry->flags = IOSQE_ASYNC;
}

void filch_op_end_open(filch_op *op)
{
    struct stat info;

    if (!is_made_nonblocking(op))
        return;
    /* Perhaps the file has a lease, or is a FIFO without a reader: filch_op_open finds out. */
    if (op->result == -EAGAIN || op->result == -ENXIO) {
        op->result = -EAGAIN;
        op->stage = 1;
        return;
    }
    if (op->result < 0)
        return;
    int fd = (int)op->result;
    if ((op->flags & O_ACCMODE) == O_RDONLY && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
        op->fd2 = fd;
        op->result = -EAGAIN;
        op->stage = 1;
    } else if (fcntl(fd, F_SETFL, (int)op->flags)) {
        op->result = -errno;
        close(fd);
    }
}

/* ---- close ----------------------------------------------------------------------------------- */

/* On Linux the descriptor is closed even after EINTR. */
ssize_t filch_call_close(filch_op *op)
{
    ssize_t result = filch_result_of(close(op->fd));
    return result == -EINTR ? 0 : result;
}

ssize_t filch_try_close(filch_op *op, bool is_ready)
{
    (void)is_ready;
    return filch_call_close(op);
}

/* ---- statx ----------------------------------------------------------------------------------- */

ssize_t filch_call_statx(filch_op *op)
{
    return filch_result_of(statx(op->fd, op->path, (int)op->flags, op->mode, op->buffer));
}

ssize_t filch_try_statx(filch_op *op, bool is_ready)
{
    (void)is_ready;
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

void filch_fill_statx(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_STATX, op);
    entry->len = op->mode;
    entry->off = (uint64_t)(uintptr_t)op->buffer;
    entry->statx_flags = op->flags;
}

/* ---- rename, link, unlink, mkdir ------------------------------------------------------------- */

ssize_t filch_call_rename(filch_op *op)
{
    return filch_result_of(renameat2(op->fd, op->path, op->fd2, op->buffer, op->flags));
}

void filch_fill_rename(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_RENAMEAT, op);
    entry->len = (uint32_t)op->fd2;
    entry->off = (uint64_t)(uintptr_t)op->buffer;
    entry->rename_flags = op->flags;
}

ssize_t filch_call_link(filch_op *op)
{
    return filch_result_of(linkat(op->fd, op->path, op->fd2, op->buffer, (int)op->flags));
}

void filch_fill_link(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_LINKAT, op);
    entry->len = (uint32_t)op->fd2;
    entry->addr2 = (uint64_t)(uintptr_t)op->buffer;
    entry->hardlink_flags = op->flags;
}

ssize_t filch_call_unlink(filch_op *op)
{
    return filch_result_of(unlinkat(op->fd, op->path, (int)op->flags));
}

void filch_fill_unlink(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_UNLINKAT, op);
    entry->unlink_flags = op->flags;
}

ssize_t filch_call_mkdir(filch_op *op)
{
    return filch_result_of(mkdirat(op->fd, op->path, (mode_t)op->mode));
}

void filch_fill_mkdir(const filch_op *op, struct io_uring_sqe *entry)
{
    filch_fill_at_path(entry, IORING_OP_MKDIRAT, op);
    entry->len = op->mode;
}

/* ---- getdents -------------------------------------------------------------------------------- */

/* io_uring has no such operation. */
ssize_t filch_call_getdents(filch_op *op)
{
    return filch_result_of(syscall(SYS_getdents64, op->fd, op->buffer, op->bytes));
}
