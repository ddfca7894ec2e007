/* SPDX-License-Identifier: MIT */
/*
 * The start of an operation: choose a route, take it, and if it does not complete or start the
 * operation, choose again.
 */
#include "io/route.h"

#include "io/epoll.h"
#include "io/ops.h"
#include "io/uring.h"

/* The state of one start. */
typedef struct launch {
    filch_frame *f;
    filch_strand *strand;
    filch_op *op;
    bool was_tried;

    /* Set by prepare. */
    bool is_prepared;
    bool has_ring;       /* and `source` is its ring */
    bool moves_position; /* filch_op_moves_position */
    bool is_to_device;
    filch_io *io; /* NULL: no memory */
    filch_source *source;
    filch_epoll *epoll;
    int epoll_err; /* why EPOLL was not possible */
} launch;

/* The route that its row asks for first; NONE: the choice depends on the results of prepare. */
static filch_route first_route(const filch_op *op)
{
    switch ((filch_op_first)filch_op_row_of(op)->first) {
    case FILCH_FIRST_TRY:
        return FILCH_ROUTE_TRY;
    case FILCH_FIRST_TRY_AT_OFFSET:
        return op->offset != FILCH_FILE_POSITION ? FILCH_ROUTE_TRY : FILCH_ROUTE_NONE;
    case FILCH_FIRST_TRY_IF_DONTWAIT:
        return filch_op_is_dontwait(op) ? FILCH_ROUTE_TRY : FILCH_ROUTE_NONE;
    case FILCH_FIRST_QUICK:
        return FILCH_ROUTE_QUICK;
    case FILCH_FIRST_WAIT:
        break;
    }
    return FILCH_ROUTE_NONE;
}

/* The first routes have not completed the operation. Find out what the other routes need. From here
 * on the strand does not leave its thread until the operation is in flight. */
static void prepare(launch *l)
{
    filch_op *op = l->op;

    l->is_prepared = true;
    filch_io_move_to_thread(l->f, l->strand);
    l->io = filch_io_get(l->strand->pool);
    if (!l->io)
        return;
    if (filch_op_has(op, FILCH_TRAIT_CLOSES)) {
        filch_io_cancel_all(l->f, l->io, op->fd);
        return;
    }
    if (filch_op_has(op, FILCH_TRAIT_TWO_FDS))
        filch_splice_prepare(op);
    l->source = filch_io_source(l->io, l->strand->worker);
    l->has_ring = l->source && filch_source_is_uring(l->source);
    l->moves_position = filch_op_moves_position(op, &l->is_to_device);
    filch_fd *fd = filch_io_fd(l->io, op->fd);
    /* relaxed: a hint. */
    op->is_patient = filch_op_has(op, FILCH_TRAIT_POLLS_FIRST) &&
                     !(op->flags & (MSG_OOB | MSG_ERRQUEUE)) && fd &&
                     filch_load_relaxed(&fd->is_socket);
}

static bool is_for_ring(const launch *l)
{
    return l->has_ring && filch_op_can_use_ring(l->op) && !l->moves_position && !l->is_to_device &&
           !filch_op_must_retry(l->op) && !filch_op_waits_to_open(l->op) &&
           !filch_op_is_for_all(l->op);
}

/* Without memory for the pool's I/O, a task makes the system call itself, and blocks its worker.
 * Might the call wait for another task, which needs this worker? Then the task does not make it. */
static bool waits_for_others(const filch_op *op)
{
    return filch_op_events(op) || filch_op_has(op, FILCH_TRAIT_OPENS);
}

/* The next route, after `last` has not completed the operation. */
static filch_route choose(launch *l, filch_route last)
{
    filch_op *op = l->op;
    filch_route first = last == FILCH_ROUTE_NONE ? first_route(op) : FILCH_ROUTE_NONE;

    /* Most operations complete on their first route, and need neither a ring nor a thread of the
     * pool. */
    if (first != FILCH_ROUTE_NONE)
        return first;
    if (last == FILCH_ROUTE_QUICK)
        return FILCH_ROUTE_TRY;
    if (!l->is_prepared)
        prepare(l);
    if (!l->io)
        return l->was_tried || filch_op_has(op, FILCH_TRAIT_ONCE | FILCH_TRAIT_TWO_FDS)
                   ? FILCH_ROUTE_CALL
                   : FILCH_ROUTE_TRY;
    if (is_for_ring(l))
        return FILCH_ROUTE_URING;
    if (!l->was_tried)
        return FILCH_ROUTE_TRY;

    bool has_to_block = l->moves_position || (l->is_to_device && l->has_ring) ||
                        !filch_op_events(op) || l->epoll_err == -EPERM;
    /* Beside rings, no worker asks epoll. */
    if (!has_to_block && !l->has_ring && last != FILCH_ROUTE_EPOLL) {
        l->epoll = filch_io_watched_epoll(l->io, l->strand->worker);
        if (l->epoll)
            return FILCH_ROUTE_EPOLL;
    }
    return (has_to_block && !filch_op_must_retry(op)) || filch_op_needs_ready_fd(op)
               ? FILCH_ROUTE_THREAD
               : FILCH_ROUTE_RETRY;
}

static void set_in_flight(launch *l, filch_source *source)
{
    filch_op *op = l->op;

    op->strand = l->strand;
    op->is_cancelled = false;
    op->closings = filch_io_closings(l->io, op);
    op->source = source;
    filch_op_set_in_flight(op);
}

/* The same for URING and EPOLL, whose completions a source reports. */
static void set_pending(launch *l, filch_source *source)
{
    set_in_flight(l, source);
    l->strand->worker->owes_watch = true;
    filch_io_count_op(l->strand->pool, l->op, 1);
}

bool filch_op_launch(filch_frame *f, filch_strand *strand, filch_op *op, uint64_t deadline_ns,
                     bool goes_on)
{
    launch l = {.f = f, .strand = strand, .op = op};

    op->strand = NULL;
    op->carrier = NULL;
    filch_op_begin(op);
    for (filch_route route = FILCH_ROUTE_NONE;;) {
        route = choose(&l, route);
        switch (route) {
        case FILCH_ROUTE_NONE: /* not a route */
        case FILCH_ROUTE_CALL:
            op->result = waits_for_others(op) ? -ENOMEM : filch_op_call_until(op, deadline_ns);
            return false;
        case FILCH_ROUTE_TRY:
            if (filch_op_try_at_once(op))
                return false;
            l.was_tried = true;
            break;
        case FILCH_ROUTE_URING:
            set_pending(&l, l.source);
            filch_uring_start((filch_uring *)l.source, op);
            return true;
        case FILCH_ROUTE_EPOLL:
            set_pending(&l, NULL);
            l.epoll_err = filch_epoll_start(l.epoll, op);
            if (!l.epoll_err)
                return true;
            filch_io_count_op(strand->pool, op, -1u);
            break;
        case FILCH_ROUTE_QUICK:
            if (filch_op_call_quick(strand->pool, op))
                return false;
            break;
        case FILCH_ROUTE_RETRY:
        case FILCH_ROUTE_THREAD:
            if (!op->strand)
                set_in_flight(&l, NULL);
            /* Transfers at a position, and writes to a device, keep the order of their starts. */
            if (goes_on && !l.moves_position && !l.is_to_device &&
                filch_op_leave_to_task(l.io, op, route))
                return true;
            op->strand = NULL;
            /* relaxed: no other thread knows the operation. */
            filch_store_relaxed(&op->state, FILCH_OP_STATE_IDLE);
            filch_op_carry_out(f, l.io, op, route, deadline_ns);
            return false;
        }
    }
}
