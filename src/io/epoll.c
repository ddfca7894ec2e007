/* SPDX-License-Identifier: MIT */
/*
 * The route EPOLL: system calls that do not block, and epoll to know when to try again.
 *
 * An operation that would block goes into the list of its descriptor, and the descriptor is armed
 * for one event. The thread that gets the event takes the operations that the event is for off the
 * list, and tries them. Such a thread is
 *   - an idle worker, one at a time, or the thread of the instance, if it has one;
 *   - a busy worker, in a fair round (src/worker/README.md);
 *   - the lookout, for workers that compute.
 *
 *     waiting (in a list) --- event ---> being tried --- -EAGAIN ---> waiting
 *        |                                   |
 *        '--- cancelled: complete            '--- any other result: complete
 *
 * Lists and marks are under one lock; operations are tried outside of it. An operation that is
 * cancelled while it is being tried is marked, and does not get into a list again.
 *
 * `tries` counts the tries in progress on a descriptor. The event that is being handled counts as
 * one. So does each splice that is tried because of its other descriptor. Each call on a file and
 * each try of the route RETRY (carry.c) counts, too. While the count is not zero,
 *   - the descriptor is not armed, so one thread at a time tries its operations;
 *   - a close waits: a later try would be on another file.
 */
#include "io/epoll.h"
#include "base/descriptor.h"
#include "base/memory.h"
#include "base/valgrind.h"
#include "io/ops.h"
#include "worker/thread.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 64

/* A worker that finds nothing in its queues asks epoll every 16th time: it is a system call. */
#define POLLS_TO_LOOK 16

/* The user data of the bell: no descriptor. */
#define OF_BELL UINT64_MAX

/* The operations on one descriptor. */
typedef struct place {
    filch_op *waiting; /* operations, the oldest first */
    uint32_t tries;
    bool is_known; /* epoll has this descriptor, or had it until it was closed */
} place;

struct filch_epoll {
    filch_source source; /* shared by all workers of the pool that do I/O; so is `pending` */
    filch_pool *pool;
    filch_io *io;
    int fd;
    filch_atomic_u32 has_no_pwait2; /* the kernel, a container or valgrind refuses it */
    filch_atomic_u32 poll_count;

    filch_lock lock;
    place *places; /* by descriptor */
    size_t place_count;
    filch_op *closers;   /* requests of closes that wait until their descriptor has no tries */
    size_t splice_count; /* splices in the lists: each has two descriptors, and is in one list */

    bool has_thread;
    pthread_t thread;
    filch_atomic_u32 is_ending;
};

static uint32_t epoll_events(unsigned poll_events)
{
    return poll_events; /* the same bits */
}

/* Under the lock: arm the descriptor for all events that its operations want. During tries do
 * nothing: the last of them arms it when it ends. */
static int arm(filch_epoll *epoll, int fd)
{
    place *p = &epoll->places[fd];
    struct epoll_event event = {.events = EPOLLONESHOT, .data.u64 = (uint64_t)fd};

    if (p->tries > 0)
        return 0;
    for (const filch_op *op = p->waiting; op; op = op->next)
        event.events |= epoll_events(filch_op_events(op));
    if (epoll_ctl(epoll->fd, EPOLL_CTL_MOD, fd, &event) &&
        (errno != ENOENT || epoll_ctl(epoll->fd, EPOLL_CTL_ADD, fd, &event)))
        return -errno;
    /* Also after MOD: a close of another file with this number may have cleared it. */
    p->is_known = true;
    return 0;
}

/* Under the lock. */
static int make_room(filch_epoll *epoll, int fd)
{
    size_t count = epoll->place_count ? epoll->place_count : 64;

    if (fd < 0)
        return -EBADF;
    if ((size_t)fd < epoll->place_count)
        return 0;
    while (count <= (size_t)fd)
        count *= 2;
    place *places = filch_calloc(count, sizeof *places);
    if (!places)
        return -ENOMEM;
    if (epoll->place_count)
        memcpy(places, epoll->places, epoll->place_count * sizeof *places);
    free(epoll->places);
    epoll->places = places;
    epoll->place_count = count;
    return 0;
}

/* Under the lock: make room for both descriptors of an operation, since its tries are counted at
 * both. */
static int make_room_for(filch_epoll *epoll, const filch_op *op)
{
    int err = make_room(epoll, op->fd);
    return err || filch_op_second_fd(op) < 0 ? err : make_room(epoll, op->fd2);
}

/* Under the lock: remove the operation from the list of this descriptor. False: it is not there. */
static bool take_off(filch_epoll *epoll, filch_op *op, int fd)
{
    if (fd < 0 || (size_t)fd >= epoll->place_count)
        return false;
    filch_op **at = &epoll->places[fd].waiting;

    while (*at && *at != op)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = op->next;
    epoll->splice_count -= filch_op_has(op, FILCH_TRAIT_TWO_FDS);
    return true;
}

