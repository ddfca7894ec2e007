/* SPDX-License-Identifier: MIT */
/*
 * A mutex for tasks. sync.h has what it shares with the others.
 *
 *     word      HELD     somebody has it
 *               QUEUED   the list is not empty
 *               WOKEN    one was taken off the list to try, and has not done so yet
 *
 *     lock      not HELD: HELD, also past those who wait. Else it spins for a moment, if the holder may be running; else QUEUED
 *     unlock    no QUEUED, or WOKEN: not HELD. Else the first in the list is claimed: one that waits for the first time
 *               is woken to try (WOKEN, not HELD), and one that has tried in vain gets the mutex (HELD stays)
 *     woken     not HELD: HELD, no WOKEN. Else it stands first in the list, no WOKEN, and gets the mutex at the next unlock
 *
 * Who comes may overtake those who wait: a task that locks and unlocks in a loop does not wait for another to be resumed each time. But nobody
 * is overtaken after it has been woken and has tried for PATIENCE_NS, so that nobody waits for ever.
 *
 * Always: not HELD and QUEUED implies WOKEN, so that somebody is on its way to those who wait. Who unlocks never gives HELD up otherwise, and who queues
 * does so by a compare and swap that sees HELD. Who was woken cannot be cancelled until it has tried.
 *
 * The compare and swap that takes HELD off, or with one that gets the mutex the release of the lock, is the last touch of who unlocks: the next who locks and
 * unlocks it may free it.
 *
 * Edges
 *   mutex-passed  filch_mutex_unlock -> take, queue, filch_mutex_lock_until   carries all that the holders so far wrote. From one who gives it to
 *                 another it is [wait-ended] of strand/wait_word.h.
 */
#include "wait/sync/cycle.h"
#include "wait/sync/sync.h"

#include "base/clock.h"

#define HELD 1u
#define QUEUED 2u
#define WOKEN 4u

/* How a wait ends. */
enum { TO_TRY, TO_HAVE };

/* How many pauses between two looks, which double each time. The first wait lets the holder do something before the line is fetched from it. One who comes spins for
 * about as long as it takes to leave a strand and to take it up again; one who was woken and overtaken ten times longer, since there is only one of those, and to
 * wake it once more costs the one it waits for. */
#ifndef PAUSES /* the model checker has fewer */
#define PAUSES_FIRST 8
#define PAUSES 32
#define PAUSES_WOKEN 256
#endif

/* One who has waited for so long in all, and finds the mutex taken when it is woken, gets it at the next unlock. */
#ifndef PATIENCE_NS
#define PATIENCE_NS 100000
#endif

/* Take it, if nobody has it. `mine` is WOKEN if the caller was woken, or 0. */
static bool take(filch_mutex *mutex, uint32_t mine)
{
    /* relaxed: a hint, rechecked by the cas; it leaves the line with its holder. */
    uint32_t seen = filch_load_relaxed(&mutex->state);
    /* acquire [mutex-passed] */
    return !(seen & HELD) && filch_cas_acq_rel(&mutex->state, &seen, (seen | HELD) & ~mine);
}

/* Take it, or say that the list is not empty. Under the lock. False: the caller has to wait. */
static bool queue(filch_mutex *mutex, uint32_t mine)
{
    /* relaxed: the cas decides. */
    uint32_t seen = filch_load_relaxed(&mutex->state);
    bool is_free;

    do {
        is_free = !(seen & HELD);
        /* acquire [mutex-passed] */
    } while (!filch_cas_acq_rel(&mutex->state, &seen, (seen | (is_free ? HELD : QUEUED)) & ~mine));
    return is_free;
}

/* Spinning pays if the holder runs at the same time as we do, and there is nothing better to do here. */
static bool may_spin(filch_frame *f)
{
    filch_worker *worker = f ? filch_strand_of(f)->worker : NULL;

    if (!worker)
        return true;
    /* relaxed: hints. */
    return worker->pool->worker_count > 1 && worker->pool->topology.cpu_count > 1 &&
           filch_load_relaxed(&worker->ready.count) == 0 &&
           filch_load_relaxed(&worker->spawned.count) == 0;
}

/* Take it, or spin for a moment until it can be taken: looking less and less often, since each time the line has to be fetched from its holder. */
static bool take_soon(filch_frame *f, filch_mutex *mutex, uint32_t mine)
{
    int limit = mine ? PAUSES_WOKEN : PAUSES;

    for (int pauses = PAUSES_FIRST; !take(mutex, mine); pauses *= 2) {
        if (pauses > limit || !may_spin(f))
            return false;
        for (int i = 0; i < pauses; i++)
            filch_pause();
    }
    return true;
}

