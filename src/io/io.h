/* SPDX-License-Identifier: MIT */
/*
 * The part of a pool that does its I/O: README.md.
 */
#ifndef FILCH_IO_IO_H
#define FILCH_IO_IO_H

#include "io/op.h"
#include "worker/part.h"
#include "worker/source.h"

typedef enum filch_io_way {
    FILCH_IO_URING,   /* a ring for each thread; a thread that cannot have one uses epoll */
    FILCH_IO_EPOLL,   /* one epoll instance for the pool; idle workers wait in it */
    FILCH_IO_THREADS, /* the same, but a separate thread waits in it */
} filch_io_way;

typedef struct filch_uring filch_uring;
typedef struct filch_epoll filch_epoll;

/* The record of one descriptor. */
typedef struct filch_fd {
    filch_atomic_u32 in_flight; /* operations on it */
    filch_atomic_u32 splices;   /* of these, splices */
    filch_atomic_u32 closings;  /* how often filch_close has cancelled operations on it */
    filch_atomic_u32 is_socket; /* a recv has succeeded. A hint: if close(2) has closed the
                                 * descriptor, its number may be another file by now */
    filch_atomic_u32 where;     /* enum filch_where. A hint, too */
} filch_fd;

/* Is the file system of a directory on this machine? */
enum filch_where { FILCH_WHERE_UNKNOWN, FILCH_WHERE_HERE, FILCH_WHERE_ELSEWHERE };

typedef struct filch_io {
    filch_part part; /* first: the pool has a pointer to it */
    filch_pool *pool;
    filch_io_way way;          /* asked for; constant */
    unsigned ring_entries;     /* of each ring; constant */
    filch_atomic_u32 refusals; /* how often a thread got no ring */

    filch_lock lock;
    filch_uring *rings;         /* all, under the lock */
    filch_epoll *epoll;         /* under the lock until it is made; then constant */
    filch_atomic_u32 has_rings; /* whether rings can be had: 0 not known, 1 yes, 2 no */
    filch_atomic_u32 slow_dirs; /* how many more calls do not take the route QUICK: quick.c */
    filch_fd *fds;              /* by descriptor; NULL: no memory */
} filch_io;

/* The part of this pool, made if need be; NULL: no memory. */
filch_io *filch_io_get(filch_pool *pool);

/* If a guest runs the strand (filch_run from outside), yield until a thread of the pool runs it. A
 * ring belongs to one thread of the pool, and a guest does not wait in epoll. */
void filch_io_move_to_thread(filch_frame *f, filch_strand *strand);

/* The source for operations that start on this worker's thread, made if need be: its ring, or
 * epoll. NULL: a separate thread waits in epoll, or no source could be made. */
filch_source *filch_io_source(filch_io *io, filch_worker *worker);

/* The ring of the thread that runs this strand, after filch_io_move_to_thread; NULL: there is
 * none. */
filch_uring *filch_io_uring(filch_frame *f, filch_strand *strand);

/* The epoll instance of the pool, made if need be; NULL: no memory or no descriptor for it. */
filch_epoll *filch_io_epoll(filch_io *io);

/* As filch_io_epoll, for an operation that this worker's thread starts. Also NULL if no thread
 * would wait in epoll for the operation. */
filch_epoll *filch_io_watched_epoll(filch_io *io, filch_worker *worker);

/* The record of a descriptor; NULL: it has none, as its number is too large, or there is no
 * memory. */
filch_fd *filch_io_fd(filch_io *io, int fd);

/* Add `change` to the number of operations in flight on `fd`; or on the descriptors of `op`. */
void filch_io_count(filch_pool *pool, int fd, uint32_t change);
void filch_io_count_op(filch_pool *pool, const filch_op *op, uint32_t change);

/* How often filch_close has cancelled operations on the descriptors of this operation. */
uint32_t filch_io_closings(filch_io *io, const filch_op *op);

/* Has filch_close cancelled the operation since it was started? Then it must not be carried out
 * again: its descriptor may be another file by now. */
static inline bool filch_io_has_closed(filch_io *io, const filch_op *op)
{
    return !op->target && op->closings != filch_io_closings(io, op);
}

/* ---- strands that readers resume ------------------------------------------------------------- */

/* Strands to resume, in the order in which their operations completed. */
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

#endif
