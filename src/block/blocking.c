/* SPDX-License-Identifier: MIT */
/*
 * Threads for calls that block, in lanes. README.md has the states of a call, and why none is lost.
 *
 * A lane is a queue under a lock, and threads that take calls from it. A call is on the stack of
 * the task that makes it. Only the thread that runs the call touches it without the lock. Its
 * states:
 *
 *     QUEUED --- a thread takes it ---> RUNNING --- fn returns ---> DONE: its task goes on
 *        |
 *        '------ its task is cancelled, or its deadline passes: removed from the queue
 */
#include "block/blocking.h"

#include "base/clock.h"
#include "base/memory.h"
#include "strand/unwind.h"
#include "wait/wait.h"
#include "worker/part.h"
#include "worker/thread.h"

#include <errno.h>
#include <filch/scope.h>
#include <stdlib.h>

/* The number of lanes in filch_lane. */
#define LANE_COUNT (FILCH_LANE_NAMES + 1)

static const unsigned thread_limits[LANE_COUNT] = {
    [FILCH_LANE_ANY] = 64, [FILCH_LANE_FILES] = 16, [FILCH_LANE_NAMES] = 8};

/* If a thread cannot be started for a call, and the other threads are busy, the task tries again
 * after this time. Each further failure doubles the time, up to a second. The task does not rely on
 * the busy threads: their calls may wait for this one. */
#define FIRST_RETRY_NS 1000000
#define RETRY_DOUBLINGS 10

/* Calls often come one after the other, and a thread that sleeps takes microseconds to wake. */
#define LINGER_NS 50000
#define LAST_NS 1000000000

typedef enum call_state { CALL_QUEUED, CALL_RUNNING, CALL_DONE } call_state;

typedef struct call call;
struct call {
    filch_link link; /* first: a link in the queue is the call */
    int (*fn)(void *arg);
    void *arg;
    int result;
    call_state state;
    /* No thread could be started for it. So its task tries again to start one for the lane: the
     * thread of a later call may have taken this one. */
    bool lacks_thread;
    filch_waiting *waiting;
};

typedef struct lane {
    filch_lock lock;
    const filch_pool *pool; /* NULL under the model checker */
    filch_link *first, **last;
    unsigned queued_count; /* calls in the queue */
    unsigned thread_count, idle_count, thread_limit;
    bool has_lingerer;      /* one of the idle threads spins on the bell instead of sleeping */
    filch_atomic_u32 bell;  /* raised to wake idle threads */
    filch_atomic_u32 alive; /* thread_count, for end_lane to wait on */
    bool is_ending;
    bool has_ended; /* `ended` is a thread that has ended and is not joined yet */
    pthread_t ended;
} lane;

typedef struct offload {
    filch_part part; /* first: the pool has a pointer to it */
    lane lanes[LANE_COUNT];
} offload;

/* ---- threads --------------------------------------------------------------------------------- */

static call *take(lane *l)
{
    call *c = (call *)l->first;
    if (!c)
        return NULL;
    l->first = c->link.next;
    if (!l->first)
        l->last = &l->first;
    l->queued_count--;
    c->state = CALL_RUNNING;
    return c;
}

static FILCH_NOT_INLINED int call_user(int (*fn)(void *arg), void *arg)
{
    int result = fn(arg);
    FILCH_STOP_UNWIND();
    return result;
}

/* Run the call. Under the lock, which is released while the call runs. */
static void make_call(lane *l, call *c)
{
    filch_wakes wakes = {NULL, NULL};

    filch_lock_release(&l->lock);
    int result = call_user(c->fn, c->arg);
    filch_lock_acquire(&l->lock);
    c->result = result;
    c->state = CALL_DONE;
    if (c->waiting)
        filch_waiting_end(c->waiting, 0, &wakes);
    if (!wakes.last)
        return;
    filch_lock_release(&l->lock);
    filch_wakes_go(&wakes);
    filch_lock_acquire(&l->lock);
}

