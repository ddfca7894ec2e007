/* SPDX-License-Identifier: MIT */
/*
 * Once. sync.h explains the part that all objects share.
 *
 *     word      0: fn was not called, or has failed; RUNNING: a caller runs fn; RUNNING and QUEUED;
 *               DONE
 *
 *     call      0: set RUNNING and call fn. RUNNING: set QUEUED and wait. DONE: return
 *     success   QUEUED: claim all waiters, which return 0, and make the word RUNNING. RUNNING: make
 *               it DONE
 *     error     QUEUED: claim one waiter, which calls fn next; the word stays RUNNING. RUNNING:
 *               make it 0
 *
 * Edges
 *   once-done  done, failed -> is_done, queue   carries all that the call did.
 */
#include "wait/sync/sync.h"

#include "strand/unwind.h"

#define RUNNING 1u
#define QUEUED 2u
#define DONE 4u

/* How a wait ends. */
enum { TO_RETURN, TO_CALL };

static bool is_done(filch_once *once)
{
    /* acquire [once-done] */
    return filch_load_acquire(&once->state) == DONE;
}

/* Become the caller of fn, or set QUEUED. Under the lock. Returns the word from before. */
static uint32_t queue(filch_once *once)
{
    /* acquire [once-done] */
    uint32_t seen = filch_load_acquire(&once->state);

    do {
        if (seen == DONE)
            break;
        /* acquire [once-done] */
    } while (!filch_cas_acq_rel(&once->state, &seen, seen ? RUNNING | QUEUED : RUNNING));
    return seen;
}

/* The list has become empty. Under the lock. */
static void unqueue(filch_once *once)
{
    /* relaxed: the caller that runs fn writes the word again when fn returns. */
    filch_store_relaxed(&once->state, RUNNING);
}

/* Returns 0: call fn; 1: there is nothing to do; or an error. */
static int wait_for_turn(filch_frame *f, filch_once *once)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    filch_waiting_begin(&waiting, f, FILCH_WAITS_ONCE, once);
    filch_lock_acquire(FILCH_LOCK_OF(once));
    uint32_t seen = queue(once);
    if (seen & RUNNING)
        filch_waiters_push(FILCH_WAITERS_OF(once), &waiter);
    filch_lock_release(FILCH_LOCK_OF(once));
    if (!(seen & RUNNING)) {
        filch_waiting_drop(&waiting);
        return seen == DONE;
    }
    int outcome = filch_waiting_wait(&waiting, FILCH_NEVER_NS);
    if (outcome < 0) {
        filch_lock_acquire(FILCH_LOCK_OF(once));
        if (filch_waiters_leave(FILCH_WAITERS_OF(once), &waiter))
            unqueue(once);
        filch_lock_release(FILCH_LOCK_OF(once));
        return outcome;
    }
    return outcome == TO_RETURN;
}

/* Claim the first waiter, or with `is_for_all` all of them. */
static void claim(filch_once *once, bool is_for_all, filch_claimed *claimed)
{
    filch_waiters *list = FILCH_WAITERS_OF(once);

    filch_lock_acquire(FILCH_LOCK_OF(once));
    while (filch_claim(list, claimed) && is_for_all)
        ;
    if (filch_waiters_is_empty(list))
        unqueue(once);
    filch_lock_release(FILCH_LOCK_OF(once));
}

static void done(filch_once *once)
{
    filch_claimed claimed = {NULL, NULL};
    uint32_t seen = RUNNING;

    /* release [once-done] */
    while (!filch_cas_acq_rel(&once->state, &seen, DONE)) {
        claim(once, true, &claimed);
        seen = RUNNING;
    }
    filch_claimed_go(&claimed);
}

static void failed(filch_once *once)
{
    filch_claimed claimed = {NULL, NULL};
    uint32_t seen = RUNNING;

    /* release [once-done]: to the next caller of fn */
    while (!filch_cas_acq_rel(&once->state, &seen, 0)) {
        claim(once, false, &claimed);
        if (claimed.first) {
            claimed.first->outcome = TO_CALL;
            break;
        }
        seen = RUNNING;
    }
    filch_claimed_go(&claimed);
}

FILCH_NOT_INLINED int filch_once_call(filch_frame *f, filch_once *once,
                                      int (*fn)(filch_frame *f, void *arg), void *arg)
{
    if (is_done(once))
        return 0;
    uint32_t seen = 0;
    /* acquire [once-done]: of a call that failed */
    if (!filch_cas_acq_rel(&once->state, &seen, RUNNING)) {
        int result = wait_for_turn(f, once);
        if (result)
            return result < 0 ? result : 0;
    }
    int err = fn(f, arg);
    FILCH_STOP_UNWIND();
    if (err)
        failed(once);
    else
        done(once);
    return err;
}
