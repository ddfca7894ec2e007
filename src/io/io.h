/* SPDX-License-Identifier: MIT */
/*
 * How a pool does its I/O: README.md.
 */
#ifndef FILCH_IO_IO_H
#define FILCH_IO_IO_H

#include "io/op.h"
#include "worker/part.h"
#include "worker/source.h"

typedef enum filch_io_way {
    FILCH_IO_URING,   /* a ring for each thread; where one cannot be had, epoll */
    FILCH_IO_EPOLL,   /* one epoll instance for all; idle workers wait for it */
    FILCH_IO_THREADS, /* the same, but a thread of its own waits */
} filch_io_way;

typedef struct filch_ring filch_ring;
typedef struct filch_ready filch_ready;

/* What is known of a descriptor. */
typedef struct filch_fd {
    filch_atomic_u32 flying;    /* operations on it */
    filch_atomic_u32 is_socket; /* something was received from it. A hint: it may have been closed without us, and be another file */
} filch_fd;

typedef struct filch_io {
    filch_part part; /* first: in the pool it is the part */
    filch_pool *pool;
    filch_io_way way;      /* asked for; constant */
    unsigned ring_entries; /* of each ring; constant */

    filch_lock lock;
    filch_ring *rings;   /* all, under the lock */
    filch_ready *ready;  /* under the lock until it is made; then constant */
    filch_atomic_u32 has_rings; /* whether rings can be had: 0 not known, 1 yes, 2 no */
    filch_fd *fds; /* by descriptor; NULL: no memory */
} filch_io;

/* The one of this pool, made if need be; NULL: no memory. */
filch_io *filch_io_get(filch_pool *pool);

/* Strands that go on, in the order in which their operations ended. */
typedef struct filch_ended {
    filch_link *first, **last;
} filch_ended;

#define FILCH_ENDED(name) filch_ended name = {NULL, &name.first}

static inline void filch_ended_add(filch_ended *ended, filch_op *op, ssize_t result)
{
    filch_strand *strand = filch_op_end(op, result);
    if (!strand)
        return;
    strand->link.next = NULL;
    *ended->last = &strand->link;
    ended->last = &strand->link.next;
}

/* ---- system calls: call.c ----------------------------------------------------------------------- */

/* Carry it out, and block as long as it takes. */
ssize_t filch_op_call(filch_op *op);

/* Carry it out if that needs no waiting. -EAGAIN: it does. `is_ready`: the descriptor has just been said to be. */
ssize_t filch_op_try(filch_op *op, bool is_ready);

/* It was tried, and is given up: a descriptor that was made non-blocking for it becomes what it was. */
void filch_op_undo(filch_op *op);

/* Which events of its descriptor it waits for; 0: it is about a file, and waits for the disk. */
unsigned filch_op_events(const filch_op *op);

/* Does it read or write a file, and not a stream, at the position that the file has, and so move that? Rings do not move it when they write less than asked for: the next write would
 * go to the same place. */
bool filch_op_moves_file(const filch_op *op);

/* Is it worth a try before it is handed to a ring? */
bool filch_op_is_tried_first(const filch_op *op);

/* The same as filch_op_call, but not beyond the deadline. */
ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns);

const char *filch_op_name(const filch_op *op);

/* ---- rings: ring.c ------------------------------------------------------------------------------ */

/* A ring for the calling thread. 0 or -errno: it cannot be had. */
int filch_ring_create(filch_ring **ring, filch_io *io);

/* By its thread. */
void filch_ring_start(filch_ring *ring, filch_op *op);

/* By anybody: let the ring try to take back cancel->target; or all that it has of cancel->fd, if the target is itself. It flies until that has been tried. */
void filch_ring_cancel(filch_ring *ring, filch_op *cancel);

/* A list of rings: this one before the others, and what comes after it. */
filch_ring *filch_ring_before(filch_ring *ring, filch_ring *others);
filch_ring *filch_ring_next(filch_ring *ring);

/* No thread uses it any more, or in the child of a fork(). */
void filch_ring_destroy(filch_ring *ring);

bool filch_source_is_ring(filch_source *source);

/* ---- epoll: ready.c ----------------------------------------------------------------------------- */

int filch_ready_create(filch_ready **ready, filch_io *io, bool has_thread);
void filch_ready_destroy(filch_ready *ready);
void filch_ready_forget(filch_ready *ready);

/* A source for a worker's thread; NULL: a thread of its own waits. */
filch_source *filch_ready_source(filch_ready *ready);

/* The operation is not ready; have it tried again when it may be. 0, or -errno: it cannot be waited for in this way. */
int filch_ready_start(filch_ready *ready, filch_op *op);

void filch_ready_cancel(filch_ready *ready, filch_op *op);

/* All of this descriptor. */
void filch_ready_cancel_all(filch_ready *ready, int fd);

#endif
