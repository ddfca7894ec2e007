/* SPDX-License-Identifier: MIT */
/*
 * How a pool does its I/O: README.md.
 */
#ifndef FILCH_IO_IO_H
#define FILCH_IO_IO_H

#include "io/buffers.h"
#include "io/op.h"
#include "worker/part.h"
#include "worker/source.h"

#include <filch/stream.h>

typedef enum filch_io_way {
    FILCH_IO_URING,   /* a ring for each thread; where one cannot be had, epoll */
    FILCH_IO_EPOLL,   /* one epoll instance for all; idle workers wait for it */
    FILCH_IO_THREADS, /* the same, but a thread of its own waits */
} filch_io_way;

typedef struct filch_uring filch_uring;
typedef struct filch_epoll filch_epoll;

/* What is known of a descriptor. */
typedef struct filch_fd {
    filch_atomic_u32 flying;   /* operations on it */
    filch_atomic_u32 splices;  /* of them */
    filch_atomic_u32 closings; /* so often it was closed by filch_close while some were */
    filch_atomic_u32
        is_socket; /* something was received from it. A hint: it may have been closed without us, and be another file */
    filch_atomic_u32 where; /* one of the following. A hint, too */
} filch_fd;

enum filch_where {
    FILCH_WHERE_UNKNOWN,
    FILCH_WHERE_HERE,
    FILCH_WHERE_ELSEWHERE
}; /* whether its file system lies on this machine */

typedef struct filch_io {
    filch_part part; /* first: in the pool it is the part */
    filch_pool *pool;
    filch_io_way way;          /* asked for; constant */
    unsigned ring_entries;     /* of each ring; constant */
    filch_atomic_u32 refusals; /* so often a thread got no ring */

    filch_lock lock;
    filch_uring *rings;         /* all, under the lock */
    filch_epoll *epoll;         /* under the lock until it is made; then constant */
    filch_atomic_u32 has_rings; /* whether rings can be had: 0 not known, 1 yes, 2 no */
    filch_atomic_u32
        slow_dirs; /* so many more directories are read on a thread, since the last took long */
    filch_fd *fds; /* by descriptor; NULL: no memory */
} filch_io;

/* The one of this pool, made if need be; NULL: no memory. */
filch_io *filch_io_get(filch_pool *pool);

/* The ring of the thread that runs this strand, which goes on on a thread of the pool for that; NULL: there is none. */
filch_uring *filch_io_uring(filch_frame *f, filch_strand *strand);

/* For what is not by rings; NULL: there is no memory, or no descriptor, for it. */
filch_epoll *filch_io_epoll(filch_io *io);

/* What is known of a descriptor; NULL: it is not one of those that are kept count of. */
filch_fd *filch_io_fd(filch_io *io, int fd);

/* So many operations more fly on the descriptor; or on those of this operation. */
void filch_io_count(filch_pool *pool, int fd, uint32_t change);
void filch_io_count_op(filch_pool *pool, const filch_op *op, uint32_t change);

/* How often its descriptors have been closed by filch_close; and whether one was since the operation was started, which has taken it back: so it is not to be carried out once more, on what may be another file by now. */
uint32_t filch_io_closings(filch_io *io, const filch_op *op);

static inline bool filch_io_has_closed(filch_io *io, const filch_op *op)
{
    return !op->target && op->closings != filch_io_closings(io, op);
}

