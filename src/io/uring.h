/* SPDX-License-Identifier: MIT */
/*
 * The route URING: one io_uring for each thread that does I/O.
 *
 *   uring.c         submissions and completions
 *   uring_create.c  its life
 *   kick.c          the signal for its thread while it computes
 */
#ifndef FILCH_IO_URING_H
#define FILCH_IO_URING_H

#include "io/buffers.h"
#include "io/inbox.h"
#include "io/io.h"

#include <filch/stream.h>
#include <linux/io_uring.h>

/* Not in headers before Linux 6.6. */
#ifndef IORING_ASYNC_CANCEL_OP
#define IORING_ASYNC_CANCEL_OP (1U << 5)
#endif

struct filch_uring {
    filch_source source; /* first: it is the source of the worker's thread */
    filch_io *io;
    filch_uring *next; /* in io->rings */
    int fd;
    pid_t thread;

    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;

    struct io_uring_sqe *sq;
    filch_atomic_u32 *sq_head, *sq_tail, *sq_flags;
    uint32_t sq_mask, tail;

    /* Held by the reader of completions, and by the ring's thread while it sleeps. */
    filch_lock reading;
    bool has_bell; /* the ring polls the bell */
    bool has_rung; /* the bell's completion was read since the thread last slept */
    filch_atomic_u32 *cq_head, *cq_tail;
    struct io_uring_cqe *cq;
    uint32_t cq_mask;

    filch_buffers buffers; /* for streams; made by the first */

    filch_inbox inbox;
    /* The ring's thread is submitting operations that it took from the inbox: [submitting]. */
    filch_atomic_u32 is_submitting;
};

/* The `stage` of an operation: how its ring carries it out. */
enum filch_op_stage {
    FILCH_STAGE_ITSELF,
    FILCH_STAGE_POLL,   /* the descriptor is non-blocking: poll it, then try again */
    FILCH_STAGE_STREAM, /* multishot: the request of a filch_stream, stream.h */
    FILCH_STAGE_STOP,   /* cancel the request of a filch_stream */
};

/* ---- uring.c --------------------------------------------------------------------------------- */

/* By its thread. */
void filch_uring_start(filch_uring *ring, filch_op *op);

/* By any thread: have the ring cancel cancel->target. The request is in flight until the kernel has
 * tried to cancel the target. */
void filch_uring_cancel(filch_uring *ring, filch_op *cancel);

/* Between an event and the next try, the kernel does not find an operation to cancel. If the try
 * fails, the operation waits again. So a request is repeated until its operation ends: after this
 * time, then after twice the time, and so on. */
#define FILCH_URING_PATIENCE_NS 500000u

/* By any thread: cancel all operations on request->fd; or all splices, or all polls, of the ring. A
 * ring finds a splice only by its destination, and only after a thread of the kernel has begun with
 * it. Operations that are cancelled by mistake are carried out again. The caller waits for the
 * request. */
typedef enum filch_uring_all {
    FILCH_URING_FD,
    FILCH_URING_SPLICES,
    FILCH_URING_POLLS,
    FILCH_URING_ALLS
} filch_uring_all;
void filch_uring_cancel_all(filch_uring *ring, filch_op *request, filch_uring_all which);

/* By any thread: dispose of an item that came for a stream of this code and that no task takes. */
void filch_uring_drop(filch_uring *ring, unsigned code, filch_stream_item item);

bool filch_source_is_uring(filch_source *source);

/* The functions of a ring as a source. */
extern const filch_source filch_uring_source;

/* Entries that are published, and that the kernel has not taken. */
static inline uint32_t filch_uring_unsubmitted(filch_uring *ring)
{
    /* relaxed: a hint; or on the ring's thread, where the kernel takes the entries. */
    return filch_load_relaxed(ring->sq_tail) - filch_load_relaxed(ring->sq_head);
}

/* ---- uring_create.c -------------------------------------------------------------------------- */

/* A ring for the calling thread. 0 or -errno. */
int filch_uring_create(filch_uring **ring, filch_io *io);

/* When no thread uses it any more, or in the child of a fork(). */
void filch_uring_destroy(filch_uring *ring);

/* A list of rings: put this ring before the others; the ring after this one. */
filch_uring *filch_uring_before(filch_uring *ring, filch_uring *others);
filch_uring *filch_uring_next(filch_uring *ring);

/* By its thread: make its buffers if need be. False: no memory. */
bool filch_uring_has_buffers(filch_uring *ring);
filch_buffers *filch_uring_buffers(filch_uring *ring);

/* ---- kick.c ---------------------------------------------------------------------------------- */

/* Before the first ring: install the handler of SIGURG, once in a process. */
void filch_kick_prepare(void);

/* By a thread that has a ring: it can be kicked from now on. */
void filch_kick_accept(void);

/* Make the ring's thread, which computes, enter the kernel for a moment. */
void filch_uring_kick(filch_uring *ring);

#endif