/* Put the operation into its list. Returns 0; -ECANCELED: it was cancelled; or -errno. */
static int wait_for_event(filch_epoll *epoll, filch_op *op)
{
    filch_lock_acquire(&epoll->lock);
    bool is_wanted = !op->is_cancelled && !filch_io_has_closed(epoll->io, op);
    int err = !is_wanted ? -ECANCELED : make_room_for(epoll, op);
    if (!err) {
        /* At the end: first come, first served. */
        filch_op **at = &epoll->places[filch_op_fd(op)].waiting;
        while (*at)
            at = &(*at)->next;
        op->next = NULL;
        *at = op;
        epoll->splice_count += filch_op_has(op, FILCH_TRAIT_TWO_FDS);
        err = arm(epoll, filch_op_fd(op));
        if (err)
            take_off(epoll, op, filch_op_fd(op));
    }
    filch_lock_release(&epoll->lock);
    return err;
}

int filch_epoll_start(filch_epoll *epoll, filch_op *op)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&epoll->source.pending, 1);
    int err = wait_for_event(epoll, op);
    if (err)
        filch_fetch_add_relaxed(&epoll->source.pending, -1u);
    return err;
}

static void complete(filch_epoll *epoll, filch_op *op, ssize_t result, filch_ended *ended)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&epoll->source.pending, -1u);
    filch_ended_add(ended, filch_op_complete(op, result < 0 ? filch_op_fail(op, result) : result));
}

static void complete_all(filch_epoll *epoll, filch_op *op, ssize_t result, filch_ended *ended)
{
    for (filch_op *next; op; op = next) {
        next = op->next;
        complete(epoll, op, result, ended);
    }
}

void filch_epoll_cancel(filch_epoll *epoll, filch_op *op)
{
    FILCH_ENDED(ended);

    filch_lock_acquire(&epoll->lock);
    op->is_cancelled = true;
    bool was_waiting = take_off(epoll, op, op->fd) || take_off(epoll, op, op->fd2);
    filch_lock_release(&epoll->lock);
    if (was_waiting)
        complete(epoll, op, -ECANCELED, &ended);
    filch_pool_resume(epoll->pool, ended.first);
}

/* Under the lock: move the operations of a list that are on this descriptor to the front of
 * `taken`. */
static filch_op *take_of(filch_epoll *epoll, filch_op **at, int fd, filch_op *taken)
{
    while (*at) {
        filch_op *op = *at;
        bool is_splice = filch_op_has(op, FILCH_TRAIT_TWO_FDS);
        if (op->fd == fd || (is_splice && op->fd2 == fd)) {
            *at = op->next;
            op->next = taken;
            taken = op;
            epoll->splice_count -= is_splice;
        } else {
            at = &op->next;
        }
    }
    return taken;
}

/* Under the lock. */
static void remove_descriptor(filch_epoll *epoll, int fd)
{
    if ((size_t)fd >= epoll->place_count || !epoll->places[fd].is_known)
        return;
    epoll->places[fd].is_known = false;
    epoll_ctl(epoll->fd, EPOLL_CTL_DEL, fd, NULL);
}

void filch_epoll_remove(filch_epoll *epoll, int fd)
{
    filch_lock_acquire(&epoll->lock);
    remove_descriptor(epoll, fd);
    filch_lock_release(&epoll->lock);
}

void filch_epoll_cancel_all(filch_epoll *epoll, filch_op *cancel)
{
    FILCH_ENDED(ended);
    filch_op *taken = NULL;

    filch_op_set_in_flight(cancel);
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&epoll->source.pending, 1);
    filch_lock_acquire(&epoll->lock);
    bool is_known = (size_t)cancel->fd < epoll->place_count;
    if (is_known)
        taken = take_of(epoll, &epoll->places[cancel->fd].waiting, cancel->fd, NULL);
    for (size_t i = 0; i < epoll->place_count && epoll->splice_count > 0; i++)
        taken = take_of(epoll, &epoll->places[i].waiting, cancel->fd, taken);
    remove_descriptor(epoll, cancel->fd);
    bool has_to_wait = is_known && epoll->places[cancel->fd].tries > 0;
    cancel->next = epoll->closers;
    if (has_to_wait)
        epoll->closers = cancel;
    filch_lock_release(&epoll->lock);
    complete_all(epoll, taken, -ECANCELED, &ended);
    if (!has_to_wait)
        complete(epoll, cancel, 0, &ended);
    filch_pool_resume(epoll->pool, ended.first);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Take the operations that the event is for off the list; an error or a hang-up is for all of them.
 * The caller tries them and then calls end_tries. NULL: no operation wants the event; or another
 * thread is trying, and will arm the descriptor. */
