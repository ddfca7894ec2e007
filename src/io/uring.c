/* SPDX-License-Identifier: MIT */
/*
 * The submissions and completions of a ring.
 *
 * Only the ring's thread writes and submits entries (SINGLE_ISSUER). Completions become visible
 * only when that thread enters the kernel (DEFER_TASKRUN). That is the fastest mode, but no
 * operation begins or completes while the thread computes. Then the lookout kicks the thread: a
 * signal makes it enter the kernel for a moment. There its entries are submitted, and completions
 * become visible. The lookout reads these in place of the thread. Hence the two sides:
 *
 *     submissions   written by the ring's thread. `tail` is published with every entry, so each
 *                   system call, also in the signal's handler, submits all of them.
 *     completions   read by the thread that holds the lock `reading`: the lookout, or the ring's
 *                   thread, which also holds it while it sleeps. A thread that finds the lock taken
 *                   leaves the completions to the holder.
 *
 * Other threads put requests to cancel an operation into the inbox (inbox.h). Then they ring the
 * bell, an eventfd that the ring polls.
 *
 * With the kernel: `publish` stores the tail of the submissions, release, for the kernel to read.
 * `read_completions` loads the tail of the completions, acquire, which the kernel has written. The
 * heads go the other way: [kernel], README.md.
 */
#include "io/uring.h"
#include "base/clock.h"
#include "io/ops.h"
#include "io/stream.h"

#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The user data of the bell. No operation has this address. */
#define OF_BELL 1

/* How long the lookout spins for a thread that it has kicked. Then it sleeps, since both may be on
 * one CPU. */
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

/* ---- submissions ----------------------------------------------------------------------------- */

/* A free entry, all zero; NULL: there is none, even after submitting the others. */
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

static void fill_cancel(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    if (op->target != op) {
        entry->addr = (uint64_t)(uintptr_t)op->target;
    } else if (op->mode) {
        entry->len = op->mode;
        entry->cancel_flags = IORING_ASYNC_CANCEL_OP | IORING_ASYNC_CANCEL_ALL;
    } else {
        entry->fd = op->fd;
        entry->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
    }
}

static void fill_poll(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = filch_op_fd(op);
    entry->poll32_events = filch_op_events(op);
}

/* Multishot: accept again and again, or receive again and again, into buffers of the ring. */
static void fill_stream(struct io_uring_sqe *entry, const filch_op *op)
{
    filch_op_row_of(op)->fill(op, entry);
    if (op->code == FILCH_OP_ACCEPT) {
        entry->ioprio = IORING_ACCEPT_MULTISHOT;
    } else {
        entry->ioprio = IORING_RECV_MULTISHOT | IORING_RECVSEND_POLL_FIRST;
        entry->flags = IOSQE_BUFFER_SELECT;
    }
}

static void fill(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->user_data = (uint64_t)(uintptr_t)op;
    if (op->target)
        fill_cancel(entry, op);
    else if (op->stage == FILCH_STAGE_POLL)
        fill_poll(entry, op);
    else if (op->stage == FILCH_STAGE_STREAM)
        fill_stream(entry, op);
    else
        filch_op_row_of(op)->fill(op, entry);
}

/* Fill an entry, to be published. False: there is no free entry. */
static bool prepare(filch_uring *ring, const filch_op *op)
{
    struct io_uring_sqe *entry = get_entry(ring);

    if (entry)
        fill(entry, op);
    return entry;
}

static void ring_bell(filch_uring *ring)
{
    const uint64_t one = 1;
    while (write(ring->source.bell, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void request_cancel(filch_uring *ring, filch_op *request)
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
    else if (filch_op_rows[code].traits & FILCH_TRAIT_MAKES_FD && item.result >= 0)
        close(item.result);
}

/* One more completion of a stream, or its last. */
static void put_into_stream(filch_uring *ring, filch_op *op, filch_stream_item item, bool is_last,
                            filch_ended *ended)
{
    filch_stream *stream = (filch_stream *)((char *)op - offsetof(filch_stream, op));
    unsigned code = op->code; /* after the last completion the stream may be gone */
    filch_stream_news news = filch_stream_put(stream, item, is_last);

    if (news.is_to_stop)
        request_cancel(ring, &stream->stop);
    if (news.is_refused)
        filch_uring_drop(ring, code, item);
    filch_ended_add(ended, news.strand);
}

static filch_strand *complete_stop(filch_op *op)
{
    return filch_stream_end_stop((filch_stream *)((char *)op - offsetof(filch_stream, stop)));
}

static void complete(filch_uring *ring, filch_op *op, ssize_t result, filch_ended *ended)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ring->source.pending, -1u);
    if (op->stage == FILCH_STAGE_STREAM)
        put_into_stream(ring, op, (filch_stream_item){(int)result, FILCH_NO_BUFFER}, true, ended);
    else
        filch_ended_add(ended, op->stage == FILCH_STAGE_STOP ? complete_stop(op)
                                                             : filch_op_complete(op, result));
}

