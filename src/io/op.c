/* SPDX-License-Identifier: MIT */
/*
 * Operations for their task: start, wait, cancel, run; and the cancellation before a close.
 */
#include "io/epoll.h"
#include "io/ops.h"
#include "io/route.h"
#include "io/uring.h"
#include "wait/wait.h"

#include <filch/scope.h>

/* How many operations of a task in a row may complete at once before the task yields. */
#define AT_ONCE_MAX 16

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

/* ---- start and run --------------------------------------------------------------------------- */

int filch_op_start(filch_frame *f, filch_op *op)
{
    filch_strand *strand = strand_of(f);

    /* relaxed: until it is in flight, only the caller uses the operation. */
    if (!is_known(op) || filch_load_relaxed(&op->state) != FILCH_OP_STATE_IDLE)
        return -EINVAL;
    if (strand && filch_op_launch(f, strand, op, FILCH_NO_DEADLINE, true)) {
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

/* A task whose operations never have to wait would keep its worker. So now and then the task
 * yields, and checks whether it is cancelled. A close is carried out in any case. */
static int take_turn(filch_frame *f, filch_strand *strand, const filch_op *op)
{
    if (strand->at_once < AT_ONCE_MAX || filch_op_has(op, FILCH_TRAIT_CLOSES))
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
    if (filch_op_launch(f, strand, op, deadline_ns, false))
        return filch_op_wait(f, op, deadline_ns);
    strand->at_once++;
    return op->result;
}

/* ---- wait ------------------------------------------------------------------------------------ */

bool filch_op_is_done(filch_op *op)
{
    return filch_op_is_complete(op);
}

int filch_op_await_end(filch_frame *f, filch_op *op, uint64_t deadline_ns)
{
    filch_waiting waiting;

    if (filch_op_is_complete(op))
        return 0;
    filch_waiting_begin(&waiting, f, op->target ? FILCH_WAITS_CANCELLATION : FILCH_WAITS_OPERATION,
                        op->target ? filch_waits_operation(op->target->code, op->target->fd)
                                   : filch_waits_operation(op->code, op->fd));
    if (!filch_op_await(op, waiting.turn)) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    return outcome >= 0 || !filch_op_stop_waiting(op, waiting.turn) ? 0 : outcome;
}

/* Cancel the operation, and wait until it is complete. */
static void cancel_and_wait(filch_frame *f, filch_op *op)
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

/* A ring has found that an open has to wait for another process. Or epoll has reported the
 * descriptor as ready, but the call may still block. */
static bool is_left_to_thread(const filch_op *op)
{
    return op->source ? filch_op_waits_to_open(op) : !op->carrier && filch_op_needs_ready_fd(op);
}

static void go_on_thread(filch_frame *f, filch_io *io, filch_op *op, uint64_t deadline_ns)
{
    if (op->is_cancelled) {
        filch_op_undo(op);
        op->result = -ECANCELED;
    } else {
        filch_op_carry_out(f, io, op, FILCH_ROUTE_THREAD, deadline_ns);
    }
}

ssize_t filch_op_wait(filch_frame *f, filch_op *op, uint64_t deadline_ns)
{
    /* relaxed: only the caller changes it to or from IDLE. */
    if (!is_known(op) || filch_load_relaxed(&op->state) == FILCH_OP_STATE_IDLE)
        return -EINVAL;
    /* In the child of a fork() the operation belongs to the parent. */
    if (op->strand && !filch_pool_is_alive(((filch_strand *)op->strand)->pool) &&
        !filch_op_is_complete(op))
        return -EOWNERDEAD;
    int outcome = filch_op_await_end(f, op, deadline_ns);
    if (outcome < 0)
        cancel_and_wait(f, op);
    if (op->strand) {
        filch_io *io = filch_io_get(filch_strand_of(f)->pool);
        filch_fd *fd = filch_io_fd(io, op->fd);
        /* relaxed: a hint. */
        if (fd && filch_op_has(op, FILCH_TRAIT_POLLS_FIRST) && op->result >= 0)
            filch_store_relaxed(&fd->is_socket, 1);
        if (op->source && filch_op_has(op, FILCH_TRAIT_OPENS))
            filch_op_end_open(op);
        if (is_left_to_thread(op))
            go_on_thread(f, io, op, deadline_ns);
        filch_io_count_op(io->pool, op, -1u);
    }
    if (op->carrier)
        filch_op_end_task(f, op);
    op->strand = NULL;
    /* relaxed: only the caller uses the operation now. */
    filch_store_relaxed(&op->state, FILCH_OP_STATE_IDLE);
    return outcome < 0 && op->result == -ECANCELED ? outcome : op->result;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

void filch_op_cancel(filch_frame *f, filch_op *op)
{
    /* relaxed: only the caller changes it to or from IDLE; cancel_and_wait checks whether it is
     * complete. */
    if (!strand_of(f) || !op || filch_load_relaxed(&op->state) == FILCH_OP_STATE_IDLE)
        return;
    if (!filch_op_is_complete(op))
        cancel_and_wait(f, op);
    else
        op->is_cancelled = true; /* go_on_thread checks it */
}

void filch_io_cancel_all(filch_frame *f, filch_io *io, int fd)
{
    filch_fd *known = filch_io_fd(io, fd);

    if (!known)
        return;
    /* relaxed: as in filch_io_count. */
    filch_store_relaxed(&known->is_socket, 0);
    filch_store_relaxed(&known->where, FILCH_WHERE_UNKNOWN);
    filch_lock_acquire(&io->lock);
    filch_uring *ring = io->rings;
    filch_epoll *epoll = io->epoll;
    filch_lock_release(&io->lock);
    if (filch_load_relaxed(&known->in_flight) == 0) {
        if (epoll)
            filch_epoll_remove(epoll, fd);
        return;
    }
    /* relaxed: as in filch_io_closings. */
    filch_fetch_add_relaxed(&known->closings, 1);
    filch_frame *shield = filch_shield(f);
    /* relaxed: as in filch_io_count. */
    unsigned last =
        filch_load_relaxed(&known->splices) > 0 ? FILCH_URING_ALLS : FILCH_URING_SPLICES;
    /* Submit each request twice: the first does not find an operation for which an event has just
     * come. The kernel tries that operation again before it takes the second request. */
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
