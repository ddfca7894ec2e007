/* SPDX-License-Identifier: MIT */
/*
 * An event. sync.h explains the part that all objects share.
 *
 *     word      0, QUEUED or SET
 *
 *     wait      0: set QUEUED and wait. SET: return
 *     set       QUEUED: claim all waiters, and make the word 0. 0: make it SET
 *     reset     SET: make the word 0
 *
 * The word becomes SET after the lock was released. That is the last access, so a caller that sees
 * SET may free the event.
 *
 * Edges
 *   event-set  filch_event_set -> is_set, queue   carries all that came before the set.
 */
#include "wait/sync/sync.h"

#define SET 1u
#define QUEUED 2u

static bool is_set(filch_event *event)
{
    /* acquire [event-set] */
    return filch_load_acquire(&event->state) == SET;
}

bool filch_event_is_set(filch_event *event)
{
    return is_set(event);
}

/* Set QUEUED. Under the lock. False: the event is set, so there is nothing to wait for. */
static bool queue(filch_event *event)
{
    /* acquire [event-set] */
    uint32_t seen = filch_load_acquire(&event->state);

    do {
        if (seen == SET)
            return false;
        /* acquire [event-set]: when it fails */
    } while (!filch_cas_acq_rel(&event->state, &seen, QUEUED));
    return true;
}

/* The list has become empty. Under the lock. */
static void unqueue(filch_event *event)
{
    /* relaxed: while the word is QUEUED, it changes only under the lock, and the event is not
     * set. */
    filch_store_relaxed(&event->state, 0);
}

int filch_event_wait_until(filch_frame *f, filch_event *event, uint64_t deadline_ns)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    if (is_set(event))
        return 0;
    filch_waiting_begin(&waiting, f, FILCH_WAITS_EVENT, event);
    filch_lock_acquire(FILCH_LOCK_OF(event));
    bool is_queued = queue(event);
    if (is_queued)
        filch_waiters_push(FILCH_WAITERS_OF(event), &waiter);
    filch_lock_release(FILCH_LOCK_OF(event));
    if (!is_queued) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, deadline_ns);
    if (outcome < 0) {
        filch_lock_acquire(FILCH_LOCK_OF(event));
        if (filch_waiters_leave(FILCH_WAITERS_OF(event), &waiter))
            unqueue(event);
        filch_lock_release(FILCH_LOCK_OF(event));
    }
    return outcome;
}

int filch_event_wait(filch_frame *f, filch_event *event)
{
    return filch_event_wait_until(f, event, FILCH_NEVER_NS);
}

void filch_event_set(filch_event *event)
{
    filch_claimed claimed = {NULL, NULL};
    uint32_t seen = 0;

    /* release [event-set] */
    while (!filch_cas_acq_rel(&event->state, &seen, SET) && seen != SET) {
        filch_waiters *list = FILCH_WAITERS_OF(event);

        filch_lock_acquire(FILCH_LOCK_OF(event));
        bool was_queued = !filch_waiters_is_empty(list);
        while (filch_claim(list, &claimed))
            ;
        if (was_queued)
            unqueue(event);
        filch_lock_release(FILCH_LOCK_OF(event));
        seen = 0;
    }
    filch_claimed_go(&claimed);
}

void filch_event_reset(filch_event *event)
{
    uint32_t seen = SET;
    /* acquire [event-set]: the caller sees all that was done before the event was set. */
    filch_cas_acq_rel(&event->state, &seen, 0);
}
