/* SPDX-License-Identifier: MIT */
/*
 * One io_uring for each thread that does I/O.
 *
 * Only its thread fills and submits it (SINGLE_ISSUER), and completions come into being when that thread enters the kernel (DEFER_TASKRUN): the fastest mode there is, but one in which nothing
 * happens while the thread computes. Then the lookout kicks it (filch_ring's look): a signal makes the thread enter the kernel for a moment, where it submits what it has written and completes
 * what has happened; and the lookout reads the completions in its place. Hence the two sides:
 *
 *     submissions   written by its thread. `tail` is published with every entry, so that whoever enters the kernel, also the handler of the signal, submits all of them.
 *     completions   read by whoever has the lock `reading`: its thread, or the lookout; if it is taken, there is nothing to do.
 *
 * What others want of it (to take an operation back) they put into the inbox, and ring the bell: an eventfd that the ring polls.
 *
 * With the kernel: it reads the tail of the submissions that `publish` stores, release, and writes that of the completions, which `reap` loads, acquire; and the head of these the other way round.
 *
 * Edges
 *   kernel  publish, reap -> reap    carries entries, and their places back.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "io/io.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a completion is of, if not of an operation. */
#define OF_BELL 1

/* How long the lookout waits for the one it has kicked, before it sleeps and looks again: both may be on one CPU. */
#define KICK_NS 20000

/* Of an operation whose descriptor is non-blocking: waiting for its events, before it is tried again. */
enum stage { STAGE_ITSELF, STAGE_POLL };

struct filch_ring {
    filch_source source; /* first: of the worker's thread it is the source */
    filch_io *io;
    filch_ring *next; /* in io->rings */
    int fd;
    pid_t thread;

    void *rings, *sqes;
    size_t rings_bytes, sqes_bytes;

    struct io_uring_sqe *sq;
    filch_atomic_u32 *sq_head, *sq_tail, *sq_flags;
    uint32_t sq_mask, tail;
    filch_atomic_u32 has_bell; /* it is being polled */

    filch_lock reading;
    filch_atomic_u32 *cq_head, *cq_tail;
    struct io_uring_cqe *cq;
    uint32_t cq_mask;

    filch_lock inbox_lock;
    filch_op *inbox;              /* operations to start, in reverse order, under the lock */
    filch_atomic_u32 inbox_count; /* a hint */
};

static int enter(int fd, unsigned submit_count, unsigned complete_count, unsigned flags,
                 const struct timespec *timeout)
{
    struct __kernel_timespec time = {0};
    struct io_uring_getevents_arg arg = {0};

    if (timeout) {
        time.tv_sec = timeout->tv_sec;
        time.tv_nsec = timeout->tv_nsec;
        arg.ts = (uint64_t)(uintptr_t)&time;
    }
    long count = syscall(SYS_io_uring_enter, fd, submit_count, complete_count,
                         flags | IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &arg, sizeof arg);
    return count < 0 ? -errno : (int)count;
}

/* ---- the kick ----------------------------------------------------------------------------------- */

static struct sigaction old_action;

/* The value is the ring of this thread. Nothing but system calls: we may be anywhere. */
static void on_kick(int signal, siginfo_t *info, void *context)
{
    int saved = errno;

    if (info->si_code == SI_QUEUE && info->si_pid == getpid()) {
        int fd = info->si_value.sival_int;
        /* In three steps: a call that submits less than it says does nothing else; an event first lets an operation be tried again, and then complete. */
        syscall(SYS_io_uring_enter, fd, UINT16_MAX, 0, 0, NULL, 0);
        syscall(SYS_io_uring_enter, fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
        syscall(SYS_io_uring_enter, fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
    } else if (old_action.sa_flags & SA_SIGINFO)
        old_action.sa_sigaction(signal, info, context);
    else if (old_action.sa_handler != SIG_DFL && old_action.sa_handler != SIG_IGN)
        old_action.sa_handler(signal);
    errno = saved;
}

static pthread_once_t handler_once = PTHREAD_ONCE_INIT;

static void install_handler(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

    action.sa_sigaction = on_kick;
    sigfillset(&action.sa_mask);
    sigaction(SIGURG, &action, &old_action);
}

static void kick(filch_ring *ring)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = SIGURG;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = ring->fd;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), ring->thread, SIGURG, &info);
}

/* ---- submissions ---------------------------------------------------------------------------------- */