static filch_op *take_for_event(filch_epoll *epoll, int fd, uint32_t events)
{
    filch_op *taken = NULL, **last = &taken;

    filch_lock_acquire(&epoll->lock);
    place *p = &epoll->places[fd];
    for (filch_op **at = &p->waiting; *at && p->tries == 0;) {
        filch_op *op = *at;
        if (events & (epoll_events(filch_op_events(op)) | EPOLLERR | EPOLLHUP)) {
            *at = op->next;
            *last = op;
            last = &op->next;
            if (filch_op_has(op, FILCH_TRAIT_TWO_FDS)) {
                epoll->splice_count--;
                epoll->places[op->fd == fd ? op->fd2 : op->fd].tries++;
            }
        } else {
            at = &op->next;
        }
    }
    *last = NULL;
    if (taken)
        p->tries++;
    else if (p->waiting)
        arm(epoll, fd);
    filch_lock_release(&epoll->lock);
    return taken;
}

/* Under the lock: the requests of closes of this descriptor. */
static filch_op *take_closers(filch_epoll *epoll, int fd)
{
    filch_op *taken = NULL;

    for (filch_op **at = &epoll->closers; *at;) {
        filch_op *op = *at;
        if (op->fd == fd) {
            *at = op->next;
            op->next = taken;
            taken = op;
        } else {
            at = &op->next;
        }
    }
    return taken;
}

/* A try on the descriptor has ended. If it was the last, complete the requests of closes, and arm
 * the descriptor for the waiting operations. */
static void end_tries(filch_epoll *epoll, int fd, filch_ended *ended)
{
    filch_op *closers = NULL, *lost = NULL;
    int err = 0;

    filch_lock_acquire(&epoll->lock);
    place *p = &epoll->places[fd];
    if (--p->tries == 0) {
        closers = take_closers(epoll, fd);
        err = p->waiting ? arm(epoll, fd) : 0;
        if (err)
            lost = take_of(epoll, &p->waiting, fd, NULL);
    }
    filch_lock_release(&epoll->lock);
    complete_all(epoll, lost, err, ended);
    complete_all(epoll, closers, 0, ended);
}

int filch_epoll_begin_try(filch_epoll *epoll, const filch_op *op)
{
    filch_lock_acquire(&epoll->lock);
    int err = filch_io_has_closed(epoll->io, op) ? -ECANCELED : make_room_for(epoll, op);
    if (!err)
        epoll->places[op->fd].tries++;
    if (!err && filch_op_second_fd(op) >= 0)
        epoll->places[op->fd2].tries++;
    filch_lock_release(&epoll->lock);
    return err;
}

void filch_epoll_end_try(filch_epoll *epoll, const filch_op *op)
{
    FILCH_ENDED(ended);

    end_tries(epoll, op->fd, &ended);
    if (filch_op_second_fd(op) >= 0)
        end_tries(epoll, op->fd2, &ended);
    filch_pool_resume(epoll->pool, ended.first);
}

static void try_again(filch_epoll *epoll, filch_op *op, int fd, filch_ended *ended)
{
    int other = !filch_op_has(op, FILCH_TRAIT_TWO_FDS) ? -1 : op->fd == fd ? op->fd2 : op->fd;
    ssize_t result = filch_op_try(op, true);
    bool is_over = result != -EAGAIN;

    if (!is_over) {
        result = wait_for_event(epoll, op);
        is_over = result != 0;
    }
    /* Otherwise the operation is in a list again, and another thread may have taken it. */
    if (is_over)
        complete(epoll, op, result, ended);
    if (other >= 0)
        end_tries(epoll, other, ended);
}

static void take_event(filch_epoll *epoll, int fd, uint32_t events, filch_ended *ended)
{
    filch_op *op = take_for_event(epoll, fd, events);

    if (!op)
        return;
    for (filch_op *next; op; op = next) {
        next = op->next;
        try_again(epoll, op, fd, ended);
    }
    end_tries(epoll, fd, ended);
}

