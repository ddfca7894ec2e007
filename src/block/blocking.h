/* SPDX-License-Identifier: MIT */
/*
 * Calls that block, with a deadline.
 */
#ifndef FILCH_BLOCK_BLOCKING_H
#define FILCH_BLOCK_BLOCKING_H

#include <filch/blocking.h>

/* As filch_blocking; or -ETIMEDOUT: at the deadline no thread had begun the call, and it was not
 * made. */
int filch_blocking_until(filch_frame *f, filch_lane lane, int (*fn)(void *arg), void *arg,
                         uint64_t deadline_ns);

#endif
