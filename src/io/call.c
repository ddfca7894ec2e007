/* SPDX-License-Identifier: MIT */
/*
 * Operations as plain system calls: the routes CALL and TRY.
 */
#include "base/clock.h"
#include "io/ops.h"

#include <poll.h>

/* The longest pause between tries when no event tells when to try again. */
#define LAST_PAUSE_MS 10

ssize_t filch_poll_fd(int fd, unsigned events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = (short)events};
    int count = poll(&one, 1, timeout_ms);
    return count < 0                  ? -errno
           : count == 0               ? -EAGAIN
           : (one.revents & POLLNVAL) ? -EBADF
                                      : one.revents;
}

/* -EAGAIN from a blocking call: the descriptor is non-blocking. If the caller has not asked not to
 * wait, poll. */
static bool has_to_poll(const filch_op *op, ssize_t result)
{
    return result == -EAGAIN && !filch_op_is_dontwait(op) && filch_op_events(op);
}

ssize_t filch_op_call(filch_op *op)
{
    for (;;) {
        ssize_t result = filch_op_row_of(op)->call(op);
        if (filch_op_has(op, FILCH_TRAIT_ONCE))
            return result;
        if (result == -EAGAIN)
            filch_op_find_side(op);
        if (has_to_poll(op, result))
            filch_poll_fd(filch_op_fd(op), filch_op_events(op), -1);
        else if (result != -EINTR)
            return result;
    }
}

/* Wait for the events of the operation; if it has none, for `pause_ms`. True: the descriptor is
 * ready. */
static bool wait_until(const filch_op *op, uint64_t left_ns, int pause_ms)
{
    uint64_t left_ms = (left_ns + 999999) / 1000000;
    int timeout_ms = left_ms > 3600000 ? 3600000 : (int)left_ms;

    if (filch_op_events(op))
        return filch_poll_fd(filch_op_fd(op), filch_op_events(op), timeout_ms) > 0;
    poll(NULL, 0, timeout_ms < pause_ms ? timeout_ms : pause_ms);
    return false;
}

ssize_t filch_op_call_until(filch_op *op, uint64_t deadline_ns)
{
    bool is_splice = filch_op_has(op, FILCH_TRAIT_TWO_FDS),
         is_open = filch_op_has(op, FILCH_TRAIT_OPENS);
    int pause_ms = 1;

    if (deadline_ns == FILCH_NO_DEADLINE ||
        (!is_splice && !is_open && !filch_op_must_retry(op) && !filch_op_events(op)))
        return filch_op_call(op);
    if (is_splice)
        filch_splice_prepare(op);
    for (bool is_ready = false;;) {
        op->result = is_open ? filch_op_open(op) : filch_op_try(op, is_ready);
        bool is_full =
            op->result == -EAGAIN && filch_op_must_retry(op) && !filch_op_is_dontwait(op);
        if (!is_full && !filch_op_waits_to_open(op) && !has_to_poll(op, op->result) &&
            (is_ready || !filch_op_needs_ready_fd(op)))
            return filch_op_needs_ready_fd(op) ? filch_op_call(op) : op->result;
        uint64_t now_ns = filch_clock_ns();
        if (now_ns >= deadline_ns) {
            filch_op_undo(op);
            return filch_op_fail(op, -ETIMEDOUT);
        }
        is_ready = wait_until(op, deadline_ns - now_ns, pause_ms);
        pause_ms += pause_ms < LAST_PAUSE_MS;
    }
}

ssize_t filch_op_try(filch_op *op, bool is_ready)
{
    const filch_op_row *row = filch_op_row_of(op);
    ssize_t result;

    do
        result = row->try(op, is_ready);
    while (result == -EINTR && !(row->traits & FILCH_TRAIT_ONCE));
    return result;
}

bool filch_op_try_at_once(filch_op *op)
{
    op->result = filch_op_try(op, false);
    return (op->result != -EAGAIN && !filch_op_needs_ready_fd(op)) ||
           filch_op_has(op, FILCH_TRAIT_FINAL) || filch_op_is_dontwait(op);
}