static uint32_t unsubmitted_count(filch_ring *ring)
{
    /* relaxed: a hint, or of its thread, which the kernel runs on. */
    return filch_load_relaxed(ring->sq_tail) - filch_load_relaxed(ring->sq_head);
}

/* A place for an entry; NULL: there is none, even after those before have been submitted. */
static struct io_uring_sqe *get_entry(filch_ring *ring)
{
    if (unsubmitted_count(ring) > ring->sq_mask)
        enter(ring->fd, unsubmitted_count(ring), 0, 0, NULL);
    if (unsubmitted_count(ring) > ring->sq_mask)
        return NULL;
    struct io_uring_sqe *entry = &ring->sq[ring->tail & ring->sq_mask];
    memset(entry, 0, sizeof *entry);
    return entry;
}

static void publish(filch_ring *ring)
{
    /* release [kernel] */
    filch_store_release(ring->sq_tail, ++ring->tail);
}

static void fill_path(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->path;
}

static void fill_buffer(struct io_uring_sqe *entry, unsigned opcode, const filch_op *op)
{
    entry->opcode = (uint8_t)opcode;
    entry->fd = op->fd;
    entry->addr = (uint64_t)(uintptr_t)op->buffer;
    entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
    entry->off = op->offset;
}

/* False: the kernel has no such operation. */
static bool fill(struct io_uring_sqe *entry, const filch_op *op)
{
    entry->user_data = (uint64_t)(uintptr_t)op;
    switch ((filch_op_code)op->code) {
    case FILCH_OP_read:
        fill_buffer(entry, IORING_OP_READ, op);
        return true;
    case FILCH_OP_write:
        fill_buffer(entry, IORING_OP_WRITE, op);
        return true;
    case FILCH_OP_readv:
        fill_buffer(entry, IORING_OP_READV, op);
        return true;
    case FILCH_OP_writev:
        fill_buffer(entry, IORING_OP_WRITEV, op);
        return true;
    case FILCH_OP_recv:
        fill_buffer(entry, IORING_OP_RECV, op);
        entry->msg_flags = op->flags;
        /* Nearly always there is nothing yet: do not try, just wait. */
        entry->ioprio = op->is_patient ? IORING_RECVSEND_POLL_FIRST : 0;
        return true;
    case FILCH_OP_send:
        fill_buffer(entry, IORING_OP_SEND, op);
        entry->msg_flags = op->flags | MSG_NOSIGNAL;
        return true;
    case FILCH_OP_recvmsg:
        fill_buffer(entry, IORING_OP_RECVMSG, op);
        entry->msg_flags = op->flags;
        entry->len = 1;
        return true;
    case FILCH_OP_sendmsg:
        fill_buffer(entry, IORING_OP_SENDMSG, op);
        entry->msg_flags = op->flags | MSG_NOSIGNAL;
        entry->len = 1;
        return true;
    case FILCH_OP_accept:
        fill_buffer(entry, IORING_OP_ACCEPT, op);
        entry->addr2 = (uint64_t)(uintptr_t)op->path;
        entry->accept_flags = op->flags | SOCK_CLOEXEC;
        return true;
    case FILCH_OP_connect:
        fill_path(entry, IORING_OP_CONNECT, op);
        entry->off = op->bytes;
        return true;
    case FILCH_OP_poll:
        entry->opcode = IORING_OP_POLL_ADD;
        entry->fd = op->fd;
        entry->poll32_events = op->flags;
        return true;
    case FILCH_OP_splice:
        entry->opcode = IORING_OP_SPLICE;
        entry->fd = op->fd;
        entry->off = op->offset;
        entry->splice_fd_in = op->fd2;
        entry->splice_off_in = (uint64_t)(uintptr_t)op->path;
        entry->len = op->bytes > INT32_MAX ? INT32_MAX : (uint32_t)op->bytes;
        entry->splice_flags = op->flags;
        return true;
    case FILCH_OP_open:
        fill_path(entry, IORING_OP_OPENAT, op);
        entry->open_flags = op->flags | O_CLOEXEC;
        entry->len = op->mode;
        return true;
    case FILCH_OP_statx:
        fill_path(entry, IORING_OP_STATX, op);
        entry->len = op->mode;
        entry->off = (uint64_t)(uintptr_t)op->buffer;
        entry->statx_flags = op->flags;
        return true;
    case FILCH_OP_fsync:
        entry->opcode = IORING_OP_FSYNC;
        entry->fd = op->fd;
        entry->fsync_flags = op->flags ? IORING_FSYNC_DATASYNC : 0;
        return true;
    case FILCH_OP_rename:
        fill_path(entry, IORING_OP_RENAMEAT, op);
        entry->len = (uint32_t)op->fd2;
        entry->off = (uint64_t)(uintptr_t)op->buffer;
        entry->rename_flags = op->flags;
        return true;
    case FILCH_OP_unlink:
        fill_path(entry, IORING_OP_UNLINKAT, op);
        entry->unlink_flags = op->flags;
        return true;
    case FILCH_OP_mkdir:
        fill_path(entry, IORING_OP_MKDIRAT, op);
        entry->len = op->mode;
        return true;
    default:
        return false;
    }
}