/* Stand in the list and wait. TO_TRY, TO_HAVE, or an error. */
static int wait_in_list(filch_frame *f, filch_mutex *mutex, uint64_t deadline_ns, uint32_t mine,
                        int next)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting, .outcome = (unsigned)next};
    filch_lock_wait note;

    filch_waiting_begin(&waiting, f, "a mutex");
    filch_lock_acquire(FILCH_LOCK_OF(mutex));
    bool is_taken = queue(mutex, mine);
    if (!is_taken && mine)
        filch_waiters_push_front(FILCH_WAITERS_OF(mutex), &waiter);
    else if (!is_taken)
        filch_waiters_push(FILCH_WAITERS_OF(mutex), &waiter);
    filch_lock_release(FILCH_LOCK_OF(mutex));
    if (is_taken) {
        filch_waiting_drop(&waiting);
        return TO_HAVE;
    }
    filch_lock_wait_begin(&note, waiting.strand, mutex);
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    filch_lock_wait_end(&note);
    if (outcome < 0) {
        filch_lock_acquire(FILCH_LOCK_OF(mutex));
        if (filch_waiters_leave(FILCH_WAITERS_OF(mutex), &waiter))
            /* relaxed: says only that the list is empty. */
            filch_fetch_add_relaxed(&mutex->state, -QUEUED);
        filch_lock_release(FILCH_LOCK_OF(mutex));
    }
    return outcome;
}

static __attribute__((noinline)) int lock_slow(filch_frame *f, filch_mutex *mutex,
                                               uint64_t deadline_ns)
{
    uint32_t mine = 0;
    int next = TO_TRY;
    uint64_t since_ns = 0;

    while (!take_soon(f, mutex, mine)) {
        if (!since_ns)
            since_ns = filch_clock_ns();
        if (mine && filch_clock_ns() - since_ns >= PATIENCE_NS)
            next = TO_HAVE;
        int outcome = wait_in_list(f, mutex, deadline_ns, mine, next);
        if (outcome < 0)
            return outcome;
        if (outcome == TO_HAVE)
            break;
        mine = WOKEN;
    }
    filch_lock_held(mutex, f);
    return 0;
}

int filch_mutex_lock_until(filch_frame *f, filch_mutex *mutex, uint64_t deadline_ns)
{
    uint32_t seen = 0;
    /* acquire [mutex-passed] */
    if (!filch_cas_acq_rel(&mutex->state, &seen, HELD))
        return lock_slow(f, mutex, deadline_ns);
    filch_lock_held(mutex, f);
    return 0;
}

int filch_mutex_lock(filch_frame *f, filch_mutex *mutex)
{
    uint32_t seen = 0;
    /* acquire [mutex-passed] */
    if (!filch_cas_acq_rel(&mutex->state, &seen, HELD))
        return lock_slow(f, mutex, FILCH_NEVER_NS);
    filch_lock_held(mutex, f);
    return 0;
}

bool filch_mutex_try_lock(filch_mutex *mutex)
{
    return take(mutex, 0);
}

/* Claim the first who waits, and say in the word what that changes. NULL: nobody waits. */
static filch_waiter *claim(filch_mutex *mutex)
{
    filch_waiters *list = FILCH_WAITERS_OF(mutex);

    filch_lock_acquire(FILCH_LOCK_OF(mutex));
    bool was_queued = !filch_waiters_is_empty(list);
    filch_waiter *waiter = filch_waiters_claim(list);
    uint32_t change = was_queued && filch_waiters_is_empty(list) ? -QUEUED : 0;
    if (waiter && waiter->outcome == TO_TRY)
        change += WOKEN;
    /* relaxed: says only who is in the list and who is woken; HELD is given up later. */
    filch_fetch_add_relaxed(&mutex->state, change);
    filch_lock_release(FILCH_LOCK_OF(mutex));
    return waiter;
}

static void let_go_on(filch_waiter *waiter)
{
    filch_wakes wakes = {NULL, NULL};

    filch_waiting_finish(waiter->waiting, waiter->outcome, &wakes);
    filch_wakes_go(&wakes);
}

static __attribute__((noinline)) void unlock_slow(filch_mutex *mutex, uint32_t seen)
{
    filch_waiter *waiter = NULL;

    for (;;) {
        if ((seen & QUEUED) && !(seen & WOKEN)) {
            waiter = claim(mutex);
            if (waiter && waiter->outcome == TO_HAVE)
                break;
            /* relaxed: the cas decides. */
            seen = filch_load_relaxed(&mutex->state);
        }
        if ((seen & QUEUED) && !(seen & WOKEN))
            continue; /* all had left before they were claimed, and another one came */
        /* release [mutex-passed] */
        if (filch_cas_acq_rel(&mutex->state, &seen, seen & ~HELD))
            break;
    }
    if (waiter)
        let_go_on(waiter);
}

void filch_mutex_unlock(filch_mutex *mutex)
{
    uint32_t seen = HELD;

    filch_lock_released(mutex);
    /* release [mutex-passed] */
    if (!filch_cas_acq_rel(&mutex->state, &seen, 0))
        unlock_slow(mutex, seen);
}