/* Wait until it has ended: 0; or -ETIMEDOUT, -ECANCELED: it flies on. */
int filch_op_await_end(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/* Strands that go on, in the order in which their operations ended. */
typedef struct filch_ended {
    filch_link *first, **last;
} filch_ended;

#define FILCH_ENDED(name) filch_ended name = {NULL, &name.first}

static inline void filch_ended_add(filch_ended *ended, filch_strand *strand)
{
    if (!strand)
        return;
    filch_strand_fetch(strand);
    strand->link.next = NULL;
    *ended->last = &strand->link;
    ended->last = &strand->link.next;
}

/* ---- system calls: call.c ----------------------------------------------------------------------- */

/* Before all else: it has not been tried yet. */
void filch_op_begin(filch_op *op);

/* What it ends with when it is given up for this reason, or has this result: this, or how many bytes it has received, if it counts them. */
ssize_t filch_op_fail(const filch_op *op, ssize_t err);

/* Of a ring: it has received so much, or has failed so. True: it waits for more, and filch_op_rest is where the next bytes go, which are received without a message. */
bool filch_op_goes_on(filch_op *op, ssize_t result);
struct iovec filch_op_rest(const filch_op *op);

/* Of a recv or recvmsg: carry it out, with these flags besides its own. receive.c. */
ssize_t filch_op_receive(filch_op *op, unsigned more);

/* Carry it out, and block as long as it takes. */
ssize_t filch_op_call(filch_op *op);

/* Carry it out if that needs no waiting. -EAGAIN: it does. `is_ready`: the descriptor has just been said to be, and nobody else in this pool tries anything on it. */
ssize_t filch_op_try(filch_op *op, bool is_ready);

/* Is it never to wait? Of a connect that is known after it was tried. */
bool filch_op_is_impatient(const filch_op *op);

/* It was tried: it cannot be carried out without waiting unless its descriptor is known to be ready; or, if that was so, not even then. */
bool filch_op_has_to_be_ready(const filch_op *op);

/* An open, which waits for the disk, but for nobody else: not for the other end of a FIFO, nor for who has a lease on the file. -EAGAIN: it would. On a thread that may block. */
ssize_t filch_op_open(filch_op *op);

/* It was tried, or opened so: it is an open that waits for somebody else. A ring would open a FIFO as if it were to be non-blocking (Linux 6.18): without its other end, or not at all. */
bool filch_op_waits_to_open(const filch_op *op);

/* Try it. False: it has to wait. A shutdown or a close has happened, whatever it says. */
bool filch_op_try_at_once(filch_op *op);

/* It was tried, and is given up: a descriptor that was made non-blocking for it becomes what it was, and one that it has opened is closed. */
void filch_op_undo(filch_op *op);

/* Which events it waits for; 0: it is about a file, and waits for the disk, or a connect that no event tells of. And of which descriptor: of a splice, after it was tried, it may be the other one. */
unsigned filch_op_events(const filch_op *op);
int filch_op_fd(const filch_op *op);

/* It has just said -EAGAIN: find out what a splice waits for. */
void filch_op_find_wait(filch_op *op);

/* A splice into a socket that has no room waits there with the pipe locked, whatever its flags are, unless the socket is non-blocking: and who only looks whether the pipe has room waits for the lock, be it the thread of a ring. */
void filch_op_prepare_splice(const filch_op *op);

/* Does it read or write a file, and not a stream, at the position that the file has, and so move that? Rings do not move it when they write less than asked for: the next write would
 * go to the same place. And is it written to a device? When that seems to be ready a ring writes to it, on its thread, and if it is a terminal with too little room, that waits there. */
bool filch_op_moves_file(const filch_op *op, bool *is_to_device);

/* Is it worth a try before it is handed to a ring? */
bool filch_op_is_tried_first(const filch_op *op);

/* The same as filch_op_call, but not beyond the deadline. */
ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns);

const char *filch_op_name(const filch_op *op);

/* Does the file system that this was asked of lie on this machine? With AT_STATX_DONT_SYNC: a guess. */
bool filch_mount_is_local(const struct statx *info);

/* Read the entries of a directory, or the attributes of one of them, at once, if that can be expected to be quick. False: it is something else, or better done in another way. Of an open it notes, in `bytes`, whether the
 * directory that its path begins at is local. */
bool filch_dir_call_at_once(filch_pool *pool, filch_op *op);

/* ---- rings: ring.c, entry.c ---------------------------------------------------------------------- */

struct io_uring_sqe;

/* What a ring is to do for an operation. */
enum filch_op_stage {
    FILCH_STAGE_ITSELF,
    FILCH_STAGE_POLL, /* its descriptor is non-blocking: wait for its events, and then try again */
    FILCH_STAGE_STREAM, /* again and again: it is that of a filch_stream, stream.h */
    FILCH_STAGE_STOP,   /* it takes that of a filch_stream back */
};