static void complete_served(filch_uring *ring, filch_ended *ended)
{
    filch_op *op = filch_inbox_take_served(&ring->inbox);
    if (op)
        complete(ring, op, 0, ended);
}

/* Submit the operations in the inbox. False: some are left, since the kernel takes no more now. */
static bool empty_inbox(filch_uring *ring, filch_ended *ended)
{
    filch_op *next;

    if (filch_inbox_seems_empty(&ring->inbox))
        return true;
    /* acq_rel [submitting] */
    filch_exchange_acq_rel(&ring->is_submitting, 1);
    filch_op *op = filch_inbox_take_all(&ring->inbox);
    complete_served(ring, ended);
    for (; op; op = next) {
        next = op->next;
        /* The handler may already have carried out a later request, which did not find this
         * operation. */
        if (filch_io_has_closed(ring->io, op)) {
            complete(ring, op, -ECANCELED, ended);
        } else if (prepare(ring, op)) {
            filch_op_publish(op);
            publish(ring);
        } else if (!filch_inbox_put_back(&ring->inbox, op)) {
            complete(ring, op, -ECANCELED, ended);
        }
    }
    /* release [submitting] */
    filch_store_release(&ring->is_submitting, 0);
    return filch_inbox_seems_empty(&ring->inbox);
}

void filch_uring_start(filch_uring *ring, filch_op *op)
{
    /* relaxed: a count. The reader of completions may be another thread, hence no plain store. */
    filch_fetch_add_relaxed(&ring->source.pending, 1);
    bool has_place = prepare(ring, op);
    /* Set the state again after prepare has read the operation: its reader may write to it. */
    filch_op_set_in_flight(op);
    if (has_place)
        publish(ring);
    else
        filch_inbox_push(&ring->inbox, op);
}

void filch_uring_cancel(filch_uring *ring, filch_op *request)
{
    filch_op_set_in_flight(request);
    request_cancel(ring, request);
}

void filch_uring_cancel_all(filch_uring *ring, filch_op *request, filch_uring_all which)
{
    static const unsigned char opcodes[FILCH_URING_ALLS] = {
        [FILCH_URING_SPLICES] = IORING_OP_SPLICE, [FILCH_URING_POLLS] = IORING_OP_POLL_ADD};

    request->target = request;
    request->mode = opcodes[which];
    filch_uring_cancel(ring, request);
}

/* ---- completions ----------------------------------------------------------------------------- */

/* A splice that the kernel cancels returns a number of the kernel's own (ERESTARTSYS), which no
 * program should see. */
static bool is_interrupted(int result)
{
    return result == -EINTR || (result <= -512 && result >= -516);
}

/* Is the operation to be submitted again? */
static bool is_repeated(filch_op *op, int result)
{
    if (op->target || op->stage == FILCH_STAGE_STREAM)
        return false;
    if (result == -EAGAIN)
        filch_op_find_side(op);
    if (op->stage == FILCH_STAGE_POLL && result >= 0)
        op->stage = FILCH_STAGE_ITSELF;
    else if (op->stage == FILCH_STAGE_ITSELF && result == -EAGAIN && filch_op_events(op))
        op->stage = FILCH_STAGE_POLL;
    else
        /* A close cancels too much: operations on duplicates of its descriptor, and splices on
         * others. Submit those again. The caller does not resubmit the operations that the close or
         * the request is for: filch_io_has_closed, is_cancelled. */
        return is_interrupted(result) || result == -ECANCELED;
    return true;
}

static bool has_completions(filch_uring *ring)
{
    /* acquire [kernel]. relaxed: a hint; the reader looks again. */
    return filch_load_acquire(ring->cq_tail) != filch_load_relaxed(ring->cq_head);
}

