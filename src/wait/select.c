/* SPDX-License-Identifier: MIT */
/*
 * Select: wait for the first of several events, by one wait that is in the lists of all of them.
 *
 *     lock all objects, in the order of addresses     nothing changes while we check
 *     is a case ready? do it; unlock; hand over       one of the ready cases, at random
 *     else enter all lists; unlock; wait once         the outcome of the wait is the case's index
 *     leave the other lists, one lock at a time
 *
 * Each ender that finds us in a list claims or ends the same wait (strand/wait_word.h). So only one
 * of the lists gets us; for the others our wait has ended otherwise. As in channel.c, the ender
 * that has claimed the wait copies from or to the memory of the case.
 *
 * When two selects meet, one of them has its locks first, and enters all lists before the other
 * checks. A select that sends and receives on one channel does not meet itself. While it checks, it
 * is in no list; while it is in the lists, it does not check.
 *
 * A future may be freed when all its waiters have returned. So select acquires the future's lock
 * once more, even if that future was chosen: filch_future_set must have released the lock.
 *
 * There are no ordered operations here: the locks [lock-passed] and the wait [strand-waits,
 * wait-ended] carry everything.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "wait/channel.h"
#include "wait/future.h"

#include <errno.h>

#define CASES_MAX 64

filch_case filch_case_send(filch_channel *channel, const void *entry)
{
    return (filch_case){.kind = FILCH_CASE_SEND, .channel = channel, .entry = (void *)entry};
}

filch_case filch_case_receive(filch_channel *channel, void *entry)
{
    return (filch_case){.kind = FILCH_CASE_RECEIVE, .channel = channel, .entry = entry};
}

filch_case filch_case_future(filch_future *future)
{
    return (filch_case){.kind = FILCH_CASE_FUTURE, .future = future};
}

filch_case filch_case_time(uint64_t deadline_ns)
{
    return (filch_case){.kind = FILCH_CASE_TIME, .deadline_ns = deadline_ns};
}

/* ---- the objects of the cases ---------------------------------------------------------------- */

/* NULL: the case has no object. */
static filch_lock *lock_of(const filch_case *c)
{
    switch (c->kind) {
    case FILCH_CASE_SEND:
    case FILCH_CASE_RECEIVE:
        return &c->channel->lock;
    case FILCH_CASE_FUTURE:
        return filch_future_lock(c->future);
    default:
        return NULL;
    }
}

/* The list that the case waits in. */
static filch_waiters *list_of(const filch_case *c)
{
    return c->kind == FILCH_CASE_SEND      ? &c->channel->senders
           : c->kind == FILCH_CASE_RECEIVE ? &c->channel->receivers
                                           : filch_future_waiters(c->future);
}

typedef struct selection {
    filch_case *cases;
    unsigned count;
    uint64_t deadline_ns; /* the earliest of the time cases */
    unsigned at_deadline; /* its index; CASES_MAX: none */
    unsigned lock_count;  /* each lock once, in the order of addresses */
    filch_lock *locks[CASES_MAX];
} selection;

static void add_lock(selection *s, filch_lock *lock)
{
    unsigned at = s->lock_count;

    for (; at > 0 && s->locks[at - 1] >= lock; at--)
        if (s->locks[at - 1] == lock)
            return;
    for (unsigned i = s->lock_count++; i > at; i--)
        s->locks[i] = s->locks[i - 1];
    s->locks[at] = lock;
}

/* 0, or -EINVAL. */
static int prepare(selection *s, filch_case *cases, unsigned count)
{
    s->cases = cases;
    s->count = count;
    s->deadline_ns = FILCH_NEVER_NS;
    s->at_deadline = CASES_MAX;
    s->lock_count = 0;
    if (!cases || count > CASES_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < count; i++) {
        const filch_case *c = &cases[i];
        switch (c->kind) {
        case FILCH_CASE_NONE:
            break;
        case FILCH_CASE_SEND:
        case FILCH_CASE_RECEIVE:
            if (!c->channel || !c->entry)
                return -EINVAL;
            add_lock(s, lock_of(c));
            break;
        case FILCH_CASE_FUTURE:
            if (!c->future)
                return -EINVAL;
            add_lock(s, lock_of(c));
            break;
        case FILCH_CASE_TIME:
            if (s->at_deadline == CASES_MAX || c->deadline_ns < s->deadline_ns) {
                s->deadline_ns = c->deadline_ns;
                s->at_deadline = i;
            }
            break;
        default:
            return -EINVAL;
        }
    }
    return s->lock_count > 0 || s->at_deadline < CASES_MAX ? 0 : -EINVAL;
}

static void lock_all(selection *s)
{
    for (unsigned i = 0; i < s->lock_count; i++)
        filch_lock_acquire(s->locks[i]);
}

static void unlock_all(selection *s)
{
    for (unsigned i = s->lock_count; i > 0; i--)
        filch_lock_release(s->locks[i - 1]);
}

/* ---- under all locks ------------------------------------------------------------------------- */

/* Might the case be ready? A waiter in a list may have ended its wait: try_case finds out. */
static bool is_likely(const filch_case *c, uint64_t now_ns)
{
    switch (c->kind) {
    case FILCH_CASE_SEND:
        return c->channel->is_closed || c->channel->receivers.first ||
               c->channel->count < c->channel->capacity;
    case FILCH_CASE_RECEIVE:
        return c->channel->is_closed || c->channel->senders.first || c->channel->count > 0;
    case FILCH_CASE_FUTURE:
        return filch_future_is_ready(c->future);
    case FILCH_CASE_TIME:
        return c->deadline_ns <= now_ns;
    default:
        return false;
    }
}

