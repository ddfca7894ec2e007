/* SPDX-License-Identifier: MIT */
/*
 * What a ring consists of: for ring.c, which has its life and what flies on it, and kick.c, which interrupts its thread.
 */
#ifndef FILCH_IO_URING_H
#define FILCH_IO_URING_H

#include "io/inbox.h"
#include "io/io.h"

#include <linux/io_uring.h>

/* Not in headers before Linux 6.6. */
#ifndef IORING_ASYNC_CANCEL_OP
#define IORING_ASYNC_CANCEL_OP (1U << 5)
#endif

struct filch_uring {
    filch_source source; /* first: of the worker's thread it is the source */
    filch_io *io;
    filch_uring *next; /* in io->rings */
    int fd;
    pid_t thread;

    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;

    struct io_uring_sqe *sq;
    filch_atomic_u32 *sq_head, *sq_tail, *sq_flags;
    uint32_t sq_mask, tail;

    filch_lock reading; /* of who reads completions; of its thread while it sleeps */
    bool has_bell;      /* it is being polled */
    bool has_rung;      /* that was read since its thread was last asleep */
    filch_atomic_u32 *cq_head, *cq_tail;
    struct io_uring_cqe *cq;
    uint32_t cq_mask;

    filch_buffers buffers; /* for streams; made by the first */

    filch_inbox inbox;
    filch_atomic_u32
        is_submitting; /* its thread is about to submit what it has taken out of the inbox: [submitting] */
};

/* Entries that are published, and that the kernel has not taken. */
static inline uint32_t filch_uring_unsubmitted(filch_uring *ring)
{
    /* relaxed: a hint, or of its thread, which the kernel runs on. */
    return filch_load_relaxed(ring->sq_tail) - filch_load_relaxed(ring->sq_head);
}

/* ---- kick.c -------------------------------------------------------------------------------------- */

/* Before the first ring: the handler of SIGURG, once in a process. */
void filch_kick_prepare(void);

/* Make its thread, which computes, enter the kernel for a moment. */
void filch_uring_kick(filch_uring *ring);

#endif
