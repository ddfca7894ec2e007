/* SPDX-License-Identifier: MIT */
/*
 * Operations from their start to their end: README.md.
 */
#include "io/io.h"

#include "base/clock.h"
#include "base/memory.h"
#include "fork/fork.h"
#include "wait/wait.h"

#include <errno.h>
#include <filch/blocking.h>
#include <filch/scope.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DEFAULT_RING_ENTRIES 256

/* Descriptors whose operations are counted. Of a larger one, filch_close takes nothing back. */
#define COUNTED_FDS ((size_t)1 << 20)

/* So many operations of a task in a row need not wait, and then others have their turn. */
#define AT_ONCE_MAX 16

enum { RINGS_UNKNOWN, RINGS_YES, RINGS_NO };

/* ---- the part of the pool ---------------------------------------------------------------------- */

static const char *const way_names[] = {
    [FILCH_IO_URING] = "uring", [FILCH_IO_EPOLL] = "epoll", [FILCH_IO_THREADS] = "threads"};

/* FILCH_IO is one of the names; behind that of rings, how many entries each has. */
static void choose_way(filch_io *io)
{
    const char *wish = getenv("FILCH_IO");
    size_t length = wish ? strcspn(wish, ":") : 0;
    unsigned entries = 0;

    io->way = FILCH_IO_URING;
    io->ring_entries = DEFAULT_RING_ENTRIES;
    if (!wish || !*wish)
        return;
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

filch_epoll *filch_io_epoll(filch_io *io)
{
    filch_lock_acquire(&io->lock);
    if (!io->epoll)
        filch_epoll_create(&io->epoll, io, io->way == FILCH_IO_THREADS);
    filch_epoll *epoll = io->epoll;
    filch_lock_release(&io->lock);
    return epoll;
}

/* A ring for the calling thread, of this worker; NULL: it does without. */
static filch_uring *create_ring(filch_io *io)
{
    filch_uring *ring = NULL;

    /* relaxed: who does not know asks the kernel. */
    if (io->way != FILCH_IO_URING || filch_load_relaxed(&io->has_rings) == RINGS_NO)
        return NULL;
    int err = filch_uring_create(&ring, io);
    if (!err) {
        /* relaxed: as above. */
        filch_store_relaxed(&io->has_rings, RINGS_YES);
        return ring;
    }
    /* relaxed: it is said once. */
    if (filch_is_verbose() && filch_fetch_add_relaxed(&io->refusals, 1) == 0)
        fprintf(stderr, "filch: pool '%s': no io_uring (%s); going on with epoll\n",
                io->pool->options.name, strerror(-err));
    /* relaxed: as above. Others that lack memory or descriptors may have them later. */
    if (err != -ENOMEM && err != -EMFILE && err != -ENFILE)
        filch_store_relaxed(&io->has_rings, RINGS_NO);
    return NULL;
}

/* What carries out operations that are started on this worker's thread; NULL: a thread of its own, or nothing to be had. */
static filch_source *get_source(filch_io *io, filch_worker *worker)
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

/* ---- where it is carried out ----------------------------------------------------------------------- */

/* A strand that a guest runs, whose thread is not the pool's, goes on elsewhere first. False: there is nobody else. */
static bool move_to_thread(filch_frame *f, filch_strand *strand)
{
    while (strand->worker->is_visited) {
        if (!filch_pool_may_have_threads(strand->pool))
            return false;
        filch_publish_all(f);
        filch_worker_leave(strand, FILCH_LEAVE_TO_YIELD, NULL);
    }
    return true;
}

filch_uring *filch_io_uring(filch_frame *f, filch_strand *strand)
{
    filch_io *io = move_to_thread(f, strand) ? filch_io_get(strand->pool) : NULL;
    filch_source *source = io ? get_source(io, strand->worker) : NULL;
    return source && filch_source_is_uring(source) ? (filch_uring *)source : NULL;
}

filch_fd *filch_io_fd(filch_io *io, int fd)
{
    return io->fds && fd >= 0 && (size_t)fd < COUNTED_FDS ? &io->fds[fd] : NULL;
}

void filch_io_count(filch_pool *pool, int fd, uint32_t change)
{
    filch_fd *known = filch_io_fd(filch_io_get(pool), fd);
    /* relaxed: who closes a descriptor that others begin to use at the same moment has a race anyway. */
    if (known)
        filch_fetch_add_relaxed(&known->flying, change);
}

uint32_t filch_io_closings(filch_io *io, const filch_op *op)
{
    const filch_fd *fd = filch_io_fd(io, op->fd),
                   *fd2 = op->code == FILCH_OP_SPLICE ? filch_io_fd(io, op->fd2) : NULL;
    /* relaxed: who takes the operation back counts first, and the lock of an inbox or of epoll's lists brings us that with the request. */
    return (fd ? filch_load_relaxed(&fd->closings) : 0) +
           (fd2 ? filch_load_relaxed(&fd2->closings) : 0);
}

void filch_io_count_op(filch_pool *pool, const filch_op *op, uint32_t change)
{
    bool is_splice = op->code == FILCH_OP_SPLICE;
    const int fds[] = {op->fd, op->fd2};

    for (unsigned i = 0; i < 1u + is_splice; i++) {
        filch_fd *known = filch_io_fd(filch_io_get(pool), fds[i]);
        filch_io_count(pool, fds[i], change);
        /* relaxed: as above. */
        if (known && is_splice)
            filch_fetch_add_relaxed(&known->splices, change);
    }
}

/* ---- start ---------------------------------------------------------------------------------------- */

/* Before a close. */
static void take_back_all(filch_frame *f, filch_io *io, int fd);

bool filch_op_try_at_once(filch_op *op)
{
    op->result = filch_op_try(op, false);
    return op->code == FILCH_OP_SHUTDOWN || op->code == FILCH_OP_CLOSE ||
           filch_op_is_impatient(op) || (op->result != -EAGAIN && !filch_op_has_to_be_ready(op));
}

/* True: it flies. False: it has ended, with op->result. `is_left`: the task goes on. */
static bool launch(filch_frame *f, filch_strand *strand, filch_op *op, uint64_t deadline_ns,
                   bool is_left)
{
    op->strand = NULL;
    op->carrier = NULL;
    filch_op_begin(op);
    /* Most of what is tried first in every way needs nothing else: no ring, and no thread of the pool. A close takes back what is in flight before. */
    bool is_tried = op->code != FILCH_OP_CLOSE && filch_op_is_tried_first(op);
    if (filch_dir_call_at_once(strand->pool, op) || (is_tried && filch_op_try_at_once(op)))
        return false;
    bool has_thread = move_to_thread(f, strand);
    filch_io *io = filch_io_get(strand->pool);

    if (!io) {
        op->result = filch_op_call_until(op, deadline_ns);
        return false;
    }
    if (op->code == FILCH_OP_CLOSE) {
        take_back_all(f, io, op->fd);
        return !filch_op_try_at_once(op);
    }
    if (op->code == FILCH_OP_SPLICE)
        filch_op_prepare_splice(op);
    /* From here on until it flies the strand does not leave its thread. One that is not the pool's has no ring, and nobody would wait for epoll. */
    filch_source *source = has_thread ? get_source(io, strand->worker) : NULL;
    bool is_to_device, is_file = filch_op_moves_file(op, &is_to_device);
    filch_fd *fd = filch_io_fd(io, op->fd);
    /* relaxed: a hint. */
    op->is_patient = op->code == FILCH_OP_RECV && !(op->flags & (MSG_OOB | MSG_ERRQUEUE)) && fd &&
                     filch_load_relaxed(&fd->is_socket);
    /* A ring would let a thread of the kernel wait for the queue, which it cannot always take back. */
    bool is_connect_here = op->code == FILCH_OP_CONNECT && !filch_op_events(op);
    bool has_ring = source && filch_source_is_uring(source);
    bool is_by_ring = has_ring && op->code != FILCH_OP_GETDENTS && !is_file && !is_to_device &&
                      !is_connect_here && !filch_op_waits_to_open(op);
    if (!is_tried && !is_by_ring && filch_op_try_at_once(op))
        return false;
    bool has_to_block = is_file || (is_to_device && has_ring) || !filch_op_events(op);
    filch_epoll *epoll = is_by_ring || has_to_block || !has_thread ? NULL : filch_io_epoll(io);
    op->strand = strand;
    op->is_cancelled = false;
    op->closings = filch_io_closings(io, op);
    op->source = is_by_ring ? source : NULL;
    filch_op_fly(op);
    if (is_by_ring || epoll) {
        strand->worker->owes_watch = true;
        filch_io_count_op(strand->pool, op, 1);
        if (is_by_ring)
            filch_uring_start((filch_uring *)source, op);
        int err = is_by_ring ? 0 : filch_epoll_start(epoll, op);
        if (!err)
            return true;
        has_to_block = err == -EPERM; /* no file that is waited for */
        filch_io_count_op(strand->pool, op, -1u);
    }
    bool is_call = (has_to_block && !is_connect_here) || filch_op_has_to_be_ready(op);
    /* Those at the position of a file, and to a device, are in the order in which they were started. */
    if (is_left && !is_file && !is_to_device && filch_op_leave_to_task(io, op, is_call))
        return true;
    op->strand = NULL;
    /* relaxed: nobody else knows it. */
    filch_store_relaxed(&op->state, FILCH_OP_STATE_IDLE);
    filch_op_carry_out(f, io, op, is_call, deadline_ns);
    return false;
}

/* The strand, if its task can be suspended; NULL: block the thread. */
static filch_strand *strand_of(filch_frame *f)
{
    filch_strand *strand = f ? filch_strand_of(f) : NULL;
    return filch_strand_can_leave(strand) ? strand : NULL;
}

static bool is_known(const filch_op *op)
{
    return op && op->code > FILCH_OP_NONE && op->code < FILCH_OP_COUNT;
}

int filch_op_start(filch_frame *f, filch_op *op)
{
    filch_strand *strand = strand_of(f);

    /* relaxed: the caller's own until it flies. */
    if (!is_known(op) || filch_load_relaxed(&op->state) != FILCH_OP_STATE_IDLE)
        return -EINVAL;
    if (strand && launch(f, strand, op, FILCH_NO_DEADLINE, true)) {
        /* The caller may go on to compute. */
        filch_worker_pay_watch(strand->worker);
        return 0;
    }
    if (!strand) {
        filch_op_begin(op);
        op->result = filch_op_call(op);
    }
    /* relaxed: as above. */
    filch_store_relaxed(&op->state, FILCH_OP_STATE_DONE);
    return 0;
}

/* ---- wait ----------------------------------------------------------------------------------------- */

bool filch_op_is_done(filch_op *op)
{
    return filch_op_has_ended(op);
}

int filch_op_await_end(filch_frame *f, filch_op *op, uint64_t deadline_ns)
{
    filch_waiting waiting;

    if (filch_op_is_done(op))
        return 0;
    filch_waiting_begin(&waiting, f, op->target ? "taking back an operation" : filch_op_name(op));
    if (!filch_op_await(op, waiting.turn)) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    return outcome >= 0 || !filch_op_give_up(op, waiting.turn) ? 0 : outcome;
}

/* Take it back, and wait until nobody has anything to do with it any more. */
static void take_back(filch_frame *f, filch_op *op)
{
    filch_frame *shield = filch_shield(f);
    uint64_t patience_ns = FILCH_URING_PATIENCE_NS;

    if (op->carrier) {
        filch_op_cancel_task(op);
        filch_op_await_end(f, op, FILCH_NO_DEADLINE);
    } else if (op->source) {
        do {
            filch_op cancel = {.target = op, .strand = filch_strand_of(f)};
            filch_uring_cancel(op->source, &cancel);
            filch_op_await_end(f, &cancel, FILCH_NO_DEADLINE);
            patience_ns *= 2;
        } while (filch_op_await_end(f, op, filch_after_ns(patience_ns)) < 0);
    } else {
        filch_epoll_cancel(filch_io_epoll(filch_io_get(filch_strand_of(f)->pool)), op);
        filch_op_await_end(f, op, FILCH_NO_DEADLINE);
    }
    if (op->result == -ECANCELED)
        filch_op_undo(op);
    filch_unshield(f, shield);
}

static void take_back_all(filch_frame *f, filch_io *io, int fd)
{
    filch_fd *known = filch_io_fd(io, fd);

    if (!known)
        return;
    /* relaxed: as in count. */
    filch_store_relaxed(&known->is_socket, 0);
    filch_store_relaxed(&known->where, FILCH_WHERE_UNKNOWN);
    if (filch_load_relaxed(&known->flying) == 0)
        return;
    /* relaxed: as in filch_io_closings. */
    filch_fetch_add_relaxed(&known->closings, 1);
    filch_frame *shield = filch_shield(f);
    filch_lock_acquire(&io->lock);
    filch_uring *ring = io->rings;
    filch_epoll *epoll = io->epoll;
    filch_lock_release(&io->lock);
    /* relaxed: as in count. */
    unsigned last =
        filch_load_relaxed(&known->splices) > 0 ? FILCH_URING_ALLS : FILCH_URING_SPLICES;
    /* Twice: of those that the first does not find, because an event has just come, the kernel tries each again before it takes the second. */
    for (; ring; ring = filch_uring_next(ring))
        for (unsigned i = 0; i < 2 * last; i++) {
            filch_op cancel = {.fd = fd, .strand = filch_strand_of(f)};
            filch_uring_cancel_all(ring, &cancel, i % last);
            filch_op_await_end(f, &cancel, FILCH_NO_DEADLINE);
        }
    if (epoll) {
        filch_op cancel = {.fd = fd, .strand = filch_strand_of(f)};
        cancel.target = &cancel;
        filch_epoll_cancel_all(epoll, &cancel);
        filch_op_await_end(f, &cancel, FILCH_NO_DEADLINE);
    }
    filch_unshield(f, shield);
}

void filch_op_cancel(filch_frame *f, filch_op *op)
{
    /* relaxed: the caller's own, or it flies; whether it is done is looked at by take_back. */
    if (strand_of(f) && op && filch_load_relaxed(&op->state) != FILCH_OP_STATE_IDLE &&
        !filch_op_is_done(op))
        take_back(f, op);
}

ssize_t filch_op_wait(filch_frame *f, filch_op *op, uint64_t deadline_ns)
{
    /* relaxed: the caller's own, or it flies. */
    if (!is_known(op) || filch_load_relaxed(&op->state) == FILCH_OP_STATE_IDLE)
        return -EINVAL;
    /* In the child of a fork(): it is the parent's. */
    if (op->strand && !filch_pool_is_alive(((filch_strand *)op->strand)->pool) &&
        !filch_op_is_done(op))
        return -EOWNERDEAD;
    int outcome = filch_op_await_end(f, op, deadline_ns);
    if (outcome < 0)
        take_back(f, op);
    if (op->strand) {
        filch_io *io = filch_io_get(filch_strand_of(f)->pool);
        filch_fd *fd = filch_io_fd(io, op->fd);
        /* relaxed: a hint. */
        if (fd && op->code == FILCH_OP_RECV && op->result >= 0)
            filch_store_relaxed(&fd->is_socket, 1);
        /* Without a ring: ready, but what it does may block all the same. */
        if (!op->source && !op->carrier && filch_op_has_to_be_ready(op))
            filch_op_carry_out(f, io, op, true, deadline_ns);
        filch_io_count_op(io->pool, op, -1u);
    }
    if (op->carrier)
        filch_op_end_task(f, op);
    op->strand = NULL;
    /* relaxed: it is the caller's again. */
    filch_store_relaxed(&op->state, FILCH_OP_STATE_IDLE);
    return outcome < 0 && op->result == -ECANCELED ? outcome : op->result;
}

/* Where there is always something to read, a task would never wait, and keep its worker: so now and then it lets others run, and learns that it is cancelled. A close happens in any case. */
static int take_turn(filch_frame *f, filch_strand *strand, const filch_op *op)
{
    if (strand->at_once < AT_ONCE_MAX || op->code == FILCH_OP_CLOSE)
        return 0;
    strand->at_once = 0;
    return filch_yield(f);
}

ssize_t filch_op_run(filch_frame *f, filch_op *op, uint64_t deadline_ns)
{
    filch_strand *strand = strand_of(f);

    if (!is_known(op))
        return -EINVAL;
    if (!strand) {
        filch_op_begin(op);
        return filch_op_call_until(op, deadline_ns);
    }
    int err = take_turn(f, strand, op);
    if (err)
        return err;
    if (launch(f, strand, op, deadline_ns, false))
        return filch_op_wait(f, op, deadline_ns);
    strand->at_once++;
    return op->result;
}

/* ---- several at once ------------------------------------------------------------------------------ */

ssize_t filch_write_all(filch_frame *f, int fd, const void *buffer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = filch_write(f, fd, (const char *)buffer + done, bytes - done);
        if (count <= 0)
            return count < 0 ? count : -EIO;
        done += (size_t)count;
    }
    return (ssize_t)bytes;
}

ssize_t filch_send_all(filch_frame *f, int fd, const void *buffer, size_t bytes, int flags)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = filch_send(f, fd, (const char *)buffer + done, bytes - done, flags);
        if (count <= 0)
            return count < 0 ? count : -EIO;
        done += (size_t)count;
    }
    return (ssize_t)bytes;
}

ssize_t filch_read_all(filch_frame *f, int fd, void *buffer, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t count = filch_read(f, fd, (char *)buffer + done, bytes - done);
        if (count < 0)
            return count;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

/* ---- names ---------------------------------------------------------------------------------------- */

typedef struct query {
    const char *host, *service;
    const struct addrinfo *hints;
    struct addrinfo **list;
} query;

static int resolve(void *arg)
{
    const query *q = arg;
    return getaddrinfo(q->host, q->service, q->hints, q->list);
}

int filch_getaddrinfo(filch_frame *f, const char *host, const char *service,
                      const struct addrinfo *hints, struct addrinfo **list)
{
    query q = {host, service, hints, list};
    int err = filch_blocking(f, FILCH_LANE_NAMES, resolve, &q);
    return err == -ECANCELED ? EAI_CANCELED : err;
}
