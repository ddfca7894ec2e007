/* SPDX-License-Identifier: MIT */
/*
 * The table of operations: all that the library knows about an operation is in its row.
 *
 * To add an operation:
 *   1. Append it to FILCH_OPS in filch/io.h, and declare its filch_op_* and filch_* there.
 *   2. Add its row to the table below.
 *   3. Write the functions that the row names, side by side, in the file of its family.
 * The library does not compile while an operation has no row, or a row lacks a column. It does not
 * link while a function that a row names is missing.
 *
 *   op_file.c    read, write, readv, writev, fsync
 *   op_recv.c    recv, recvmsg
 *   op_socket.c  send, sendmsg, accept, connect, poll, shutdown
 *   op_splice.c  splice
 *   op_path.c    open, close, statx, rename, unlink, mkdir, link, getdents
 */
#ifndef FILCH_IO_OPS_H
#define FILCH_IO_OPS_H

#include <errno.h>
#include <fcntl.h>
#include <filch/io.h>

struct io_uring_sqe;

/* ---- columns --------------------------------------------------------------------------------- */

/* The system call, which may block. Returns its result or -errno. filch_op_call handles -EINTR and
 * -EAGAIN. */
typedef ssize_t filch_call_fn(filch_op *op);

/* The same without blocking. -EAGAIN: the operation would have to wait. -EOPNOTSUPP from a
 * transfer: the kernel cannot be asked not to block; see filch_op_needs_ready_fd. `is_ready`: the
 * kernel has just reported the descriptor as ready, and no other thread of this pool tries an
 * operation on it. */
typedef ssize_t filch_try_fn(filch_op *op, bool is_ready);

/* Fill an entry of an io_uring, which is all zero. */
typedef void filch_fill_fn(const filch_op *op, struct io_uring_sqe *entry);

/* The events to poll for after -EAGAIN; 0: no event tells when the operation can go on. */
typedef unsigned filch_events_fn(const filch_op *op);

/* The operation was tried and is cancelled: restore the descriptor's flags, close a descriptor that
 * it opened. */
typedef void filch_undo_fn(filch_op *op);

/* Which route (route.h) is taken first. WAIT: with rings URING, without them TRY. */
typedef enum filch_op_first {
    FILCH_FIRST_WAIT,
    FILCH_FIRST_TRY,
    /* TRY at an offset: a file, whose data may be cached. WAIT at the position: a stream, which is
     * mostly empty when it is read. */
    FILCH_FIRST_TRY_AT_OFFSET,
    FILCH_FIRST_TRY_IF_DONTWAIT, /* TRY if the caller has asked not to wait, else WAIT */
    FILCH_FIRST_QUICK,           /* QUICK, then TRY */
} filch_op_first;

enum filch_trait {
    FILCH_TRAIT_TRANSFERS = 1 << 0,   /* bytes, by preadv2(2) or pwritev2(2) */
    FILCH_TRAIT_RECEIVES = 1 << 1,    /* counts received bytes in `mode`, for MSG_WAITALL */
    FILCH_TRAIT_POLLS_FIRST = 1 << 2, /* on a known socket its ring polls before it receives */
    FILCH_TRAIT_TWO_FDS = 1 << 3,     /* waits for fd or fd2: a splice */
    FILCH_TRAIT_MAKES_FD = 1 << 4,    /* its result is a descriptor */
    FILCH_TRAIT_OPENS = 1 << 5,       /* may wait for another process: filch_op_open */
    FILCH_TRAIT_CLOSES = 1 << 6,      /* first cancels operations on its descriptor */
    FILCH_TRAIT_ONCE = 1 << 7,        /* the call is not repeated after -EINTR or -EAGAIN */
    FILCH_TRAIT_FINAL = 1 << 8,       /* does not wait: any result of its try is final */
    FILCH_TRAIT_RETRIED = 1 << 9,     /* without events no thread may wait for it: RETRY */
    FILCH_TRAIT_TWO_DIRS = 1 << 10,   /* fd2 is the directory of its second path */
};

typedef struct filch_op_row {
    filch_call_fn *call;
    filch_try_fn *try;
    filch_fill_fn *fill;
    filch_events_fn *events;
    filch_undo_fn *undo;
    unsigned dontwait; /* the bit of `flags` that asks not to wait; 0: there is none */
    unsigned short traits;
    unsigned char first;
} filch_op_row;

extern const filch_op_row filch_op_rows[FILCH_OP_COUNT];

static inline const filch_op_row *filch_op_row_of(const filch_op *op)
{
    return &filch_op_rows[op->code];
}

static inline bool filch_op_has(const filch_op *op, enum filch_trait trait)
{
    return filch_op_row_of(op)->traits & trait;
}

/* The descriptor that it uses besides `fd`; negative: none. */
static inline int filch_op_second_fd(const filch_op *op)
{
    const unsigned two = FILCH_TRAIT_TWO_FDS | FILCH_TRAIT_TWO_DIRS;
    return filch_op_row_of(op)->traits & two ? op->fd2 : -1;
}

const char *filch_op_name(const filch_op *op);

/* ---- the table ------------------------------------------------------------------------------- */