/* The result of the case, or -EAGAIN. */
static int try_case(const filch_case *c, filch_handover *handover)
{
    return c->kind == FILCH_CASE_SEND
               ? filch_channel_put(c->channel, c->entry, FILCH_EFFORT_ALL, handover)
           : c->kind == FILCH_CASE_RECEIVE
               ? filch_channel_get(c->channel, c->entry, FILCH_EFFORT_ALL, handover)
           : c->kind == FILCH_CASE_FUTURE ? c->future->err
                                          : 0;
}

/* The index of a random bit in the mask. */
static unsigned pick(filch_rng *rng, uint64_t mask)
{
    for (uint32_t skip = filch_rng_below(rng, (uint32_t)__builtin_popcountll(mask)); skip > 0;
         skip--)
        mask &= mask - 1;
    return (unsigned)__builtin_ctzll(mask);
}

/* Do one of the ready cases. Returns its index; -EAGAIN: there is none. */
static int do_one(selection *s, filch_handover *handover)
{
    uint64_t now_ns = s->at_deadline < CASES_MAX ? filch_clock_ns() : 0, mask = 0;
    filch_rng rng;

    for (unsigned i = 0; i < s->count; i++)
        if (is_likely(&s->cases[i], now_ns))
            mask |= (uint64_t)1 << i;
    if (!mask)
        return -EAGAIN;
    /* A seed that costs nothing and differs each time. The address separates callers that select at
     * the same moment. */
    filch_rng_seed(&rng, filch_clock_ticks() ^ (uint64_t)(uintptr_t)s << 16);
    while (mask) {
        unsigned i = pick(&rng, mask);
        int result = try_case(&s->cases[i], handover);
        if (result != -EAGAIN || s->cases[i].kind == FILCH_CASE_FUTURE) {
            s->cases[i].result = result;
            return (int)i;
        }
        mask &= ~((uint64_t)1 << i);
    }
    return -EAGAIN;
}

/* ---- select ---------------------------------------------------------------------------------- */

/* Enter all lists, and wait. Under all locks, which are released here. */
static int wait_for_one(selection *s, filch_frame *f)
{
    filch_waiting waiting;
    filch_waiter waiters[CASES_MAX];

    filch_waiting_begin(&waiting, f, FILCH_WAITS_SELECT, (const void *)(uintptr_t)s->count);
    for (unsigned i = 0; i < s->count; i++) {
        if (!lock_of(&s->cases[i]))
            continue;
        waiters[i] = (filch_waiter){.waiting = &waiting, .outcome = i, .data = s->cases[i].entry};
        filch_waiters_push(list_of(&s->cases[i]), &waiters[i]);
    }
    unlock_all(s);

    int outcome = filch_waiting_wait(&waiting, s->deadline_ns);
    bool is_closed = outcome >= 0 && (unsigned)outcome & FILCH_OUTCOME_CLOSED;
    int chosen = outcome;
    if (is_closed)
        chosen = outcome - (int)FILCH_OUTCOME_CLOSED;
    else if (outcome == -ETIMEDOUT && s->at_deadline < CASES_MAX)
        chosen = (int)s->at_deadline;
    int result = is_closed ? -EPIPE : 0;

    for (unsigned i = 0; i < s->count; i++) {
        filch_case *c = &s->cases[i];
        filch_lock *lock = lock_of(c);
        /* The chosen channel does not touch us any more, and may be gone already. */
        if (!lock || ((int)i == chosen && c->kind != FILCH_CASE_FUTURE))
            continue;
        filch_lock_acquire(lock);
        filch_waiters_remove(list_of(c), &waiters[i]);
        if ((int)i == chosen)
            result = c->future->err;
        filch_lock_release(lock);
    }
    if (chosen >= 0)
        s->cases[chosen].result = result;
    return chosen;
}

/* Select, after prepare. */
static int select_one(selection *s, filch_frame *f, bool may_wait)
{
    filch_handover handover = {.waiter = NULL};

    lock_all(s);
    int chosen = do_one(s, &handover);
    if (chosen == -EAGAIN && may_wait)
        return wait_for_one(s, f);
    unlock_all(s);
    filch_handover_finish(&handover);
    return chosen;
}

int filch_select(filch_frame *f, filch_case *cases, unsigned count)
{
    selection s;
    int err = prepare(&s, cases, count);

    return err ? err : select_one(&s, f, true);
}

int filch_select_try(filch_case *cases, unsigned count)
{
    selection s;
    int err = prepare(&s, cases, count);

    return err ? err : select_one(&s, NULL, false);
}

int filch_future_wait_any(filch_frame *f, filch_future *const futures[], unsigned count,
                          uint64_t deadline_ns)
{
    selection s;
    filch_case cases[CASES_MAX];

    if (!futures || count > CASES_MAX)
        return -EINVAL;
    for (unsigned i = 0; i < count; i++)
        cases[i] = filch_case_future(futures[i]);
    int err = prepare(&s, cases, count);
    /* The deadline is not a case: futures that are complete come before a deadline that has
     * passed. */
    s.deadline_ns = deadline_ns;
    return err ? err : select_one(&s, f, true);
}
