/* SPDX-License-Identifier: MIT */
/*
 * The I/O part of a pool: its way of I/O, its rings, its epoll instance, and the table of
 * descriptors.
 */
#include "io/io.h"

#include "base/memory.h"
#include "base/valgrind.h"
#include "fork/fork.h"
#include "io/epoll.h"
#include "io/ops.h"
#include "io/uring.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DEFAULT_RING_ENTRIES 256

/* Descriptors below this number have a record. For others, filch_close cancels no operations. */
#define COUNTED_FDS ((size_t)1 << 20)

enum { RINGS_UNKNOWN, RINGS_YES, RINGS_NO };

/* ---- create and destroy ---------------------------------------------------------------------- */

static const char *const way_names[] = {
    [FILCH_IO_URING] = "uring", [FILCH_IO_EPOLL] = "epoll", [FILCH_IO_THREADS] = "threads"};

/* Valgrind does not see what the kernel writes through a ring. A program that sleeps in a ring does
 * not end on a signal there. */
static void choose_default_way(filch_io *io)
{
    bool is_on_valgrind = filch_is_on_valgrind();

    io->way = is_on_valgrind ? FILCH_IO_THREADS : FILCH_IO_URING;
    if (is_on_valgrind && filch_is_verbose())
        fprintf(stderr,
                "filch: pool '%s': I/O by threads, since valgrind does not follow io_uring\n",
                io->pool->options.name);
}

/* FILCH_IO is one of the names. "uring:<n>" also says how many entries each ring has. */
static void choose_way(filch_io *io)
{
    const char *wish = getenv("FILCH_IO");
    size_t length = wish ? strcspn(wish, ":") : 0;
    unsigned entries = 0;

    io->ring_entries = DEFAULT_RING_ENTRIES;
    if (!wish || !*wish) {
        choose_default_way(io);
        return;
    }
    for (size_t i = 0; i < sizeof way_names / sizeof way_names[0]; i++)
        if (strlen(way_names[i]) == length && strncmp(way_names[i], wish, length) == 0) {
            io->way = (filch_io_way)i;
            if (i == FILCH_IO_URING && sscanf(wish + length, ":%u", &entries) == 1 && entries > 0 &&
                entries <= 4096)
                io->ring_entries = entries;
            if (filch_is_verbose())
                fprintf(stderr, "filch: pool '%s': I/O by %s, set by FILCH_IO\n",
                        io->pool->options.name, way_names[i]);
            return;
        }
    if (filch_is_verbose())
        fprintf(stderr,
                "filch: pool '%s': '%.32s' in FILCH_IO ignored; there are uring, epoll, threads\n",
                io->pool->options.name, wish);
    choose_default_way(io);
}

static void end_rings(filch_io *io)
{
    filch_uring *ring;

    while ((ring = io->rings)) {
        io->rings = filch_uring_next(ring);
        filch_uring_destroy(ring);
    }
}

static void free_io(filch_io *io)
{
    end_rings(io);
    if (io->fds)
        munmap(io->fds, COUNTED_FDS * sizeof *io->fds);
    free(io);
}

static void destroy(filch_part *part)
{
    filch_io *io = (filch_io *)part;

    if (io->epoll)
        filch_epoll_destroy(io->epoll);
    free_io(io);
}

static void forget(filch_part *part)
{
    filch_io *io = (filch_io *)part;

    if (io->epoll)
        filch_epoll_forget(io->epoll);
    free_io(io);
}