/* Wait for the next call. Under the lock. False: none came for a second. */
static bool wait_for_call(lane *l)
{
    const struct timespec last = {.tv_sec = LAST_NS / 1000000000};
    uint64_t since_ns = filch_clock_ns();
    int err = 0;

    /* relaxed: under the lock, this one and the next. */
    uint32_t bell = filch_load_relaxed(&l->bell);
    l->idle_count++;
    if (!l->has_lingerer) {
        l->has_lingerer = true;
        filch_lock_release(&l->lock);
        /* relaxed: a hint; the queue is checked under the lock. */
        while (filch_load_relaxed(&l->bell) == bell && filch_clock_ns() - since_ns < LINGER_NS)
            filch_pause();
        filch_lock_acquire(&l->lock);
        l->has_lingerer = false;
    }
    filch_lock_release(&l->lock);
    /* relaxed: as above. */
    while (filch_load_relaxed(&l->bell) == bell && err != -ETIMEDOUT)
        err = filch_futex_wait(&l->bell, bell, &last);
    filch_lock_acquire(&l->lock);
    l->idle_count--;
    return l->first || l->is_ending || err != -ETIMEDOUT;
}

static void *serve(void *argument)
{
    lane *l = argument;
    call *c;

    if (l->pool)
        filch_thread_assist(l->pool, "/call");
    filch_lock_acquire(&l->lock);
    do
        while ((c = take(l)))
            make_call(l, c);
    while (!l->is_ending && wait_for_call(l));
    bool has_previous = l->has_ended;
    pthread_t previous = l->ended;
    l->has_ended = true;
    l->ended = pthread_self();
    l->thread_count--;
    /* relaxed: under the lock. */
    filch_store_relaxed(&l->alive, l->thread_count);
    filch_futex_wake(&l->alive, 1);
    filch_lock_release(&l->lock);
    /* Each thread joins the thread that ended before it; end_lane joins the last. */
    if (has_previous)
        pthread_join(previous, NULL);
    return NULL;
}

/* Under the lock. False: no thread could be started. */
static bool start_thread(lane *l)
{
    pthread_t thread;

    if (filch_fault(FILCH_FAULT_THREAD) || pthread_create(&thread, NULL, serve, l))
        return false;
    /* relaxed: under the lock. */
    filch_store_relaxed(&l->alive, ++l->thread_count);
    return true;
}

/* ---- the part of the pool -------------------------------------------------------------------- */

static void ring(lane *l, int count)
{
    /* relaxed: under the lock, which carries the queue. */
    filch_fetch_add_relaxed(&l->bell, 1);
    if (count > 0)
        filch_futex_wake(&l->bell, count);
}

static void end_lane(lane *l)
{
    filch_lock_acquire(&l->lock);
    l->is_ending = true;
    ring(l, INT32_MAX);
    while (l->thread_count > 0) {
        /* relaxed: under the lock. */
        uint32_t alive = filch_load_relaxed(&l->alive);
        filch_lock_release(&l->lock);
        filch_futex_wait(&l->alive, alive, NULL);
        filch_lock_acquire(&l->lock);
    }
    filch_lock_release(&l->lock);
    if (l->has_ended)
        pthread_join(l->ended, NULL);
}

static void destroy(filch_part *part)
{
    offload *o = (offload *)part;

    for (int i = 0; i < LANE_COUNT; i++)
        end_lane(&o->lanes[i]);
    free(o);
}

static void forget(filch_part *part)
{
    free(part);
}

