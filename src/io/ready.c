/* SPDX-License-Identifier: MIT */
/*
 * Without rings: system calls that do not block, and epoll to know when to try again.
 *
 * An operation that would block is put into the list of its descriptor, and the descriptor is armed for one event. Whoever finds the event takes the operations off the list that it is for, and tries them: an
 * idle worker, one at a time (`watch`), or the thread of this, if it has one; workers that are busy now and then; the lookout, for those that compute.
 *
 *     waiting (in a list) --- event ---> being tried --- -EAGAIN ---> waiting
 *        |                                   |
 *        '--- taken back: ends               '--- any result: ends
 *
 * Lists and marks are under one lock; operations are tried outside of it. One that is taken back while it is tried is marked, and does not get into a list again.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "io/io.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

/* While there is other work, look only now and then: it is a system call. */
#define POLLS_TO_LOOK 16

/* In epoll's user data; no descriptor. */
#define OF_BELL UINT64_MAX

struct filch_ready {
    filch_source source; /* of all workers of the pool that do I/O; pending is of all */
    filch_pool *pool;
    int epoll;
    filch_lock watch; /* of who sleeps in epoll_wait */
    filch_atomic_u32 poll_count;

    filch_lock lock;
    filch_op **waiting; /* for each descriptor, a list */
    size_t waiting_count;

    bool has_thread;
    pthread_t thread;
    filch_atomic_u32 is_ending;
};

static uint32_t epoll_events(unsigned poll_events)
{
    return poll_events; /* the same bits */
}

/* Under the lock: wait for all events that are wanted. */
static int arm(filch_ready *ready, int fd)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.u64 = (uint64_t)fd};

    for (const filch_op *op = ready->waiting[fd]; op; op = op->next)
        event.events |= epoll_events(filch_op_events(op));
    if (epoll_ctl(ready->epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    return epoll_ctl(ready->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Under the lock. */
static int make_room(filch_ready *ready, int fd)
{
    size_t count = ready->waiting_count ? ready->waiting_count : 64;

    if (fd < 0)
        return -EBADF;
    if ((size_t)fd < ready->waiting_count)
        return 0;
    while (count <= (size_t)fd)
        count *= 2;
    filch_op **waiting = filch_calloc(count, sizeof *waiting);
    if (!waiting)
        return -ENOMEM;
    if (ready->waiting_count)
        memcpy(waiting, ready->waiting, ready->waiting_count * sizeof *waiting);
    free(ready->waiting);
    ready->waiting = waiting;
    ready->waiting_count = count;
    return 0;
}

/* Under the lock. False: it is in no list. */
static bool take_off(filch_ready *ready, filch_op *op)
{
    filch_op **place = &ready->waiting[op->fd];

    while (*place && *place != op)
        place = &(*place)->next;
    if (!*place)
        return false;
    *place = op->next;
    return true;
}

/* Put it into its list. 0; -ECANCELED: it was taken back; or -errno. */
static int wait_for_event(filch_ready *ready, filch_op *op)
{
    filch_lock_acquire(&ready->lock);
    int err = op->is_cancelled ? -ECANCELED : make_room(ready, op->fd);
    if (!err) {
        /* At the end: first come, first served. */
        filch_op **place = &ready->waiting[op->fd];
        while (*place)
            place = &(*place)->next;
        op->next = NULL;
        *place = op;
        err = arm(ready, op->fd);
        if (err)
            take_off(ready, op);
    }
    filch_lock_release(&ready->lock);
    return err;
}

int filch_ready_start(filch_ready *ready, filch_op *op)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ready->source.pending, 1);
    int err = wait_for_event(ready, op);
    if (err)
        filch_fetch_add_relaxed(&ready->source.pending, -1u);
    return err;
}

static void end(filch_ready *ready, filch_op *op, ssize_t result, filch_ended *ended)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&ready->source.pending, -1u);
    filch_ended_add(ended, op, result);
}

void filch_ready_cancel(filch_ready *ready, filch_op *op)
{
    FILCH_ENDED(ended);

    filch_lock_acquire(&ready->lock);
    op->is_cancelled = true;
    bool was_waiting = (size_t)op->fd < ready->waiting_count && take_off(ready, op);
    filch_lock_release(&ready->lock);
    if (was_waiting)
        end(ready, op, -ECANCELED, &ended);
    filch_pool_resume(ready->pool, ended.first);
}

void filch_ready_cancel_all(filch_ready *ready, int fd)
{
    FILCH_ENDED(ended);
    filch_op *op = NULL, *next;

    filch_lock_acquire(&ready->lock);
    if ((size_t)fd < ready->waiting_count) {
        op = ready->waiting[fd];
        ready->waiting[fd] = NULL;
    }
    filch_lock_release(&ready->lock);
    for (; op; op = next) {
        next = op->next;
        end(ready, op, -ECANCELED, &ended);
    }
    filch_pool_resume(ready->pool, ended.first);
}

/* Those that the event is for leave the list; an error or the end is for all. */
static filch_op *take_for_event(filch_ready *ready, int fd, uint32_t events)
{
    filch_op *taken = NULL, **last = &taken;

    filch_lock_acquire(&ready->lock);
    for (filch_op **place = &ready->waiting[fd]; *place;) {
        filch_op *op = *place;
        if (events & (epoll_events(filch_op_events(op)) | EPOLLERR | EPOLLHUP)) {
            *place = op->next;
            *last = op;
            last = &op->next;
        } else {
            place = &op->next;
        }
    }
    *last = NULL;
    if (ready->waiting[fd])
        arm(ready, fd);
    filch_lock_release(&ready->lock);
    return taken;
}

