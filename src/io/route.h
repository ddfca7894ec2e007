/* SPDX-License-Identifier: MIT */
/*
 * The routes by which an operation is carried out. README.md says when each is taken.
 */
#ifndef FILCH_IO_ROUTE_H
#define FILCH_IO_ROUTE_H

#include "io/io.h"

typedef enum filch_route {
    FILCH_ROUTE_NONE,   /* none was taken yet */
    FILCH_ROUTE_CALL,   /* the blocking system call, on this thread */
    FILCH_ROUTE_TRY,    /* the system call without blocking */
    FILCH_ROUTE_URING,  /* by the ring of this thread */
    FILCH_ROUTE_EPOLL,  /* tried again when epoll reports the descriptor as ready */
    FILCH_ROUTE_QUICK,  /* the blocking system call, expected to be quick */
    FILCH_ROUTE_RETRY,  /* tried again after pauses */
    FILCH_ROUTE_THREAD, /* the blocking system call, on a thread for calls that block */
} filch_route;

/* Start the operation. True: it is in flight. False: it is complete, with op->result.
 * `goes_on`: the task does not wait for it now (filch_op_start). */
bool filch_op_launch(filch_frame *f, filch_strand *strand, filch_op *op, uint64_t deadline_ns,
                     bool goes_on);

/* ---- RETRY and THREAD: carry.c --------------------------------------------------------------- */

/* Carry the operation out by this route while the task waits, up to op->result. */
void filch_op_carry_out(filch_frame *f, filch_io *io, filch_op *op, filch_route route,
                        uint64_t deadline_ns);

/* Have a separate task, the carrier, do so while this task goes on. At this call the operation is
 * in flight, and no other thread knows it. False: no memory. */
bool filch_op_leave_to_task(filch_io *io, filch_op *op, filch_route route);

/* Cancel the carrier; and, when the operation is DONE, wait for its end and free it. */
void filch_op_cancel_task(filch_op *op);
void filch_op_end_task(filch_frame *f, filch_op *op);

/* ---- waiting and cancelling: op.c ------------------------------------------------------------ */

/* Wait until the operation is complete: 0; or -ETIMEDOUT, -ECANCELED: it is still in flight. */
int filch_op_await_end(filch_frame *f, filch_op *op, uint64_t deadline_ns);

/* Before a close: cancel all operations in flight on `fd` in this pool, and reset the hints about
 * `fd`. */
void filch_io_cancel_all(filch_frame *f, filch_io *io, int fd);

#endif
