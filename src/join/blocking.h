/* SPDX-License-Identifier: MIT */
/*
 * Calls that block, with a deadline.
 */
#ifndef FILCH_JOIN_BLOCKING_H
#define FILCH_JOIN_BLOCKING_H

#include <filch/blocking.h>

/* As filch_blocking; or -ETIMEDOUT: no thread has begun with the call until the deadline, and it was not made. */
int filch_blocking_until(filch_slot *f, filch_lane lane, int (*fn)(void *arg), void *arg,
                         uint64_t deadline_ns);

#endif
