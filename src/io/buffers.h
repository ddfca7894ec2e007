/* SPDX-License-Identifier: MIT */
/*
 * Buffers for streams, one set per ring: the kernel takes one when bytes have come, and not before.
 *
 * The buffers are in a queue. The kernel takes them from one end. Tasks on any thread give them
 * back at the other end, under the lock.
 */
#ifndef FILCH_IO_BUFFERS_H
#define FILCH_IO_BUFFERS_H

#include "base/lock.h"

#include <stddef.h>

struct io_uring_buf_ring;

typedef struct filch_buffers {
    struct io_uring_buf_ring *queue; /* NULL: there are none */
    char *memory;
    unsigned count; /* a power of two */
    size_t map_bytes;

    filch_lock lock;
    uint16_t tail; /* under the lock */
} filch_buffers;

/* By the thread of the ring. 0 or -errno. */
int filch_buffers_init(filch_buffers *buffers, int ring_fd, unsigned count);

/* After the ring has been closed. */
void filch_buffers_fini(filch_buffers *buffers);

char *filch_buffers_at(const filch_buffers *buffers, unsigned id);

/* By any thread. */
void filch_buffers_give(filch_buffers *buffers, unsigned id);

#endif