static filch_link *take_events(filch_epoll *epoll, const struct timespec *timeout)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    FILCH_ENDED(ended);

    /* relaxed: a thread that does not see the mark asks the kernel. */
    bool has_none = filch_load_relaxed(&epoll->has_no_pwait2);
    long count =
        has_none ? -1
                 : syscall(SYS_epoll_pwait2, epoll->fd, events, EVENTS_AT_ONCE, timeout, NULL, 0);
    /* An old kernel says ENOSYS; a container that does not know the call may return any error. */
    if (has_none || (count < 0 && errno != EINTR)) {
        /* relaxed: as above. */
        filch_store_relaxed(&epoll->has_no_pwait2, 1);
        int64_t ms = timeout ? timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000 : -1;
        count = epoll_wait(epoll->fd, events, EVENTS_AT_ONCE, ms > INT32_MAX ? INT32_MAX : (int)ms);
    }
    for (long i = 0; i < count; i++)
        if (events[i].data.u64 != OF_BELL)
            take_event(epoll, (int)events[i].data.u64, events[i].events, &ended);
    return ended.first;
}

/* ---- the source of the workers --------------------------------------------------------------- */

static filch_link *look_now(filch_source *source)
{
    const struct timespec none = {0};
    /* relaxed: a hint; a worker that starts an operation looks later. */
    return filch_load_relaxed(&source->pending) > 0 ? take_events((filch_epoll *)source, &none)
                                                    : NULL;
}

static filch_link *look_epoll(filch_source *source, bool *is_near)
{
    (void)is_near;
    return look_now(source);
}

static filch_link *poll_epoll(filch_source *source, bool is_due)
{
    filch_epoll *epoll = (filch_epoll *)source;
    /* relaxed: a lost count does no harm. */
    uint32_t count = filch_load_relaxed(&epoll->poll_count);
    filch_store_relaxed(&epoll->poll_count, count + 1);
    return is_due || count % POLLS_TO_LOOK == 0 ? look_now(source) : NULL;
}

/* All workers share the bell. Each worker for which the bell rang takes one stroke, so it leaves
 * the stroke of a worker that is about to wait. */
static void hush_epoll(filch_source *source)
{
    uint64_t stroke;
    while (read(source->bell, &stroke, sizeof stroke) < 0 && errno == EINTR)
        ;
}

static filch_link *wait_epoll(filch_source *source, const struct timespec *timeout)
{
    return take_events((filch_epoll *)source, timeout);
}

filch_source *filch_epoll_source(filch_epoll *epoll)
{
    return epoll->has_thread ? NULL : &epoll->source;
}

/* ---- a thread that waits --------------------------------------------------------------------- */

static void *serve(void *argument)
{
    filch_epoll *epoll = argument;

    filch_thread_assist(epoll->pool, "/io");
    /* relaxed: the bell says when to look. */
    while (!filch_load_relaxed(&epoll->is_ending))
        filch_pool_resume(epoll->pool, take_events(epoll, NULL));
    return NULL;
}

/* ---- create and destroy ---------------------------------------------------------------------- */

int filch_epoll_create(filch_epoll **out, filch_io *io, bool has_thread)
{
    struct epoll_event bell = {.events = EPOLLIN, .data.u64 = OF_BELL};
    filch_epoll *epoll = filch_calloc(1, sizeof *epoll);
    int err = -ENOMEM;

    if (!epoll)
        return err;
    epoll->pool = io->pool;
    epoll->io = io;
    /* relaxed: no other thread knows the instance. */
    filch_store_relaxed(&epoll->has_no_pwait2, filch_is_on_valgrind());
    epoll->source =
        (filch_source){.bell = filch_descriptor_of_ours(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)),
                       .poll = poll_epoll,
                       .wait = wait_epoll,
                       .hush = hush_epoll,
                       .look = look_epoll};
    epoll->fd = filch_descriptor_of_ours(epoll_create1(EPOLL_CLOEXEC));
    if (epoll->source.bell < 0 || epoll->fd < 0 ||
        epoll_ctl(epoll->fd, EPOLL_CTL_ADD, epoll->source.bell, &bell)) {
        err = -errno;
        goto close;
    }
    /* If the thread cannot be started, the workers wait in epoll. */
    epoll->has_thread = has_thread && !filch_fault(FILCH_FAULT_THREAD) &&
                        pthread_create(&epoll->thread, NULL, serve, epoll) == 0;
    *out = epoll;
    return 0;

close:
    if (epoll->fd >= 0)
        close(epoll->fd);
    if (epoll->source.bell >= 0)
        close(epoll->source.bell);
    free(epoll);
    return err;
}

void filch_epoll_forget(filch_epoll *epoll)
{
    close(epoll->fd);
    close(epoll->source.bell);
    free(epoll->places);
    free(epoll);
}

void filch_epoll_destroy(filch_epoll *epoll)
{
    const uint64_t one = 1;

    if (epoll->has_thread) {
        /* relaxed: as in serve. */
        filch_store_relaxed(&epoll->is_ending, 1);
        while (write(epoll->source.bell, &one, sizeof one) < 0 && errno == EINTR)
            ;
        pthread_join(epoll->thread, NULL);
    }
    filch_epoll_forget(epoll);
}
