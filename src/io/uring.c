/* SPDX-License-Identifier: MIT */
/*
 * One io_uring for each thread that does I/O.
 *
 * Only its thread fills and submits it (SINGLE_ISSUER), and completions come into being when that thread enters the kernel (DEFER_TASKRUN): the fastest mode there is, but one in which nothing
 * happens while the thread computes. Then the lookout kicks it (filch_uring's look): a signal makes the thread enter the kernel for a moment, where it submits what it has written and completes
 * what has happened; and the lookout reads the completions in its place. Hence the two sides:
 *
 *     submissions   written by its thread. `tail` is published with every entry, so that whoever enters the kernel, also the handler of the signal, submits all of them.
 *     completions   read by whoever has the lock `reading`: its thread, which also has it while it sleeps, or the lookout; if it is taken, there is nothing to do.
 *
 * What others want of it (to take an operation back) they put into the inbox (inbox.h), and ring the bell: an eventfd that the ring polls.
 *
 * With the kernel: it reads the tail of the submissions that `publish` stores, release, and writes that of the completions, which `read_completions` loads, acquire; and the head of these the other way round: [kernel], README.md.
 */
#include "io/uring.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/memory.h"
#include "io/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a completion is of, if not of an operation. */
#define OF_BELL 1

/* How long the lookout waits for the one it has kicked, before it sleeps and looks again: both may be on one CPU. */
#define KICK_NS 20000

static int enter(int fd, unsigned submit_count, unsigned complete_count, unsigned flags,
                 const struct timespec *timeout)
{
    struct __kernel_timespec time = {0};
    struct io_uring_getevents_arg arg = {0};

    if (timeout) {
        time.tv_sec = timeout->tv_sec;
        time.tv_nsec = timeout->tv_nsec;
        arg.ts = (uint64_t)(uintptr_t)&time;
    }
    long count = syscall(SYS_io_uring_enter, fd, submit_count, complete_count,
                         flags | IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
    return count < 0 ? -errno : (int)count;
}

/* ---- submissions ---------------------------------------------------------------------------------- */

/* A place for an entry; NULL: there is none, even after those before have been submitted. */
static struct io_uring_sqe *get_entry(filch_uring *ring)
{
    if (filch_uring_unsubmitted(ring) > ring->sq_mask)
        enter(ring->fd, filch_uring_unsubmitted(ring), 0, 0, NULL);
    if (filch_uring_unsubmitted(ring) > ring->sq_mask)
        return NULL;
    struct io_uring_sqe *entry = &ring->sq[ring->tail & ring->sq_mask];
    memset(entry, 0, sizeof *entry);
    return entry;
}

static void publish(filch_uring *ring)
{
    /* release [kernel] */
    filch_store_release(ring->sq_tail, ++ring->tail);
}

/* An entry for it, to be published. False: there is no place. */
static bool prepare(filch_uring *ring, const filch_op *op)
{
    struct io_uring_sqe *entry = get_entry(ring);

    if (entry)
        filch_op_fill(op, entry);
    return entry;
}

static void ring_bell(filch_uring *ring)
{
    const uint64_t one = 1;
    while (write(ring->source.bell, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void cancel(filch_uring *ring, filch_op *request)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ring->source.pending, 1);
    filch_inbox_push(&ring->inbox, request);
    ring_bell(ring);
}

void filch_uring_drop(filch_uring *ring, unsigned code, filch_stream_item item)
{
    if (item.buffer != FILCH_NO_BUFFER)
        filch_buffers_give(&ring->buffers, item.buffer);
    else if (code == FILCH_OP_ACCEPT && item.result >= 0)
        close(item.result);
}

/* One more for a stream, or the last. */
static void put_into_stream(filch_uring *ring, filch_op *op, filch_stream_item item, bool is_last,
                            filch_ended *ended)
{
    filch_stream *stream = (filch_stream *)((char *)op - offsetof(filch_stream, op));
    unsigned code = op->code; /* it may be gone after the last */
    filch_stream_news news = filch_stream_put(stream, item, is_last);

    if (news.is_to_stop)
        cancel(ring, &stream->stop);
    if (news.is_refused)
        filch_uring_drop(ring, code, item);
    filch_ended_add(ended, news.strand);
}

static filch_strand *end_stop(filch_op *op)
{
    return filch_stream_end_stop((filch_stream *)((char *)op - offsetof(filch_stream, stop)));
}

static void end(filch_uring *ring, filch_op *op, ssize_t result, filch_ended *ended)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ring->source.pending, -1u);
    if (op->stage == FILCH_STAGE_STREAM)
        put_into_stream(ring, op, (filch_stream_item){(int)result, FILCH_NO_BUFFER}, true, ended);
    else
        filch_ended_add(ended, op->stage == FILCH_STAGE_STOP
                                   ? end_stop(op)
                                   : filch_op_end(op, filch_op_fail(op, result)));
}