/* An entry for it, to be published. False: there is no place. */
static bool prepare(filch_ring *ring, filch_op *op)
{
    struct io_uring_sqe *entry = get_entry(ring);

    if (!entry)
        return false;
    if (op->target) {
        entry->opcode = IORING_OP_ASYNC_CANCEL;
        if (op->target == op) {
            entry->fd = op->fd;
            entry->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
        } else {
            entry->addr = (uint64_t)(uintptr_t)op->target;
        }
        entry->user_data = (uint64_t)(uintptr_t)op;
    } else if (op->stage == STAGE_POLL) {
        entry->opcode = IORING_OP_POLL_ADD;
        entry->fd = op->fd;
        entry->poll32_events = filch_op_events(op);
        entry->user_data = (uint64_t)(uintptr_t)op;
    } else {
        fill(entry, op);
    }
    return true;
}

/* Under the lock. */
static void push(filch_ring *ring, filch_op *op)
{
    op->next = ring->inbox;
    ring->inbox = op;
    /* relaxed: a hint; who waits in the kernel is woken by the bell. */
    filch_fetch_add_relaxed(&ring->inbox_count, 1);
}

/* One that takes back another marks it. */
static void put_into_inbox(filch_ring *ring, filch_op *op)
{
    filch_lock_acquire(&ring->inbox_lock);
    if (op->target && op->target != op)
        op->target->is_cancelled = true;
    push(ring, op);
    filch_lock_release(&ring->inbox_lock);
}

static void end(filch_ring *ring, filch_op *op, ssize_t result, filch_ended *ended)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ring->source.pending, -1u);
    filch_ended_add(ended, op, result);
}

/* To be carried out once more, or later. False: it has been taken back, and who did that would not find it any more. */
static bool put_back(filch_ring *ring, filch_op *op)
{
    filch_lock_acquire(&ring->inbox_lock);
    bool is_wanted = !op->is_cancelled;
    if (is_wanted)
        push(ring, op);
    filch_lock_release(&ring->inbox_lock);
    return is_wanted;
}

/* False: some are still there, since the kernel takes no more now. */
static bool empty_inbox(filch_ring *ring, filch_ended *ended)
{
    filch_op *op = NULL, *next;

    /* relaxed: a hint, as above. */
    if (filch_load_relaxed(&ring->inbox_count) == 0)
        return true;
    filch_lock_acquire(&ring->inbox_lock);
    for (filch_op *last = ring->inbox; last; last = next) {
        next = last->next;
        last->next = op;
        op = last;
    }
    ring->inbox = NULL;
    /* relaxed: as above. */
    filch_store_relaxed(&ring->inbox_count, 0);
    filch_lock_release(&ring->inbox_lock);
    for (; op; op = next) {
        next = op->next;
        if (prepare(ring, op)) {
            filch_op_hand_on(op);
            publish(ring);
        } else if (!put_back(ring, op)) {
            end(ring, op, -ECANCELED, ended);
        }
    }
    /* relaxed: as above. */
    return filch_load_relaxed(&ring->inbox_count) == 0;
}

void filch_ring_start(filch_ring *ring, filch_op *op)
{
    /* relaxed: of its thread; the reader of completions may be another, hence no plain store. */
    filch_fetch_add_relaxed(&ring->source.pending, 1);
    if (prepare(ring, op))
        publish(ring);
    else
        put_into_inbox(ring, op);
}

