/* SPDX-License-Identifier: MIT */
/*
 * What the library calls instead of syscall, epoll_ctl, eventfd and their like (calls.txt).
 */
#include "faults.h"

#include <linux/io_uring.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

long attack_syscall(long number, ...);
int attack_epoll_create1(int flags);
int attack_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int attack_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);
int attack_eventfd(unsigned value, int flags);

int attack_epoll_create1(int flags)
{
    return fault_strikes(PART_epoll) ? FAULT_ERROR(EMFILE, ENFILE, ENOMEM) : epoll_create1(flags);
}

/* Only EPOLL_CTL_ADD needs memory. */
int attack_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    return what == EPOLL_CTL_ADD && fault_strikes(PART_epoll) ? FAULT_ERROR(ENOMEM, ENOSPC)
                                                              : epoll_ctl(epoll, what, fd, event);
}

int attack_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    return fault_strikes_some(PART_epoll) ? FAULT_ERROR(EINTR)
                                          : epoll_wait(epoll, events, count, timeout_ms);
}

int attack_eventfd(unsigned value, int flags)
{
    int fd = fault_strikes(PART_descriptors) ? FAULT_ERROR(EMFILE, ENFILE, ENOMEM)
                                             : eventfd(value, flags);
    fault_set_own(fd, true);
    return fd;
}

/* ---- calls by number ------------------------------------------------------------------------- */

/* Entering a ring fails for want of memory for new requests, or because of a signal. */
static int fail_enter(unsigned submit_count, unsigned complete_count)
{
    if (submit_count == 0 && complete_count == 0)
        return 0;
    if (!fault_strikes_some(PART_rings))
        return 0;
    return submit_count > 0 ? EAGAIN : EINTR;
}

static int fail_setup(void)
{
    static const int errors[] = {ENOMEM, EMFILE, EPERM, ENOSYS};
    return fault_strikes(PART_rings) ? errors[fault_below(COUNT_OF(errors))] : 0;
}

static int fail_register(void)
{
    return !fault_strikes(PART_rings) ? 0 : fault_below(2) ? ENOMEM : EPERM;
}

/* A kernel, or a container, refuses the call in all cases or in none. */
static int fail_pwait2(void)
{
    if (fault_percent(PART_epoll) >= 50)
        return fault_percent(PART_epoll) == 50 ? ENOSYS : EPERM;
    return fault_strikes_some(PART_epoll) ? EINTR : 0;
}

static int error_of(long number, const long *arg)
{
    switch (number) {
    case SYS_io_uring_setup:
        return fail_setup();
    case SYS_io_uring_enter:
        return fail_enter((unsigned)arg[1], (unsigned)arg[2]);
    case SYS_io_uring_register:
        return fail_register();
    case SYS_epoll_pwait2:
        return fail_pwait2();
    case SYS_openat2:
        return fault_strikes(PART_paths) ? (fault_below(2) ? EAGAIN : ENOMEM) : 0;
    case SYS_getdents64:
        return fault_strikes(PART_paths) ? ENOMEM : 0;
    case SYS_process_madvise:
        return fault_strikes(PART_advice) ? EINVAL : 0;
    case SYS_rt_tgsigqueueinfo:
        return fault_strikes_some(PART_settings) ? EAGAIN : 0;
    case SYS_process_vm_readv: /* refused by a container */
    case SYS_membarrier:
        return fault_strikes(PART_settings) ? EPERM : 0;
    case SYS_write: /* memory that a dump reads */
    case SYS_gettid:
        return 0;
    default:
        FAIL("the library makes system call %ld: decide in calls_events.c how it may fail", number);
    }
}

/* x86-64 and aarch64 pass six numbers or pointers alike. Reading more than were passed is
 * harmless, as in libc's own syscall(). */
__attribute__((no_sanitize("address"))) long attack_syscall(long number, ...)
{
    long arg[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    int err = error_of(number, arg);
    if (err) {
        errno = err;
        return -1;
    }
    return syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