static void end_served(filch_uring *ring, filch_ended *ended)
{
    filch_op *op = filch_inbox_take_served(&ring->inbox);
    if (op)
        end(ring, op, 0, ended);
}

/* False: some are still there, since the kernel takes no more now. */
static bool empty_inbox(filch_uring *ring, filch_ended *ended)
{
    filch_op *next;

    if (filch_inbox_seems_empty(&ring->inbox))
        return true;
    /* acq_rel [submitting] */
    filch_exchange_acq_rel(&ring->is_submitting, 1);
    filch_op *op = filch_inbox_take_all(&ring->inbox);
    end_served(ring, ended);
    for (; op; op = next) {
        next = op->next;
        /* A request that came later may have been carried out before it, by the handler: it did not find it. */
        if (filch_io_has_closed(ring->io, op)) {
            end(ring, op, -ECANCELED, ended);
        } else if (prepare(ring, op)) {
            filch_op_hand_on(op);
            publish(ring);
        } else if (!filch_inbox_put_back(&ring->inbox, op)) {
            end(ring, op, -ECANCELED, ended);
        }
    }
    /* release [submitting] */
    filch_store_release(&ring->is_submitting, 0);
    return filch_inbox_seems_empty(&ring->inbox);
}

void filch_uring_start(filch_uring *ring, filch_op *op)
{
    /* relaxed: of its thread; the reader of completions may be another, hence no plain store. */
    filch_fetch_add_relaxed(&ring->source.pending, 1);
    bool has_place = prepare(ring, op);
    /* Once more, now that it was read: whoever learns of its end may write to it. */
    filch_op_fly(op);
    if (has_place)
        publish(ring);
    else
        filch_inbox_push(&ring->inbox, op);
}

void filch_uring_cancel(filch_uring *ring, filch_op *request)
{
    filch_op_fly(request);
    cancel(ring, request);
}

void filch_uring_cancel_all(filch_uring *ring, filch_op *request, filch_uring_all which)
{
    static const unsigned char opcodes[FILCH_URING_ALLS] = {
        [FILCH_URING_SPLICES] = IORING_OP_SPLICE, [FILCH_URING_POLLS] = IORING_OP_POLL_ADD};

    request->target = request;
    request->mode = opcodes[which];
    filch_uring_cancel(ring, request);
}

/* ---- completions ---------------------------------------------------------------------------------- */

/* Was it only interrupted? A splice that the kernel takes back says so with a number of its own (ERESTARTSYS), which no program should see. */
static bool is_interrupted(int result)
{
    return result == -EINTR || (result <= -512 && result >= -516);
}

/* Is it to be carried out once more? */
static bool is_repeated(filch_op *op, int result)
{
    if (op->target || op->stage == FILCH_STAGE_STREAM)
        return false;
    if (result == -EAGAIN)
        filch_op_find_wait(op);
    if (op->stage == FILCH_STAGE_POLL && result >= 0)
        op->stage = FILCH_STAGE_ITSELF;
    else if (op->stage == FILCH_STAGE_ITSELF && result == -EAGAIN && filch_op_events(op))
        op->stage = FILCH_STAGE_POLL;
    else
        /* Who closes a descriptor takes back more than is meant: what flies on a duplicate of it, and splices of others. Those that are meant are not carried out again: filch_io_has_closed, is_cancelled. */
        return is_interrupted(result) || result == -ECANCELED || filch_op_goes_on(op, result);
    return true;
}

static bool has_completions(filch_uring *ring)
{
    /* acquire [kernel]. relaxed: a hint; who reads them looks again. */
    return filch_load_acquire(ring->cq_tail) != filch_load_relaxed(ring->cq_head);
}

/* Of many connections nothing is in the cache: fetch the operations that come next, and the strands of those that are here by now. */
static void fetch_ahead(filch_uring *ring, uint32_t head, uint32_t tail)
{
    const uint32_t far = 8, near = 4;

    if (tail - head > far)
        __builtin_prefetch((filch_op *)(uintptr_t)ring->cq[(head + far) & ring->cq_mask].user_data,
                           1);
    filch_op *op = tail - head > near
                       ? (filch_op *)(uintptr_t)ring->cq[(head + near) & ring->cq_mask].user_data
                       : NULL;
    if (op && (uintptr_t)op != OF_BELL) {
        filch_op_meet(op);
        filch_strand *strand = op->strand;
        __builtin_prefetch(&strand->wait, 1);
        __builtin_prefetch(&strand->context, 1);
    }
}

