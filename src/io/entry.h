/* SPDX-License-Identifier: MIT */
/*
 * Fill the fields that io_uring entries of several operations have in common.
 */
#ifndef FILCH_IO_ENTRY_H
#define FILCH_IO_ENTRY_H

#include "io/ops.h"

#include <linux/io_uring.h>

static inline void filch_fill_at_path(struct io_uring_sqe *entry, unsigned opcode,
                                      const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->path;
}

static inline void filch_fill_buffer(struct io_uring_sqe *entry, unsigned opcode,
                                     const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->buffer;
    entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
    entry->off = op->offset;
}

#endif
