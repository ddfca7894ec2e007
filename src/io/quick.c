/* SPDX-License-Identifier: MIT */
/*
 * The route QUICK: directories of local file systems, read by the worker itself.
 *
 * The kernel has no non-blocking call that reads a directory, and non-blocking attributes of a name
 * take three calls. Nearly always both are in memory. Then a hop to a thread and back takes 30
 * times as long as the call itself. So the worker makes the call at once. After a call that took
 * long, the next few calls take the other routes.
 */
#include "base/clock.h"
#include "io/io.h"
#include "io/ops.h"

#include <string.h>

/* A call that took longer than QUICK_NS was not served from memory. The next SLOW_DIRS calls take
 * other routes. */
#define QUICK_NS 50000
#define SLOW_DIRS 16

/* Is the file system of this directory on this machine? Otherwise a call may wait for the
 * network. */
static bool is_local(filch_io *io, int fd)
{
    filch_fd *known = filch_io_fd(io, fd);
    /* relaxed: a hint, here and below. */
    uint32_t where = known ? filch_load_relaxed(&known->where) : FILCH_WHERE_UNKNOWN;
    struct statx info;

    if (where == FILCH_WHERE_UNKNOWN) {
        bool is_here = statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &info) == 0 &&
                       filch_mount_is_local(&info);
        where = is_here ? FILCH_WHERE_HERE : FILCH_WHERE_ELSEWHERE;
        /* relaxed: as above. */
        if (known)
            filch_store_relaxed(&known->where, where);
    }
    return where == FILCH_WHERE_HERE;
}

/* Does the operation read a directory, or the attributes of a name in a directory? */
static bool is_of_directory(const filch_op *op)
{
    if (op->code == FILCH_OP_GETDENTS)
        return true;
    return op->code == FILCH_OP_STATX && op->fd >= 0 && !(op->flags & AT_STATX_FORCE_SYNC) &&
           op->path && *(const char *)op->path && !strchr(op->path, '/');
}

/* Does the operation open a path below a directory, and wait for the file system only? */
static bool is_open_below(const filch_op *op)
{
    return op->code == FILCH_OP_OPEN && op->fd >= 0 && op->flags & (O_DIRECTORY | O_NONBLOCK) &&
           op->path && *(const char *)op->path != '/';
}

bool filch_op_call_quick(filch_pool *pool, filch_op *op)
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