/* A completion of a stream that has a buffer, or that others follow. */
static void read_stream(filch_uring *ring, filch_op *op, const struct io_uring_cqe *entry,
                        filch_ended *ended)
{
    bool is_last = !(entry->flags & IORING_CQE_F_MORE);
    filch_stream_item item = {entry->res, entry->flags & IORING_CQE_F_BUFFER
                                              ? entry->flags >> IORING_CQE_BUFFER_SHIFT
                                              : FILCH_NO_BUFFER};

    if (is_last)
        /* relaxed: a count. */
        filch_fetch_add_relaxed(&ring->source.pending, -1u);
    put_into_stream(ring, op, item, is_last, ended);
}

/* Under `reading`. */
static void read_completions(filch_uring *ring, filch_ended *ended)
{
    /* relaxed: under the lock. */
    uint32_t head = filch_load_relaxed(ring->cq_head);
    /* acquire [kernel] */
    uint32_t tail = filch_load_acquire(ring->cq_tail);
    for (; head != tail; head++) {
        const struct io_uring_cqe *entry = &ring->cq[head & ring->cq_mask];
        fetch_ahead(ring, head, tail);
        filch_op *op = (filch_op *)(uintptr_t)entry->user_data;
        if (entry->user_data == OF_BELL) {
            ring->has_rung = true;
            ring->has_bell = entry->flags & IORING_CQE_F_MORE;
            continue;
        }
        filch_op_meet(op);
        if (entry->flags & IORING_CQE_F_MORE || entry->flags & IORING_CQE_F_BUFFER) {
            read_stream(ring, op, entry, ended);
            continue;
        }
        /* By the inbox, since we may not be its thread. */
        bool is_over = !is_repeated(op, entry->res);
        if (is_over || filch_io_has_closed(ring->io, op) || !filch_inbox_put_back(&ring->inbox, op))
            end(ring, op, is_over ? entry->res : -ECANCELED, ended);
    }
    /* release [kernel] */
    filch_store_release(ring->cq_head, head);
}

/* Unless somebody else does so, or its thread is about to sleep, which reads them itself. */
static void reap(filch_uring *ring, filch_ended *ended)
{
    if (!has_completions(ring) || !filch_lock_try(&ring->reading))
        return;
    read_completions(ring, ended);
    filch_lock_release(&ring->reading);
}

