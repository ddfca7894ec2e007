/* SPDX-License-Identifier: MIT */
/*
 * The kick: a signal for a thread that computes with operations in flight. Its handler enters the
 * kernel. There the thread's entries are submitted, completions become visible, and the urgent
 * request to cancel is carried out (inbox.h).
 */
#include "io/uring.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tells our kicks from SIGURG that the program sends itself. */
#define KICK_CODE (-0x6c66)

static struct sigaction old_action;
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;

/* In the handler. It does not matter whether the kernel still finds the operation: the operation
 * completes either way. */
static void serve_urgent(filch_uring *ring)
{
    /* acquire [submitting] */
    filch_op *op =
        filch_load_acquire(&ring->is_submitting) ? NULL : filch_inbox_begin_urgent(&ring->inbox);
    struct io_uring_sync_cancel_reg request = {.timeout = {0, 0}};

    if (!op)
        return;
    if (op->target != op) {
        request.addr = (uint64_t)(uintptr_t)op->target;
    } else if (op->mode) {
        request.flags = IORING_ASYNC_CANCEL_OP | IORING_ASYNC_CANCEL_ALL;
        /* The field `opcode`: headers before Linux 6.6 do not have it. */
        ((uint8_t *)&request)[offsetof(struct io_uring_sync_cancel_reg, timeout) +
                              sizeof request.timeout] = (uint8_t)op->mode;
    } else {
        request.fd = op->fd;
        request.flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
    }
    /* Where this call is forbidden, the thread submits the request itself. */
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_SYNC_CANCEL, &request, 1) >= 0 ||
        (errno != EPERM && errno != EACCES && errno != ENOSYS && errno != ENOMEM))
        filch_inbox_end_urgent(&ring->inbox, op);
}

/* The signal's value is the ring of this thread. The signal may have interrupted any code, so the
 * handler only makes system calls. */
static void on_kick(int signal, siginfo_t *info, void *context)
{
    int saved = errno;

    if (info->si_code == KICK_CODE && info->si_pid == getpid()) {
        filch_uring *ring = info->si_value.sival_ptr;
        /* Three calls. A call that submits fewer entries than asked for fetches no events. After an
         * event, the kernel tries the operation again in one call, and completes it in the next. */
        syscall(SYS_io_uring_enter, ring->fd, UINT16_MAX, 0, 0, NULL, 0);
        /* The request would not find entries that the kernel has not taken, for want of memory. In
         * that case the thread, or the next kick, carries out the request. */
        if (filch_uring_unsubmitted(ring) == 0)
            serve_urgent(ring);
        syscall(SYS_io_uring_enter, ring->fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
        syscall(SYS_io_uring_enter, ring->fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    } else if (old_action.sa_flags & SA_SIGINFO)
        old_action.sa_sigaction(signal, info, context);
    else if (old_action.sa_handler != SIG_DFL && old_action.sa_handler != SIG_IGN)
        old_action.sa_handler(signal);
    errno = saved;
}

static void install_handler(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    action.sa_sigaction = on_kick;
    sigfillset(&action.sa_mask);
    sigaction(SIGURG, &action, &old_action);
}

void filch_kick_prepare(void)
{
    pthread_once(&handler_once, install_handler);
}

void filch_kick_accept(void)
{
    sigset_t kicks;

    /* Unblock SIGURG: a program may block all signals in all threads, and wait for them in one
     * thread. */
    sigemptyset(&kicks);
    sigaddset(&kicks, SIGURG);
    pthread_sigmask(SIG_UNBLOCK, &kicks, NULL);
}

void filch_uring_kick(filch_uring *ring)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = SIGURG;
    info.si_code = KICK_CODE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = ring;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), ring->thread, SIGURG, &info);
}