/* Into an entry that is all zero. */
void filch_op_fill(const filch_op *op, struct io_uring_sqe *entry);

/* A ring for the calling thread. 0 or -errno: it cannot be had. */
int filch_uring_create(filch_uring **ring, filch_io *io);

/* By its thread. */
void filch_uring_start(filch_uring *ring, filch_op *op);

/* By anybody: let the ring try to take back cancel->target; or all that it has of cancel->fd, if the target is itself. It flies until that has been tried. */
void filch_uring_cancel(filch_uring *ring, filch_op *cancel);

/* A list of rings: this one before the others, and what comes after it. */
filch_uring *filch_uring_before(filch_uring *ring, filch_uring *others);
filch_uring *filch_uring_next(filch_uring *ring);

/* The kernel does not find an operation to be taken back between an event and the next try, which waits again if it is in vain. So who takes back one that does not end asks again, after so long, and then after twice as long. */
#define FILCH_URING_PATIENCE_NS 500000u

/* By a thread that has a ring: it can be kicked from now on. */
void filch_kick_accept(void);

/* Take back all that flies on the descriptor `fd`; or, with `splices`, all splices, and what is polled, which are carried out again if they are not to be closed: a ring knows a splice by its destination only, and that late. The request
 * lies with the caller, who waits for its end. */
typedef enum filch_uring_all {
    FILCH_URING_FD,
    FILCH_URING_SPLICES,
    FILCH_URING_POLLS,
    FILCH_URING_ALLS
} filch_uring_all;
void filch_uring_cancel_all(filch_uring *ring, filch_op *request, filch_uring_all which);

/* No thread uses it any more, or in the child of a fork(). */
void filch_uring_destroy(filch_uring *ring);

bool filch_source_is_uring(filch_source *source);

/* By its thread: see to it that it has buffers. False: there is no memory for them. */
bool filch_uring_has_buffers(filch_uring *ring);
filch_buffers *filch_uring_buffers(filch_uring *ring);

/* Dispose of what has come for a stream of this code, and nobody gets. By anybody. */
void filch_uring_drop(filch_uring *ring, unsigned code, filch_stream_item item);

/* ---- epoll: epoll.c ----------------------------------------------------------------------------- */

int filch_epoll_create(filch_epoll **epoll, filch_io *io, bool has_thread);
void filch_epoll_destroy(filch_epoll *epoll);
void filch_epoll_forget(filch_epoll *epoll);

/* A source for a worker's thread; NULL: a thread of its own waits. */
filch_source *filch_epoll_source(filch_epoll *epoll);

/* The operation is not ready; have it tried again when it may be. 0, or -errno: it cannot be waited for in this way. */
int filch_epoll_start(filch_epoll *epoll, filch_op *op);

void filch_epoll_cancel(filch_epoll *epoll, filch_op *op);

/* Between these two it may be tried by who has started it, or made as a call on another thread, and its descriptors are not closed by filch_close. 0; -ECANCELED: one has been; or -errno. */
int filch_epoll_begin_try(filch_epoll *epoll, const filch_op *op);
void filch_epoll_end_try(filch_epoll *epoll, const filch_op *op);

/* All of cancel->fd. It flies until nobody tries anything on that descriptor any more. */
void filch_epoll_cancel_all(filch_epoll *epoll, filch_op *cancel);

/* ---- neither: carry.c --------------------------------------------------------------------------- */

/* As a call, on a thread that may block; or by trying it again and again. The task waits for op->result. */
void filch_op_carry_out(filch_frame *f, filch_io *io, filch_op *op, bool is_call,
                        uint64_t deadline_ns);

/* The same by a task of its own, while this one goes on. It flies already, and nobody else knows it. False: there is no memory. */
bool filch_op_leave_to_task(filch_io *io, filch_op *op, bool is_call);

/* Take it back; and when it is DONE, which it has said as its last, let go of that task. */
void filch_op_cancel_task(filch_op *op);
void filch_op_end_task(filch_frame *f, filch_op *op);

#endif