/* clang-format off */
#define FILCH_T(trait) FILCH_TRAIT_##trait
/*  code      call      try       fill     events      undo     dontwait           first
 *                      traits */
#define FILCH_OP_TABLE(ROW)                                                                                                                           \
ROW(NONE,     none,     never,    never,   none,       nothing, 0,                 WAIT,            0)                                                \
ROW(READ,     transfer, transfer, read,    stream_in,  nothing, 0,                 TRY_AT_OFFSET,   FILCH_T(TRANSFERS))                               \
ROW(WRITE,    transfer, transfer, write,   stream_out, nothing, 0,                 WAIT,            FILCH_T(TRANSFERS))                               \
ROW(READV,    transfer, transfer, readv,   stream_in,  nothing, 0,                 TRY_AT_OFFSET,   FILCH_T(TRANSFERS))                               \
ROW(WRITEV,   transfer, transfer, writev,  stream_out, nothing, 0,                 WAIT,            FILCH_T(TRANSFERS))                               \
ROW(RECV,     recv,     recv,     recv,    in,         nothing, MSG_DONTWAIT,      TRY_IF_DONTWAIT, FILCH_T(RECEIVES) | FILCH_T(POLLS_FIRST))         \
ROW(SEND,     send,     send,     send,    out,        nothing, MSG_DONTWAIT,      TRY,             0)                                                \
ROW(RECVMSG,  recv,     recv,     recvmsg, in,         nothing, MSG_DONTWAIT,      TRY_IF_DONTWAIT, FILCH_T(RECEIVES))                                \
ROW(SENDMSG,  sendmsg,  sendmsg,  sendmsg, out,        nothing, MSG_DONTWAIT,      TRY,             0)                                                \
ROW(ACCEPT,   accept,   accept,   accept,  in,         nothing, 0,                 WAIT,            FILCH_T(MAKES_FD))                                \
ROW(CONNECT,  connect,  connect,  connect, connect,    connect, O_NONBLOCK,        WAIT,            FILCH_T(ONCE) | FILCH_T(RETRIED))                 \
ROW(POLL,     poll,     poll,     poll,    poll,       nothing, 0,                 WAIT,            0)                                                \
ROW(SPLICE,   splice,   splice,   splice,  splice,     nothing, SPLICE_F_NONBLOCK, WAIT,            FILCH_T(TWO_FDS))                                 \
ROW(SHUTDOWN, shutdown, shutdown, never,   none,       nothing, 0,                 TRY,             FILCH_T(FINAL))                                   \
ROW(OPEN,     open,     open,     open,    none,       open,    0,                 QUICK,           FILCH_T(OPENS) | FILCH_T(MAKES_FD))               \
ROW(CLOSE,    close,    close,    never,   none,       nothing, 0,                 WAIT,            FILCH_T(CLOSES) | FILCH_T(ONCE) | FILCH_T(FINAL)) \
ROW(STATX,    statx,    statx,    statx,   none,       nothing, 0,                 QUICK,           0)                                                \
ROW(FSYNC,    fsync,    never,    fsync,   none,       nothing, 0,                 WAIT,            0)                                                \
ROW(RENAME,   rename,   never,    rename,  none,       nothing, 0,                 WAIT,            FILCH_T(TWO_DIRS))                                \
ROW(UNLINK,   unlink,   never,    unlink,  none,       nothing, 0,                 WAIT,            0)                                                \
ROW(MKDIR,    mkdir,    never,    mkdir,   none,       nothing, 0,                 WAIT,            0)                                                \
ROW(GETDENTS, getdents, never,    never,   none,       nothing, 0,                 QUICK,           0)                                                \
ROW(LINK,     link,     never,    link,    none,       nothing, 0,                 WAIT,            FILCH_T(TWO_DIRS))
/* clang-format on */

/* The functions that the rows name. Some are named by several rows.
 *   never    try: always -EAGAIN; fill: the operation does not go to a ring
 *   none     call: -EINVAL; events: no event tells
 *   stream_  events of the position, and none at an offset */
#define FILCH_ROW_FUNCTIONS(CODE, call_, try_, fill_, events_, undo_, ...)                         \
    filch_call_fn filch_call_##call_;                                                              \
    filch_try_fn filch_try_##try_;                                                                 \
    filch_fill_fn filch_fill_##fill_;                                                              \
    filch_events_fn filch_events_##events_;                                                        \
    filch_undo_fn filch_undo_##undo_;
FILCH_OP_TABLE(FILCH_ROW_FUNCTIONS)
#undef FILCH_ROW_FUNCTIONS

/* ---- questions about any operation ----------------------------------------------------------- */

static inline unsigned filch_op_events(const filch_op *op)
{
    return filch_op_row_of(op)->events(op);
}

static inline void filch_op_undo(filch_op *op)
{
    filch_op_row_of(op)->undo(op);
}

static inline bool filch_op_can_use_ring(const filch_op *op)
{
    return filch_op_row_of(op)->fill != filch_fill_never;
}

/* Has the caller asked not to wait? For a connect this is known after its first try. */
static inline bool filch_op_is_dontwait(const filch_op *op)
{
    return op->flags & filch_op_row_of(op)->dontwait;
}

