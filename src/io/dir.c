/* SPDX-License-Identifier: MIT */
/*
 * Directories, and files into sockets.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "io/io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIR_BYTES ((size_t)32 << 10)
#define COPY_BYTES ((size_t)64 << 10)

/* A directory that took longer than this was not in memory; then so many are read on threads. */
#define QUICK_NS 50000
#define SLOW_DIRS 16

/* As the kernel writes it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

/* Does it lie on a disk of this machine, or in memory? Others may take as long as a network does. */
static bool is_local(filch_io *io, int fd)
{
    filch_fd *about = filch_io_fd(io, fd);
    /* relaxed: a hint, here and below. */
    uint32_t where = about ? filch_load_relaxed(&about->where) : FILCH_WHERE_UNKNOWN;
    struct statx info;

    if (where == FILCH_WHERE_UNKNOWN) {
        bool is_here = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &info) == 0 &&
                       filch_mount_is_local(&info);
        where = is_here ? FILCH_WHERE_HERE : FILCH_WHERE_ELSEWHERE;
        /* relaxed: as above. */
        if (about)
            filch_store_relaxed(&about->where, where);
    }
    return where == FILCH_WHERE_HERE;
}

/* Is it the reading of a directory, or about something that lies in one? */
static bool is_of_directory(const filch_op *op)
{
    if (op->code == FILCH_OP_GETDENTS)
        return true;
    return op->code == FILCH_OP_STATX && op->fd >= 0 && !(op->flags & AT_STATX_FORCE_SYNC) &&
           op->path && *(const char *)op->path && !strchr(op->path, '/');
}

/* Is it an open of something below a directory, that waits for nobody but the file system? */
static bool is_open_below(const filch_op *op)
{
    return op->code == FILCH_OP_OPEN && op->fd >= 0 && op->flags & (O_DIRECTORY | O_NONBLOCK) &&
           op->path && *(const char *)op->path != '/';
}

/* There is no call for the entries of a directory that does not wait; and to ask for the attributes of one of them takes three calls. Nearly always they are in memory, and then a thread for the call takes 30 times as long as the call itself. So
 * it is made at once; after one that took long, the next few are made in the other way. */
bool filch_dir_call_at_once(filch_pool *pool, filch_op *op)
{
    bool is_open = is_open_below(op);
    filch_io *io = is_open || is_of_directory(op) ? filch_io_get(pool) : NULL;
    if (!io)
        return false;
    if (is_open) {
        op->bytes = is_local(io, op->fd);
        return false;
    }
    /* relaxed: a guess, as all of this. */
    uint32_t slow_dirs = filch_load_relaxed(&io->slow_dirs);

    /* relaxed: as above. */
    if (slow_dirs > 0)
        filch_store_relaxed(&io->slow_dirs, slow_dirs - 1);
    if (slow_dirs > 0 || !is_local(io, op->fd))
        return false;
    uint64_t since_ns = filch_clock_ns();
    op->result = filch_op_call(op);
    /* relaxed: as above. */
    if (filch_clock_ns() - since_ns > QUICK_NS)
        filch_store_relaxed(&io->slow_dirs, SLOW_DIRS);
    return true;
}

int filch_dir_open(filch_frame *f, filch_dir *dir, int at, const char *path)
{
    int fd = filch_openat(f, at, path, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return fd;
    *dir = (filch_dir){.fd = fd, .buffer = filch_calloc(1, DIR_BYTES)};
    if (dir->buffer)
        return 0;
    filch_close(f, fd);
    return -ENOMEM;
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int filch_dir_next(filch_frame *f, filch_dir *dir, filch_dirent *result)
{
    for (;;) {
        if (dir->at == dir->end) {
            filch_op op = filch_op_getdents(dir->fd, dir->buffer, DIR_BYTES);
            ssize_t bytes = filch_op_run(f, &op, FILCH_NO_DEADLINE);
            if (bytes <= 0)
                return (int)bytes;
            dir->at = 0;
            dir->end = (size_t)bytes;
        }
        const struct entry *entry = (const struct entry *)((char *)dir->buffer + dir->at);
        dir->at += entry->bytes;
        if (!is_dot(entry->name)) {
            *result = (filch_dirent){entry->name, entry->inode, entry->type};
            return 1;
        }
    }
}

void filch_dir_close(filch_frame *f, filch_dir *dir)
{
    filch_close(f, dir->fd);
    free(dir->buffer);
    dir->buffer = NULL;
}

/* Through memory: what lies in the cache of the kernel is copied twice, and nothing waits for the disk. */
ssize_t filch_sendfile(filch_frame *f, int to, int from, uint64_t offset, size_t bytes)
{
    size_t done = 0, room = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    char *buffer = room ? malloc(room) : NULL;
    ssize_t err = room && !buffer ? -ENOMEM : 0;
    bool is_socket = true; /* to which a send raises no SIGPIPE */

    while (!err && done < bytes) {
        size_t want = bytes - done < room ? bytes - done : room;
        ssize_t got = filch_pread(f, from, buffer, want, offset + done);
        ssize_t put = got > 0 && is_socket ? filch_send_all(f, to, buffer, (size_t)got, 0) : got;
        is_socket = is_socket && put != -ENOTSOCK;
        if (got > 0 && !is_socket)
            put = filch_write_all(f, to, buffer, (size_t)got);
        if (put <= 0) {
            err = put;
            break;
        }
        done += (size_t)put;
    }
    free(buffer);
    return err ? err : (ssize_t)done;
}
