/* SPDX-License-Identifier: MIT */
/*
 * A system call that does not return until the test lets it, for tests that define recv, pwritev2
 * and close themselves.
 *
 * Edges
 *   held     the task and the held call, in turn: the descriptor whose call does not return yet.
 *   tried    hold_up -> the task   the call is held.
 *   goes-on  let_go_on -> hold_up  the call may return.
 */
#ifndef TEST_HELD_H
#define TEST_HELD_H

#include "pools.h"

#include <errno.h>
#include <filch/scope.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static struct {
    filch_atomic_u32 fd; /* whose recv, or write that may block, is held; 0: none */
    filch_atomic_u32 is_tried, may_go_on;
} held;

static TEST_UNUSED bool is_held(int fd)
{
    /* acquire [held] */
    return fd > 0 && (uint32_t)fd == filch_load_acquire(&held.fd);
}

static TEST_UNUSED void hold_up(int fd)
{
    if (is_held(fd)) {
        /* release [tried] */
        filch_store_release(&held.is_tried, 1);
        /* acquire [goes-on] */
        while (!filch_load_acquire(&held.may_go_on))
            sched_yield();
        /* release [held] */
        filch_store_release(&held.fd, 0);
    }
}

static TEST_UNUSED int let_go_on(filch_frame *f, void *arg)
{
    (void)f;
    (void)arg;
    /* release [goes-on] */
    filch_store_release(&held.may_go_on, 1);
    return 0;
}

static TEST_UNUSED void reset_held(void)
{
    /* relaxed: no call is held. */
    filch_store_relaxed(&held.is_tried, 0);
    filch_store_relaxed(&held.may_go_on, 0);
}

/* libc's pwritev2. Emulators have no such call; then only calls without flags succeed. */
static TEST_UNUSED ssize_t really_pwritev2(int fd, const struct iovec *parts, int count,
                                           off_t offset, int flags)
{
    ssize_t result =
        syscall(SYS_pwritev2, fd, parts, (long)count, (unsigned long)offset, 0L, (long)flags);

    if (result >= 0 || errno != ENOSYS)
        return result;
    if (flags == 0)
        return offset == -1 ? writev(fd, parts, count) : pwritev(fd, parts, count, offset);
    errno = EOPNOTSUPP;
    return -1;
}

#endif