static void try_again(filch_ready *ready, filch_op *op, filch_ended *ended)
{
    ssize_t result = filch_op_try(op, true);
    if (result == -EAGAIN) {
        result = wait_for_event(ready, op);
        if (result == 0)
            return;
    }
    end(ready, op, result, ended);
}

static filch_link *take_events(filch_ready *ready, const struct timespec *timeout)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    FILCH_ENDED(ended);
    filch_op *next;

    long count = syscall(SYS_epoll_pwait2, ready->epoll, events, EVENTS_AT_ONCE, timeout, NULL, 0);
    if (count < 0 && errno == ENOSYS) {
        int64_t ms = timeout ? timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000 : -1;
        count = epoll_wait(ready->epoll, events, EVENTS_AT_ONCE, ms > INT32_MAX ? INT32_MAX : (int)ms);
    }
    for (long i = 0; i < count; i++) {
        if (events[i].data.u64 == OF_BELL)
            continue;
        filch_op *op = take_for_event(ready, (int)events[i].data.u64, events[i].events);
        for (; op; op = next) {
            next = op->next;
            try_again(ready, op, &ended);
        }
    }
    return ended.first;
}

/* ---- the source of the workers ------------------------------------------------------------------------ */

static filch_link *look_now(filch_source *source)
{
    const struct timespec none = {0};
    /* relaxed: a hint; who starts an operation looks later. */
    return filch_load_relaxed(&source->pending) > 0 ? take_events((filch_ready *)source, &none) : NULL;
}

static filch_link *look_ready(filch_source *source, bool *is_near)
{
    (void)is_near;
    return look_now(source);
}

static filch_link *poll_ready(filch_source *source)
{
    filch_ready *ready = (filch_ready *)source;
    /* relaxed: it does not matter who counts. */
    uint32_t count = filch_load_relaxed(&ready->poll_count);
    filch_store_relaxed(&ready->poll_count, count + 1);
    return count % POLLS_TO_LOOK == 0 ? look_now(source) : NULL;
}

/* The bell is that of all workers. It goes on ringing until each for whom it rang has taken one stroke: so nobody takes the stroke of another who is about to wait. */
static void hush_ready(filch_source *source)
{
    uint64_t stroke;
    while (read(source->bell, &stroke, sizeof stroke) < 0 && errno == EINTR)
        ;
}

static filch_link *wait_ready(filch_source *source, const struct timespec *timeout, bool *has_slept)
{
    filch_ready *ready = (filch_ready *)source;

    if (!filch_lock_try(&ready->watch))
        return NULL;
    *has_slept = true;
    filch_link *strands = take_events(ready, timeout);
    filch_lock_release(&ready->watch);
    return strands;
}

filch_source *filch_ready_source(filch_ready *ready)
{
    return ready->has_thread ? NULL : &ready->source;
}

/* ---- a thread that waits --------------------------------------------------------------------------------- */

static void *serve(void *argument)
{
    filch_ready *ready = argument;

    /* relaxed: the bell says when to look. */
    while (!filch_load_relaxed(&ready->is_ending))
        filch_pool_resume(ready->pool, take_events(ready, NULL));
    return NULL;
}

/* ---- create and destroy ------------------------------------------------------------------------------------ */

int filch_ready_create(filch_ready **out, filch_io *io, bool has_thread)
{
    struct epoll_event bell = {.events = EPOLLIN, .data.u64 = OF_BELL};
    filch_ready *ready = filch_calloc(1, sizeof *ready);
    int err = -ENOMEM;

    if (!ready)
        return err;
    ready->pool = io->pool;
    ready->source = (filch_source){.bell = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE),
                                   .poll = poll_ready,
                                   .wait = wait_ready,
                                   .hush = hush_ready,
                                   .look = look_ready};
    ready->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (ready->source.bell < 0 || ready->epoll < 0 ||
        epoll_ctl(ready->epoll, EPOLL_CTL_ADD, ready->source.bell, &bell)) {
        err = -errno;
        goto close;
    }
    /* Without a thread the workers do it. */
    ready->has_thread = has_thread && !filch_fault(FILCH_FAULT_THREAD) &&
                        pthread_create(&ready->thread, NULL, serve, ready) == 0;
    *out = ready;
    return 0;

close:
    if (ready->epoll >= 0)
        close(ready->epoll);
    if (ready->source.bell >= 0)
        close(ready->source.bell);
    free(ready);
    return err;
}

void filch_ready_forget(filch_ready *ready)
{
    close(ready->epoll);
    close(ready->source.bell);
    free(ready->waiting);
    free(ready);
}

void filch_ready_destroy(filch_ready *ready)
{
    const uint64_t one = 1;

    if (ready->has_thread) {
        /* relaxed: as in serve. */
        filch_store_relaxed(&ready->is_ending, 1);
        while (write(ready->source.bell, &one, sizeof one) < 0 && errno == EINTR)
            ;
        pthread_join(ready->thread, NULL);
    }
    filch_ready_forget(ready);
}