/* With many connections, operations are not in the cache. Prefetch those of the next completions,
 * and the strands of operations prefetched earlier. */
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
        filch_op_acquire(op);
        filch_strand *strand = op->strand;
        __builtin_prefetch(&strand->wait, 1);
        __builtin_prefetch(&strand->context, 1);
    }
}

/* Read a completion of a stream: it has a buffer, or others follow. */
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
        filch_op_acquire(op);
        if (entry->flags & IORING_CQE_F_MORE || entry->flags & IORING_CQE_F_BUFFER) {
            read_stream(ring, op, entry, ended);
            continue;
        }
        /* Submit it again through the inbox: this may not be the thread of the ring. */
        bool is_over = !is_repeated(op, entry->res);
        if (is_over || filch_io_has_closed(ring->io, op) || !filch_inbox_put_back(&ring->inbox, op))
            complete(ring, op, is_over ? entry->res : -ECANCELED, ended);
    }
    /* release [kernel] */
    filch_store_release(ring->cq_head, head);
}

/* Read completions, unless another thread holds `reading`. If that is the ring's thread, about to
 * sleep, it reads them itself. */
static void reap(filch_uring *ring, filch_ended *ended)
{
    if (!has_completions(ring) || !filch_lock_try(&ring->reading))
        return;
    read_completions(ring, ended);
    filch_lock_release(&ring->reading);
}

static bool has_to_enter(filch_uring *ring)
{
    /* relaxed: a hint; entering the kernel fetches the completions that the flags announce. */
    return filch_uring_unsubmitted(ring) > 0 ||
           filch_load_relaxed(ring->sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static filch_link *poll_uring(filch_source *source, bool is_due)
{
    filch_uring *ring = (filch_uring *)source;
    (void)is_due;

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

static filch_link *wait_in_uring(filch_source *source, const struct timespec *timeout)
{
    filch_uring *ring = (filch_uring *)source;

    FILCH_ENDED(ended);

    /* No other thread may read completions until this thread is awake again. After this thread has
     * seen that the bell is polled, the bell may ring, or a close may cancel its poll with others.
     * A kick may then complete the poll. If the lookout read that completion, this thread would
     * sleep and not hear the bell. With the lock held, the completion is still there, and the
     * kernel returns at once. */
    filch_lock_acquire(&ring->reading);
    bool is_empty = empty_inbox(ring, &ended);
    /* If the bell is not polled, or operations are left in the inbox, the kernel is out of memory
     * and takes no entries. Wait for a moment only. */
    const struct timespec moment = {.tv_nsec = 1000000};
    if (!watch_bell(ring) || !is_empty)
        timeout = &moment;
    /* If the bell's completion was read before, do not sleep. The bell may have rung for this
     * sleep: a thread on its way to sleep can already be called. */
    if (!ended.first && !has_completions(ring) && !ring->has_rung)
        enter(ring->fd, filch_uring_unsubmitted(ring), 1, 0, timeout);
    read_completions(ring, &ended);
    ring->has_rung = false;
    filch_lock_release(&ring->reading);
    return ended.first;
}

static filch_link *look_at_uring(filch_source *source, bool *is_near)
{
    filch_uring *ring = (filch_uring *)source;
    FILCH_ENDED(ended);

    filch_op *over =
        filch_inbox_seems_empty(&ring->inbox) ? NULL : filch_inbox_hasten(&ring->inbox);
    if (over) {
        complete(ring, over->target, -ECANCELED, &ended);
        complete(ring, over, 0, &ended);
    }
    if (filch_inbox_has_urgent(&ring->inbox) || (!has_completions(ring) && has_to_enter(ring))) {
        uint64_t since_ns = filch_clock_ns();
        filch_uring_kick(ring);
        while (!has_completions(ring) && filch_clock_ns() - since_ns < KICK_NS)
            filch_pause();
        *is_near = true;
    }
    complete_served(ring, &ended);
    /* This may put operations into the inbox, or read the bell's completion. The ring's thread
     * finds both when it goes to sleep. If it sleeps already, it reads the completions itself. */
    reap(ring, &ended);
    return ended.first;
}

const filch_source filch_uring_source = {
    .bell = -1, .poll = poll_uring, .wait = wait_in_uring, .look = look_at_uring};

bool filch_source_is_uring(filch_source *source)
{
    return source->poll == poll_uring;
}