static bool has_to_enter(filch_uring *ring)
{
    /* relaxed: what it announces is had by entering the kernel. */
    return filch_uring_unsubmitted(ring) > 0 ||
           filch_load_relaxed(ring->sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static filch_link *poll_ring(filch_source *source)
{
    filch_uring *ring = (filch_uring *)source;

    FILCH_ENDED(ended);

    empty_inbox(ring, &ended);
    if (has_to_enter(ring))
        enter(ring->fd, filch_uring_unsubmitted(ring), 0, 0, NULL);
    reap(ring, &ended);
    return ended.first;
}

/* Under `reading`. */
static bool watch_bell(filch_uring *ring)
{
    if (ring->has_bell)
        return true;
    struct io_uring_sqe *entry = get_entry(ring);
    if (!entry)
        return false;
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = ring->source.bell;
    entry->poll32_events = POLLIN;
    entry->len = IORING_POLL_ADD_MULTI;
    entry->user_data = OF_BELL;
    ring->has_bell = true;
    publish(ring);
    return true;
}

static filch_link *wait_in_ring(filch_source *source, const struct timespec *timeout)
{
    filch_uring *ring = (filch_uring *)source;

    FILCH_ENDED(ended);

    /* Nobody else reads completions until it is awake again. The bell may ring, or be taken back with other polls, after we have seen that it is polled, and a kick have that completed: if the lookout read it, we
     * would sleep, and hear nothing. So it is still there when we enter the kernel, which returns at once. */
    filch_lock_acquire(&ring->reading);
    bool is_empty = empty_inbox(ring, &ended);
    /* No bell, or something that the kernel does not take: let it have a moment. It is out of memory. */
    const struct timespec moment = {.tv_nsec = 1000000};
    if (!watch_bell(ring) || !is_empty)
        timeout = &moment;
    /* If it was read before that the bell has rung, that was perhaps for us: we are called once we are on our way to sleep. */
    if (!ended.first && !has_completions(ring) && !ring->has_rung)
        enter(ring->fd, filch_uring_unsubmitted(ring), 1, 0, timeout);
    read_completions(ring, &ended);
    ring->has_rung = false;
    filch_lock_release(&ring->reading);
    return ended.first;
}

static filch_link *look_after_ring(filch_source *source, bool *is_near)
{
    filch_uring *ring = (filch_uring *)source;
    FILCH_ENDED(ended);

    filch_op *over =
        filch_inbox_seems_empty(&ring->inbox) ? NULL : filch_inbox_hasten(&ring->inbox);
    if (over) {
        end(ring, over->target, -ECANCELED, &ended);
        end(ring, over, 0, &ended);
    }
    if (filch_inbox_has_urgent(&ring->inbox) || (!has_completions(ring) && has_to_enter(ring))) {
        uint64_t since_ns = filch_clock_ns();
        filch_uring_kick(ring);
        while (!has_completions(ring) && filch_clock_ns() - since_ns < KICK_NS)
            filch_pause();
        *is_near = true;
    }
    end_served(ring, &ended);
    /* What is put into the inbox here, or was said by the bell, its thread finds when it goes to sleep: if it sleeps already, it reads the completions itself. */
    reap(ring, &ended);
    return ended.first;
}

/* ---- create and destroy ----------------------------------------------------------------------------- */

static void *at(const filch_uring *ring, uint32_t offset)
{
    return (char *)ring->rings + offset;
}

static int map(filch_uring *ring, const struct io_uring_params *params)
{
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

    ring->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    ring->rings = mmap(NULL, ring->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       ring->fd, IORING_OFF_SQ_RING);
    if (ring->rings == MAP_FAILED)
        return -errno;
    ring->sqes_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->sqes = mmap(NULL, ring->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      ring->fd, IORING_OFF_SQES);
    if (ring->sqes == MAP_FAILED) {
        int err = -errno;
        munmap(ring->rings, ring->rings_bytes);
        return err;
    }
    ring->sq = ring->sqes;
    ring->sq_head = at(ring, params->sq_off.head);
    ring->sq_tail = at(ring, params->sq_off.tail);
    ring->sq_flags = at(ring, params->sq_off.flags);
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_head = at(ring, params->cq_off.head);
    ring->cq_tail = at(ring, params->cq_off.tail);
    ring->cq = at(ring, params->cq_off.cqes);
    ring->cq_mask = params->cq_entries - 1;
    uint32_t *array = at(ring, params->sq_off.array);
    for (uint32_t i = 0; i < params->sq_entries; i++)
        array[i] = i;
    return 0;
}

int filch_uring_create(filch_uring **out, filch_io *io)
{
    /* SUBMIT_ALL: an entry that the kernel refuses does not keep those behind it from being submitted. */
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE |
                 IORING_SETUP_SUBMIT_ALL,
        /* Tests have small ones; what does not fit is kept by the kernel. */
        .cq_entries = io->ring_entries < 64 ? io->ring_entries : 8 * io->ring_entries};
    filch_uring *ring = filch_calloc(1, sizeof *ring);
    int err = -ENOMEM;

    if (!ring)
        return err;
    filch_kick_prepare();
    ring->io = io;
    ring->thread = (pid_t)syscall(SYS_gettid);
    ring->source =
        (filch_source){.bell = filch_descriptor_of_ours(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
                       .poll = poll_ring,
                       .wait = wait_in_ring,
                       .look = look_after_ring};
    err = -errno;
    if (ring->source.bell < 0)
        goto free_ring;
    ring->fd =
        filch_descriptor_of_ours((int)syscall(SYS_io_uring_setup, io->ring_entries, &params));
    err = -errno;
    if (ring->fd < 0)
        goto close_bell;
    err = -EOPNOTSUPP;
    if (!(params.features & IORING_FEAT_SINGLE_MMAP) || !(params.features & IORING_FEAT_NODROP) ||
        !(params.features & IORING_FEAT_EXT_ARG))
        goto close_ring;
    err = map(ring, &params);
    if (err)
        goto close_ring;
    *out = ring;
    return 0;

close_ring:
    close(ring->fd);
close_bell:
    close(ring->source.bell);
free_ring:
    free(ring);
    return err;
}

void filch_uring_destroy(filch_uring *ring)
{
    munmap(ring->sqes, ring->sqes_bytes);
    munmap(ring->rings, ring->rings_bytes);
    close(ring->fd);
    filch_buffers_fini(&ring->buffers);
    close(ring->source.bell);
    free(ring);
}

bool filch_uring_has_buffers(filch_uring *ring)
{
    /* Tests have few. */
    unsigned count = ring->io->ring_entries < 64 ? 4 : 256;

    return ring->buffers.queue || filch_buffers_init(&ring->buffers, ring->fd, count) == 0;
}

filch_buffers *filch_uring_buffers(filch_uring *ring)
{
    return &ring->buffers;
}

filch_uring *filch_uring_before(filch_uring *ring, filch_uring *others)
{
    ring->next = others;
    return ring;
}

filch_uring *filch_uring_next(filch_uring *ring)
{
    return ring->next;
}

bool filch_source_is_uring(filch_source *source)
{
    return source->poll == poll_ring;
}
