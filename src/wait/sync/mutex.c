/* SPDX-License-Identifier: MIT */
/*
 * A mutex for tasks. sync.h explains the part that all objects share.
 *
 *     word      HELD     a task or thread holds the mutex
 *               QUEUED   the list is not empty
 *               WOKEN    a waiter was removed from the list to try, and has not tried yet
 *
 *     lock      not HELD: set HELD, even if others wait. HELD: spin for a moment, if the holder may
 *               be running; then set QUEUED and wait
 *     unlock    no QUEUED, or WOKEN: clear HELD. Otherwise claim the first waiter. A waiter that is
 *               to try is woken (set WOKEN, clear HELD). A waiter that is to have the mutex gets it
 *               (HELD stays)
 *     woken     not HELD: set HELD, clear WOKEN. HELD: clear WOKEN and wait again, first in the
 *               list: to have the mutex, if it has waited for PATIENCE_NS; else to try again
 *
 * A caller may overtake waiters: a task that locks and unlocks in a loop does not wait each time
 * until another task is resumed. But a waiter that was woken, and has waited for PATIENCE_NS in
 * all, is not overtaken any more. So no waiter waits forever.
 *
 * Invariant: not HELD and QUEUED imply WOKEN. So a woken waiter is on its way to look after the
 * others. An unlock clears HELD only if there is no QUEUED, or WOKEN is set. A waiter sets QUEUED
 * by a compare and swap that sees HELD. A woken waiter cannot be cancelled until it has tried.
 *
 * The last access of an unlock is the compare and swap that clears HELD. If a waiter gets the
 * mutex, the last access is the release of the lock. So the next task that locks and unlocks the
 * mutex may free it.
 *
 * Edges
 *   mutex-passed  filch_mutex_unlock -> take, queue, filch_mutex_lock_until
 *                 carries all that the holders so far wrote. If a waiter gets the mutex,
 *                 [wait-ended] of strand/wait_word.h carries it.
 */
#include "wait/sync/cycle.h"
#include "wait/sync/sync.h"

#include "base/clock.h"

#define HELD FILCH_MUTEX_HELD
#define QUEUED 2u
#define WOKEN 4u

/* How a wait ends. */
enum { TO_TRY, TO_HAVE };

/*
 * Pauses between two tries; they double each time. The first pause lets the holder make progress
 * before the line is fetched from it. A new caller spins for about as long as it takes to leave a
 * strand and to resume it. A waiter that was woken and overtaken spins ten times longer. There is
 * only one such waiter at a time, and waking it once more costs the holder.
 */
#ifndef PAUSES /* the model checker has fewer */
#define PAUSES_FIRST 8
#define PAUSES 32
#define PAUSES_WOKEN 256
#endif

/* A waiter that has waited for this long in all, and finds the mutex held when it is woken, gets it
 * at the next unlock. */
#ifndef PATIENCE_NS
#define PATIENCE_NS 100000
#endif

/* Take the mutex if it is free. `mine` is WOKEN if the caller was woken, else 0. */
static bool take(filch_mutex *mutex, uint32_t mine)
{
    /* relaxed: a hint, rechecked by the cas; it leaves the line with its holder. */
    uint32_t seen = filch_load_relaxed(&mutex->state);
    /* acquire [mutex-passed] */
    return !(seen & HELD) && filch_cas_acq_rel(&mutex->state, &seen, (seen | HELD) & ~mine);
}

/* Take the mutex, or set QUEUED. Under the lock. False: the caller has to wait. */
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

/* Spinning pays if the holder runs at the same time, and this worker has nothing better to do. */
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

/* Take the mutex, or spin for a moment until it is free. Each try fetches the line from the holder,
 * so the pauses grow. */
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

/* Enter the list and wait. Returns TO_TRY, TO_HAVE or an error. */
static int wait_in_list(filch_frame *f, filch_mutex *mutex, uint64_t deadline_ns, uint32_t mine,
                        int next)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting, .outcome = (unsigned)next};
    filch_lock_wait note;

    filch_waiting_begin(&waiting, f, FILCH_WAITS_MUTEX, mutex);
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

/* Claim the first waiter, and update the word. NULL: the list is empty. */
static filch_waiter *claim(filch_mutex *mutex)
{
    filch_waiters *list = FILCH_WAITERS_OF(mutex);

    filch_lock_acquire(FILCH_LOCK_OF(mutex));
    bool was_queued = !filch_waiters_is_empty(list);
    filch_waiter *waiter = filch_waiters_claim(list);
    uint32_t change = was_queued && filch_waiters_is_empty(list) ? -QUEUED : 0;
    if (waiter && waiter->outcome == TO_TRY)
        change += WOKEN;
    /* relaxed: QUEUED and WOKEN carry nothing; HELD is cleared later. */
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
            continue; /* all waiters had left before they were claimed, and another one came */
        /* release [mutex-passed] */
        if (filch_cas_acq_rel(&mutex->state, &seen, seen & ~HELD))
            break;
    }
    if (waiter)
        let_go_on(waiter);
}

bool filch_mutex_is_held(filch_mutex *mutex)
{
    /* relaxed: the caller wants to know whether it holds the mutex. */
    return filch_load_relaxed(&mutex->state) & HELD;
}

void filch_mutex_unlock(filch_mutex *mutex)
{
    uint32_t seen = HELD;

    filch_lock_released(mutex);
    /* release [mutex-passed] */
    if (!filch_cas_acq_rel(&mutex->state, &seen, 0))
        unlock_slow(mutex, seen);
}