/* The try has ended with -EOPNOTSUPP: the kernel cannot be asked not to block on this descriptor.
 * Then the transfer is tried again once the descriptor is ready. If that does not complete it, only
 * the blocking call is left. */
static inline bool filch_op_needs_ready_fd(const filch_op *op)
{
    return op->result == -EOPNOTSUPP && filch_op_has(op, FILCH_TRAIT_TRANSFERS);
}

/* No event tells when the operation can go on, and a thread of the kernel or of ours would wait for
 * too long. This is a connect to an AF_UNIX socket whose listener's queue is full. */
static inline bool filch_op_must_retry(const filch_op *op)
{
    return filch_op_has(op, FILCH_TRAIT_RETRIED) && !filch_op_events(op);
}

/* Reset the members that an earlier run of the operation has changed. */
static inline void filch_op_begin(filch_op *op)
{
    op->stage = 0;
    if (filch_op_has(op, FILCH_TRAIT_RECEIVES))
        op->mode = 0;
}

/* ---- system calls: call.c -------------------------------------------------------------------- */

static inline ssize_t filch_result_of(long result)
{
    return result < 0 ? -errno : result;
}

/* poll(2) of one descriptor: its events; -EAGAIN: none within the time-out; -EBADF; or -errno. */
ssize_t filch_poll_fd(int fd, unsigned events, int timeout_ms);

/* Carry the operation out, and block as long as it takes. */
ssize_t filch_op_call(filch_op *op);

/* The same, but not beyond the deadline: -ETIMEDOUT. */
ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns);

/* Carry the operation out if it need not wait; -EAGAIN if it must. is_ready: as for
 * filch_try_fn. */
ssize_t filch_op_try(filch_op *op, bool is_ready);

/* Try it before its descriptor is known to be ready. False: it has to wait. True: op->result. */
bool filch_op_try_at_once(filch_op *op);

/* ---- receiving: op_recv.c -------------------------------------------------------------------- */

/* Does the operation wait until its buffer is full (MSG_WAITALL)? */
bool filch_op_is_for_all(const filch_op *op);

/* The result of an operation that fails with `err` or is cancelled: `err`; or, with MSG_WAITALL,
 * the number of bytes received before. */
ssize_t filch_op_fail(const filch_op *op, ssize_t err);

/* ---- files: op_file.c ------------------------------------------------------------------------ */

/* Does the operation transfer at the position of a regular file, and so move that position? When a
 * write ends early, io_uring (6.18) does not move it. The next write would go to the same place.
 *
 * is_to_device: the operation writes to a character device at its position. If the device seems
 * ready, a ring writes on the thread that submits. If it is a terminal without room, that thread
 * waits. */
bool filch_op_moves_position(const filch_op *op, bool *is_to_device);

/* ---- splices: op_splice.c -------------------------------------------------------------------- */

/* The splice has just returned -EAGAIN: find out which side it waits for. */
void filch_splice_find_side(filch_op *op);

/* The descriptor that a splice waits for, after filch_splice_find_side. */
int filch_splice_fd(const filch_op *op);

/* If the destination is a socket, make it non-blocking. Otherwise a splice into a full socket waits
 * with the pipe locked, whatever its flags are. A thread that only polls the pipe then waits for
 * the lock, even the thread of a ring. */
void filch_splice_prepare(const filch_op *op);

static inline void filch_op_find_side(filch_op *op)
{
    if (filch_op_has(op, FILCH_TRAIT_TWO_FDS))
        filch_splice_find_side(op);
}

/* The descriptor whose events the operation waits for. */
static inline int filch_op_fd(const filch_op *op)
{
    return filch_op_has(op, FILCH_TRAIT_TWO_FDS) ? filch_splice_fd(op) : op->fd;
}

/* ---- opening: op_path.c ---------------------------------------------------------------------- */

/* Open, for threads that may block. Waits for the disk, but not for another process. -EAGAIN: the
 * open has to wait for the other end of a FIFO, or for the holder of a lease. */
ssize_t filch_op_open(filch_op *op);

/* A ring has completed the open: make the descriptor blocking, if the caller asked for that. If the
 * open has to wait for another process, as above, it is not complete: filch_op_waits_to_open. */
void filch_op_end_open(filch_op *op);

/* The open was tried, ended by filch_op_end_open, or called by filch_op_open, and waits for another
 * process. */
static inline bool filch_op_waits_to_open(const filch_op *op)
{
    return op->result == -EAGAIN && op->stage && filch_op_has(op, FILCH_TRAIT_OPENS);
}

/* ---- the route QUICK: quick.c, mount.c ------------------------------------------------------- */

/* The route QUICK: make the call at once if it can be expected to be quick. False: the call was not
 * made. For an open, no call is made; `bytes` tells filch_try_open whether the directory is
 * local. */
bool filch_op_call_quick(filch_pool *pool, filch_op *op);

/* Is the file system with these attributes on this machine? AT_STATX_DONT_SYNC is enough to get
 * them. The answer is a guess. */
bool filch_mount_is_local(const struct statx *info);

#endif