static void ring_bell(filch_ring *ring)
{
    const uint64_t one = 1;
    while (write(ring->source.bell, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void filch_ring_cancel(filch_ring *ring, filch_op *cancel)
{
    filch_op_fly(cancel);
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ring->source.pending, 1);
    put_into_inbox(ring, cancel);
    ring_bell(ring);
}

/* ---- completions ---------------------------------------------------------------------------------- */

/* Is it to be carried out once more? */
static bool is_repeated(filch_op *op, int result)
{
    if (op->target)
        return false;
    if (op->stage == STAGE_POLL && result >= 0)
        op->stage = STAGE_ITSELF;
    else if (op->stage == STAGE_ITSELF && result == -EAGAIN && filch_op_events(op))
        op->stage = STAGE_POLL;
    else
        return result == -EINTR;
    return true;
}

static bool has_completions(filch_ring *ring)
{
    /* acquire [kernel]. relaxed: a hint; who reads them looks again. */
    return filch_load_acquire(ring->cq_tail) != filch_load_relaxed(ring->cq_head);
}

/* Of many connections nothing is in the cache: fetch the operations that come next, and the strands of those that are here by now. */
static void fetch_ahead(filch_ring *ring, uint32_t head, uint32_t tail)
{
    const uint32_t far = 8, near = 4;

    if (tail - head > far)
        __builtin_prefetch((filch_op *)(uintptr_t)ring->cq[(head + far) & ring->cq_mask].user_data, 1);
    filch_op *op = tail - head > near
                       ? (filch_op *)(uintptr_t)ring->cq[(head + near) & ring->cq_mask].user_data
                       : NULL;
    if (op && (uintptr_t)op != OF_BELL) {
        filch_op_meet(op);
        filch_strand *strand = op->strand;
        __builtin_prefetch(&strand->wait, 1);
        __builtin_prefetch(&strand->context, 1);
    }
}

/* Returns whether the bell was among them. */
static bool reap(filch_ring *ring, filch_ended *ended)
{
    bool has_rung = false;

    if (!has_completions(ring) || !filch_lock_try(&ring->reading))
        return false;
    /* relaxed: under the lock. */
    uint32_t head = filch_load_relaxed(ring->cq_head);
    /* acquire [kernel] */
    uint32_t tail = filch_load_acquire(ring->cq_tail);
    for (; head != tail; head++) {
        const struct io_uring_cqe *entry = &ring->cq[head & ring->cq_mask];
        fetch_ahead(ring, head, tail);
        filch_op *op = (filch_op *)(uintptr_t)entry->user_data;
        if (entry->user_data == OF_BELL) {
            has_rung = true;
            /* relaxed: its thread sees it at the latest when it has slept in vain. */
            if (!(entry->flags & IORING_CQE_F_MORE))
                filch_store_relaxed(&ring->has_bell, 0);
            continue;
        }
        filch_op_meet(op);
        /* By the inbox, since we may not be its thread. */
        bool is_over = !is_repeated(op, entry->res);
        if (is_over || !put_back(ring, op))
            end(ring, op, is_over ? entry->res : -ECANCELED, ended);
    }
    /* release [kernel] */
    filch_store_release(ring->cq_head, head);
    filch_lock_release(&ring->reading);
    return has_rung;
}

static bool has_to_enter(filch_ring *ring)
{
    /* relaxed: what it announces is had by entering the kernel. */
    return unsubmitted_count(ring) > 0 ||
           filch_load_relaxed(ring->sq_flags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

static filch_link *poll_ring(filch_source *source)
{
    filch_ring *ring = (filch_ring *)source;

    FILCH_ENDED(ended);

    empty_inbox(ring, &ended);
    if (has_to_enter(ring))
        enter(ring->fd, unsubmitted_count(ring), 0, 0, NULL);
    reap(ring, &ended);
    return ended.first;
}

static bool watch_bell(filch_ring *ring)
{
    /* relaxed: as in reap. */
    if (filch_load_relaxed(&ring->has_bell))
        return true;
    struct io_uring_sqe *entry = get_entry(ring);
    if (!entry)
        return false;
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = ring->source.bell;
    entry->poll32_events = POLLIN;
    entry->len = IORING_POLL_ADD_MULTI;
    entry->user_data = OF_BELL;
    /* relaxed: before its end can be read. */
    filch_store_relaxed(&ring->has_bell, 1);
    publish(ring);
    return true;
}

static filch_link *wait_in_ring(filch_source *source, const struct timespec *timeout, bool *has_slept)
{
    filch_ring *ring = (filch_ring *)source;

    FILCH_ENDED(ended);
    bool is_empty = empty_inbox(ring, &ended);

    *has_slept = true;
    /* No bell, or something that the kernel does not take: let it have a moment. It is out of memory. */
    const struct timespec moment = {.tv_nsec = 1000000};
    if (!watch_bell(ring) || !is_empty)
        timeout = &moment;
    if (!ended.first && !has_completions(ring))
        enter(ring->fd, unsubmitted_count(ring), 1, 0, timeout);
    reap(ring, &ended);
    return ended.first;
}

static filch_link *look_after_ring(filch_source *source, bool *is_near)
{
    filch_ring *ring = (filch_ring *)source;
    FILCH_ENDED(ended);

    if (!has_completions(ring) && has_to_enter(ring)) {
        uint64_t since_ns = filch_clock_ns();
        kick(ring);
        while (!has_completions(ring) && filch_clock_ns() - since_ns < KICK_NS)
            filch_pause();
        *is_near = true;
    }
    /* Its thread may have gone to sleep meanwhile, and be called: then it was the bell for which it waits; or there is something for it to submit.
     * relaxed: as above; our own. */
    if (reap(ring, &ended) || filch_load_relaxed(&ring->inbox_count) > 0)
        ring_bell(ring);
    return ended.first;
}

/* ---- create and destroy ----------------------------------------------------------------------------- */

static void *at(const filch_ring *ring, uint32_t offset)
{
    return (char *)ring->rings + offset;
}

static int map(filch_ring *ring, const struct io_uring_params *params)
{
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

    ring->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    ring->rings = mmap(NULL, ring->rings_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                       ring->fd, IORING_OFF_SQ_RING);
    if (ring->rings == MAP_FAILED)
        return -errno;
    ring->sqes_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    ring->sqes = mmap(NULL, ring->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      ring->fd, IORING_OFF_SQES);
    if (ring->sqes == MAP_FAILED) {
        int err = -errno;
        munmap(ring->rings, ring->rings_bytes);
        return err;
    }
    ring->sq = ring->sqes;
    ring->sq_head = at(ring, params->sq_off.head);
    ring->sq_tail = at(ring, params->sq_off.tail);
    ring->sq_flags = at(ring, params->sq_off.flags);
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_head = at(ring, params->cq_off.head);
    ring->cq_tail = at(ring, params->cq_off.tail);
    ring->cq = at(ring, params->cq_off.cqes);
    ring->cq_mask = params->cq_entries - 1;
    uint32_t *array = at(ring, params->sq_off.array);
    for (uint32_t i = 0; i < params->sq_entries; i++)
        array[i] = i;
    return 0;
}

int filch_ring_create(filch_ring **out, filch_io *io)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CLAMP |
                                              IORING_SETUP_CQSIZE,
                                     /* Tests have small ones; what does not fit is kept by the kernel. */
                                     .cq_entries = io->ring_entries < 64 ? io->ring_entries
                                                                         : 8 * io->ring_entries};
    filch_ring *ring = filch_calloc(1, sizeof *ring);
    int err = -ENOMEM;

    if (!ring)
        return err;
    pthread_once(&handler_once, install_handler);
    ring->io = io;
    ring->thread = (pid_t)syscall(SYS_gettid);
    ring->source = (filch_source){.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                  .poll = poll_ring,
                                  .wait = wait_in_ring,
                                  .look = look_after_ring};
    err = -errno;
    if (ring->source.bell < 0)
        goto free_ring;
    ring->fd = (int)syscall(SYS_io_uring_setup, io->ring_entries, &params);
    err = -errno;
    if (ring->fd < 0)
        goto close_bell;
    err = -EOPNOTSUPP;
    if (!(params.features & IORING_FEAT_SINGLE_MMAP) || !(params.features & IORING_FEAT_NODROP) ||
        !(params.features & IORING_FEAT_EXT_ARG))
        goto close_ring;
    err = map(ring, &params);
    if (err)
        goto close_ring;
    *out = ring;
    return 0;

close_ring:
    close(ring->fd);
close_bell:
    close(ring->source.bell);
free_ring:
    free(ring);
    return err;
}

void filch_ring_destroy(filch_ring *ring)
{
    munmap(ring->sqes, ring->sqes_bytes);
    munmap(ring->rings, ring->rings_bytes);
    close(ring->fd);
    close(ring->source.bell);
    free(ring);
}

filch_ring *filch_ring_before(filch_ring *ring, filch_ring *others)
{
    ring->next = others;
    return ring;
}

filch_ring *filch_ring_next(filch_ring *ring)
{
    return ring->next;
}

bool filch_source_is_ring(filch_source *source)
{
    return source->poll == poll_ring;
}