static offload *get_offload(filch_pool *pool)
{
    filch_part *part = filch_parts_get(&pool->parts, FILCH_PART_OFFLOAD);
    if (part)
        return (offload *)part;
    offload *o = filch_calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->part = (filch_part){destroy, forget};
    for (int i = 0; i < LANE_COUNT; i++) {
        o->lanes[i].pool = pool;
        o->lanes[i].last = &o->lanes[i].first;
        o->lanes[i].thread_limit = thread_limits[i];
    }
    part = filch_parts_add(&pool->parts, FILCH_PART_OFFLOAD, &o->part);
    if (part != &o->part)
        free(o);
    return (offload *)part;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Start a thread for the call, if the lane may have one more. Under the lock. */
static void start_for(lane *l, call *c)
{
    c->lacks_thread = l->thread_count < l->thread_limit && !start_thread(l);
}

/* Under the lock. False: the lane has no thread that could take the call. */
static bool queue_call(lane *l, call *c)
{
    c->link.next = NULL;
    *l->last = &c->link;
    l->last = &c->link.next;
    l->queued_count++;
    if (l->idle_count >= l->queued_count) {
        /* The lingering thread sees the bell without a wake-up, and takes one call. */
        ring(l, l->has_lingerer && l->queued_count == 1 ? 0 : 1);
        return true;
    }
    start_for(l, c);
    return l->thread_count > 0;
}

/* Remove a call from the queue. Under the lock. */
static void take_off(lane *l, call *c)
{
    filch_link **at = &l->first;
    while (*at != &c->link)
        at = &(*at)->next;
    *at = c->link.next;
    if (!*at)
        l->last = at;
    l->queued_count--;
}

/* When to try again to start a thread for the call; never, if it does not lack one. */
static uint64_t next_try_ns(const call *c, unsigned tries)
{
    return c->lacks_thread ? filch_after_ns((uint64_t)FIRST_RETRY_NS << tries) : FILCH_NEVER_NS;
}

/* Wait until the call is done, the task is cancelled or the deadline passes. Returns the state of
 * the call at that time. CALL_QUEUED: the call was removed from the queue, and its result
 * is the reason. */
static call_state wait_for_end(filch_frame *f, lane *l, call *c, uint64_t deadline_ns)
{
    for (unsigned tries = 0;; tries += tries < RETRY_DOUBLINGS) {
        uint64_t try_ns = next_try_ns(c, tries);
        filch_waiting waiting;
        int outcome = 0;

        filch_waiting_begin(&waiting, f, FILCH_WAITS_CALL, NULL);
        waiting.is_firm = true;
        filch_lock_acquire(&l->lock);
        bool is_done = c->state == CALL_DONE;
        c->waiting = &waiting;
        filch_lock_release(&l->lock);
        if (is_done)
            filch_waiting_drop(&waiting);
        else
            outcome = filch_waiting_wait(&waiting, try_ns < deadline_ns ? try_ns : deadline_ns);
        /* Take the lock also when the call is done: the thread must have released it before the
         * call is freed. */
        filch_lock_acquire(&l->lock);
        c->waiting = NULL;
        call_state state = c->state;
        bool goes_on = state != CALL_DONE && outcome == -ETIMEDOUT && try_ns < deadline_ns;
        if (goes_on) {
            c->lacks_thread = false;
            if (l->queued_count > l->idle_count)
                start_for(l, c);
        } else if (state == CALL_QUEUED) {
            take_off(l, c);
            c->result = outcome;
        }
        filch_lock_release(&l->lock);
        if (!goes_on)
            return state;
    }
}

int filch_blocking_until(filch_frame *f, filch_lane which, int (*fn)(void *arg), void *arg,
                         uint64_t deadline_ns)
{
    filch_strand *strand = f ? filch_strand_of(f) : NULL;

    if (!fn || (unsigned)which >= LANE_COUNT)
        return -EINVAL;
    offload *o = filch_strand_can_leave(strand) ? get_offload(strand->pool) : NULL;
    /* On a plain thread, fn may call pthread_exit. */
    if (!o)
        return f ? call_user(fn, arg) : fn(arg);
    if (filch_is_cancelled(f))
        return -ECANCELED;
    lane *l = &o->lanes[which];
    call c = {.fn = fn, .arg = arg, .state = CALL_QUEUED};

    filch_lock_acquire(&l->lock);
    bool is_queued = queue_call(l, &c);
    if (!is_queued)
        take_off(l, &c);
    filch_lock_release(&l->lock);
    if (!is_queued)
        return call_user(fn, arg);
    if (wait_for_end(f, l, &c, deadline_ns) == CALL_RUNNING) {
        /* The call uses this task's memory: wait for its end in any case. */
        filch_frame *shield = filch_shield(f);
        wait_for_end(f, l, &c, FILCH_NEVER_NS);
        filch_unshield(f, shield);
    }
    return c.result;
}

int filch_blocking(filch_frame *f, filch_lane which, int (*fn)(void *arg), void *arg)
{
    return filch_blocking_until(f, which, fn, arg, FILCH_NEVER_NS);
}
