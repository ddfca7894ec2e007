/* SPDX-License-Identifier: MIT */
/*
 * The state of an operation: whether it is complete, and whether its task waits for it.
 *
 *     IDLE --- start ---> IN_FLIGHT <--- the task waits / stops waiting ---> AWAITED + turn
 *      ^                      |                                                  |
 *      |                      '------------------- complete --------------------'
 *      |                                              v
 *      '--------- filch_op_wait returns ----------- DONE
 *
 * The task that starts an operation is the task that waits for it, so `strand` does not change
 * while the operation is in flight.
 *
 * The thread that completes an operation is its reader. The reader writes the result, then DONE.
 * After that it must not touch the operation, which may be on the stack of a task that goes on at
 * once. The strand remains valid memory, and its turn makes a late wake-up harmless
 * (strand/wait_word.h).
 *
 * Edges
 *   op-started  filch_op_set_in_flight, filch_op_publish -> filch_op_acquire
 *               carries the operation. The way through the kernel orders it, too, but no tool sees
 *               that.
 *   op-done  filch_op_complete -> filch_op_await, filch_op_stop_waiting, filch_op_is_complete
 *            carries the result, and the buffers that the kernel or another thread filled.
 */
#ifndef FILCH_IO_OP_H
#define FILCH_IO_OP_H

#include "strand/strand.h"

#include <filch/io.h>

/* The turn of a wait is in the bits above (FILCH_WAIT_TURN). */
enum filch_op_state {
    FILCH_OP_STATE_IDLE,
    FILCH_OP_STATE_IN_FLIGHT,
    FILCH_OP_STATE_AWAITED, /* in flight, and a strand waits for it */
    FILCH_OP_STATE_DONE,
};

/* By the task, before another thread or the kernel knows the operation. */
static inline void filch_op_set_in_flight(filch_op *op)
{
    /* release [op-started] */
    filch_store_release(&op->state, FILCH_OP_STATE_IN_FLIGHT);
}

/* By a thread that has written to an operation in flight, before it submits the operation: orders
 * the writes before its reader. The kernel orders them as well, but ThreadSanitizer does not see
 * that. */
static inline void filch_op_publish(filch_op *op)
{
    /* release [op-started] */
    filch_fetch_add_release(&op->state, 0);
}

/* By the reader, before it touches other members of the operation. */
static inline void filch_op_acquire(filch_op *op)
{
    /* acquire [op-started] */
    (void)filch_load_acquire(&op->state);
}

/* By the task: its strand waits for the operation with this turn. False: the operation is
 * complete. */
static inline bool filch_op_await(filch_op *op, uint64_t turn)
{
    uint64_t state = FILCH_OP_STATE_IN_FLIGHT;
    /* acquire [op-done] */
    return filch_cas_acq_rel(&op->state, &state, turn | FILCH_OP_STATE_AWAITED);
}

/* By the task, whose wait has ended for another reason. False: the operation has completed
 * meanwhile. */
static inline bool filch_op_stop_waiting(filch_op *op, uint64_t turn)
{
    uint64_t state = turn | FILCH_OP_STATE_AWAITED;
    /* acquire [op-done] */
    return filch_cas_acq_rel(&op->state, &state, FILCH_OP_STATE_IN_FLIGHT);
}

static inline bool filch_op_is_complete(filch_op *op)
{
    /* acquire [op-done] */
    return filch_load_acquire(&op->state) == FILCH_OP_STATE_DONE;
}

/* By the reader, once. Returns the strand to resume, or NULL. After this call the operation may be
 * gone. */
static inline filch_strand *filch_op_complete(filch_op *op, ssize_t result)
{
    filch_strand *strand = op->strand;

    op->result = result;
    /* release [op-done] */
    uint64_t state = filch_exchange_acq_rel(&op->state, FILCH_OP_STATE_DONE);
    bool is_awaited = (state & ~FILCH_WAIT_TURN) == FILCH_OP_STATE_AWAITED;
    return is_awaited &&
                   filch_wait_end(&strand->wait, state & FILCH_WAIT_TURN, 0) == FILCH_WAIT_RESUME
               ? strand
               : NULL;
}

#endif