filch_io *filch_io_get(filch_pool *pool)
{
    filch_part *part = filch_parts_get(&pool->parts, FILCH_PART_IO);
    if (part)
        return (filch_io *)part;
    filch_io *io = filch_calloc(1, sizeof *io);
    if (!io)
        return NULL;
    io->part = (filch_part){destroy, forget};
    io->pool = pool;
    choose_way(io);
    void *fds = filch_fault(FILCH_FAULT_MAP)
                    ? MAP_FAILED
                    : mmap(NULL, COUNTED_FDS * sizeof *io->fds, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    io->fds = fds == MAP_FAILED ? NULL : fds;
    part = filch_parts_add(&pool->parts, FILCH_PART_IO, &io->part);
    if (part != &io->part)
        free_io(io);
    return (filch_io *)part;
}

/* ---- rings and epoll ------------------------------------------------------------------------- */

filch_epoll *filch_io_epoll(filch_io *io)
{
    filch_lock_acquire(&io->lock);
    if (!io->epoll)
        filch_epoll_create(&io->epoll, io, io->way == FILCH_IO_THREADS);
    filch_epoll *epoll = io->epoll;
    filch_lock_release(&io->lock);
    return epoll;
}

/* A ring for the calling thread; NULL: there can be none. */
static filch_uring *create_ring(filch_io *io)
{
    filch_uring *ring = NULL;

    /* relaxed: a thread that does not see the answer asks the kernel. */
    if (io->way != FILCH_IO_URING || filch_load_relaxed(&io->has_rings) == RINGS_NO)
        return NULL;
    int err = filch_uring_create(&ring, io);
    if (!err) {
        /* relaxed: as above. */
        filch_store_relaxed(&io->has_rings, RINGS_YES);
        return ring;
    }
    /* relaxed: the first refusal is reported, once. */
    if (filch_is_verbose() && filch_fetch_add_relaxed(&io->refusals, 1) == 0)
        fprintf(stderr, "filch: pool '%s': no io_uring (%s); going on with epoll\n",
                io->pool->options.name, strerror(-err));
    /* relaxed: as above. Memory and descriptors may become available later. */
    if (err != -ENOMEM && err != -EMFILE && err != -ENFILE)
        filch_store_relaxed(&io->has_rings, RINGS_NO);
    return NULL;
}

filch_source *filch_io_source(filch_io *io, filch_worker *worker)
{
    filch_source *source = filch_worker_source(worker);

    if (source)
        return source;
    filch_uring *ring = create_ring(io);
    filch_epoll *epoll = ring ? NULL : filch_io_epoll(io);
    if (ring) {
        filch_lock_acquire(&io->lock);
        io->rings = filch_uring_before(ring, io->rings);
        filch_lock_release(&io->lock);
        source = (filch_source *)ring;
        filch_kick_accept();
    } else if (epoll) {
        source = filch_epoll_source(epoll);
    }
    if (source)
        filch_worker_set_source(worker, source);
    return source;
}

/* A worker that could make no source before still has none. If epoll can be made now, it is the
 * source of this worker from here on: otherwise no thread would see the event. */
filch_epoll *filch_io_watched_epoll(filch_io *io, filch_worker *worker)
{
    filch_epoll *epoll = filch_io_epoll(io);
    filch_source *source = epoll ? filch_epoll_source(epoll) : NULL;

    if (source && !filch_worker_source(worker))
        filch_worker_set_source(worker, source);
    return !source || filch_worker_source(worker) == source ? epoll : NULL;
}

void filch_io_move_to_thread(filch_frame *f, filch_strand *strand)
{
    while (strand->worker->is_visited) {
        filch_publish_all(f);
        filch_worker_leave(strand, FILCH_LEAVE_TO_YIELD, NULL);
    }
}

filch_uring *filch_io_uring(filch_frame *f, filch_strand *strand)
{
    filch_io_move_to_thread(f, strand);
    filch_io *io = filch_io_get(strand->pool);
    filch_source *source = io ? filch_io_source(io, strand->worker) : NULL;
    return source && filch_source_is_uring(source) ? (filch_uring *)source : NULL;
}

const char *filch_pool_io(filch_pool *pool)
{
    filch_io *io = pool ? filch_io_get(pool) : NULL;

    if (!io)
        return NULL;
    /* relaxed: as in create_ring. */
    if (filch_load_relaxed(&io->has_rings) == RINGS_UNKNOWN) {
        filch_uring *ring = create_ring(io);
        if (ring)
            filch_uring_destroy(ring);
    }
    /* relaxed: as above. */
    return filch_load_relaxed(&io->has_rings) == RINGS_NO && io->way == FILCH_IO_URING
               ? way_names[FILCH_IO_EPOLL]
               : way_names[io->way];
}

/* ---- descriptors ----------------------------------------------------------------------------- */

filch_fd *filch_io_fd(filch_io *io, int fd)
{
    return io->fds && fd >= 0 && (size_t)fd < COUNTED_FDS ? &io->fds[fd] : NULL;
}

void filch_io_count(filch_pool *pool, int fd, uint32_t change)
{
    filch_fd *known = filch_io_fd(filch_io_get(pool), fd);
    /* relaxed: a program that closes a descriptor while other tasks begin to use it has a race
     * anyway. */
    if (known)
        filch_fetch_add_relaxed(&known->in_flight, change);
}

void filch_io_count_op(filch_pool *pool, const filch_op *op, uint32_t change)
{
    bool is_splice = filch_op_has(op, FILCH_TRAIT_TWO_FDS);
    const int fds[] = {op->fd, filch_op_second_fd(op)};

    for (unsigned i = 0; i < 2; i++) {
        filch_fd *known = filch_io_fd(filch_io_get(pool), fds[i]);
        filch_io_count(pool, fds[i], change);
        /* relaxed: as above. */
        if (known && is_splice)
            filch_fetch_add_relaxed(&known->splices, change);
    }
}

uint32_t filch_io_closings(filch_io *io, const filch_op *op)
{
    const filch_fd *fd = filch_io_fd(io, op->fd), *fd2 = filch_io_fd(io, filch_op_second_fd(op));
    /* relaxed: a close counts before it sends its request. The lock of an inbox, or of epoll's
     * lists, brings us the count with the request. */
    return (fd ? filch_load_relaxed(&fd->closings) : 0) +
           (fd2 ? filch_load_relaxed(&fd2->closings) : 0);
}
