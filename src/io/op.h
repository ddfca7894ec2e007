/* SPDX-License-Identifier: MIT */
/*
 * The state of an operation: who waits for it, and whether it has ended.
 *
 *     IDLE -- start --> FLYING <-- the task waits / gives up --> FLYING, waited for by this turn of the task's strand
 *      ^                  |                                        |
 *      |                  '------------- its end -----------------'
 *      |                                  v
 *      '----- filch_op_wait returns --- DONE
 *
 * The task that starts an operation is the one that waits for it, so `strand` does not change while it flies. Whoever ends it writes the result, then DONE, and touches nothing of it after that: it
 * may lie on the stack of a task that goes on at once. The strand stays a strand, and its turn makes a late wake-up harmless (strand/wait_word.h).
 *
 * Edges
 *   op-started  filch_op_fly, filch_op_hand_on -> filch_op_meet
 *               carries the operation. So does the way through the kernel, but that nobody else can see.
 *   op-done  filch_op_end -> filch_op_await, filch_op_give_up, filch_op_has_ended
 *            carries the result, and what the kernel or another thread wrote to the buffers.
 */
#ifndef FILCH_IO_OP_H
#define FILCH_IO_OP_H

#include "strand/strand.h"

#include <filch/io.h>

/* The turn of a wait is in the bits above (FILCH_WAIT_TURN). */
enum filch_op_state {
    FILCH_OP_STATE_IDLE,
    FILCH_OP_STATE_IN_FLIGHT,
    FILCH_OP_STATE_AWAITED, /* flying, and waited for */
    FILCH_OP_STATE_DONE,
};

/* By the task, before anybody else knows it. */
static inline void filch_op_fly(filch_op *op)
{
    /* release [op-started] */
    filch_store_release(&op->state, FILCH_OP_STATE_IN_FLIGHT);
}

/* By who has touched it while it flies, before the kernel gets it: so whoever learns of its end comes after that. The kernel orders it, too, but
 * ThreadSanitizer does not see that. */
static inline void filch_op_hand_on(filch_op *op)
{
    /* release [op-started] */
    filch_fetch_add_release(&op->state, 0);
}

/* By whoever learns of its end, before anything else. */
static inline void filch_op_meet(filch_op *op)
{
    /* acquire [op-started] */
    (void)filch_load_acquire(&op->state);
}

/* By the task: `turn` of its strand waits for it. False: it has ended. */
static inline bool filch_op_await(filch_op *op, uint64_t turn)
{
    uint64_t state = FILCH_OP_STATE_IN_FLIGHT;
    /* acquire [op-done] */
    return filch_cas_acq_rel(&op->state, &state, turn | FILCH_OP_STATE_AWAITED);
}

/* By the task, which goes on though it has not been told of the end. False: it has ended meanwhile. */
static inline bool filch_op_give_up(filch_op *op, uint64_t turn)
{
    uint64_t state = turn | FILCH_OP_STATE_AWAITED;
    /* acquire [op-done] */
    return filch_cas_acq_rel(&op->state, &state, FILCH_OP_STATE_IN_FLIGHT);
}

static inline bool filch_op_has_ended(filch_op *op)
{
    /* acquire [op-done] */
    return filch_load_acquire(&op->state) == FILCH_OP_STATE_DONE;
}

/* By whoever carries it out, once. Returns the strand to resume, or NULL. The operation may be gone then. */
static inline filch_strand *filch_op_end(filch_op *op, ssize_t result)
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
