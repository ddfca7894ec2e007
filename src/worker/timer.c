/* SPDX-License-Identifier: MIT */
/*
 * Timers of a pool. README.md has the protocol and its edge.
 */
#include "worker/timer.h"

#include "base/clock.h"

#define TICK_SHIFT 14

/* The first tick that does not begin before `ns`. */
static uint64_t tick_of(uint64_t ns)
{
    uint64_t tick = ns >> TICK_SHIFT;
    return tick << TICK_SHIFT == ns ? tick : tick + 1;
}

static uint64_t ns_of(uint64_t tick)
{
    return tick < UINT64_MAX >> TICK_SHIFT ? tick << TICK_SHIFT : FILCH_NEVER_NS;
}

static void update_next(filch_timers *timers)
{
    /* seq_cst [timer-or-sleep] */
    filch_store_seq_cst(&timers->next_ns, ns_of(filch_wheel_next(&timers->wheel)));
}

void filch_timers_init(filch_timers *timers)
{
    filch_lock_init(&timers->lock);
    filch_wheel_init(&timers->wheel, 0);
    timers->watcher = NULL;
    /* relaxed: no other thread knows the timers yet. */
    filch_store_relaxed(&timers->next_ns, FILCH_NEVER_NS);
    filch_store_relaxed(&timers->watched_ns, FILCH_NEVER_NS);
}

bool filch_timer_start(filch_timers *timers, filch_timer *timer, uint64_t deadline_ns)
{
    uint64_t tick = tick_of(deadline_ns);

    filch_lock_acquire(&timers->lock);
    /* An empty wheel may not have advanced for long: a new entry would start on a high level. */
    if (filch_wheel_next(&timers->wheel) == FILCH_WHEEL_NEVER)
        filch_wheel_advance(&timers->wheel, filch_clock_ns() >> TICK_SHIFT);
    filch_wheel_insert(&timers->wheel, &timer->entry, tick);
    /* relaxed: under the lock. */
    if (ns_of(filch_wheel_next(&timers->wheel)) < filch_load_relaxed(&timers->next_ns))
        update_next(timers);
    bool is_unwatched = filch_timers_is_unwatched(timers);
    filch_lock_release(&timers->lock);
    return is_unwatched;
}

void filch_timer_stop(filch_timers *timers, filch_timer *timer)
{
    filch_lock_acquire(&timers->lock);
    filch_wheel_remove(&timers->wheel, &timer->entry);
    /* Leave next_ns as it is: stopping then needs no search for the next timer. At worst a worker
     * wakes up in vain. */
    filch_lock_release(&timers->lock);
}

bool filch_timers_is_unwatched(filch_timers *timers)
{
    /* seq_cst [timer-or-sleep]. relaxed: the watcher writes watched_ns, and then
     * reads next_ns. */
    return filch_load_seq_cst(&timers->next_ns) < filch_load_relaxed(&timers->watched_ns);
}

uint64_t filch_timers_watch(filch_timers *timers, const void *self)
{
    uint64_t until_ns = FILCH_NEVER_NS;

    /* seq_cst [timer-or-sleep] */
    if (filch_load_seq_cst(&timers->next_ns) == FILCH_NEVER_NS)
        return until_ns;
    filch_lock_acquire(&timers->lock);
    update_next(timers);
    if (filch_timers_is_unwatched(timers)) {
        /* relaxed: under the lock. */
        until_ns = filch_load_relaxed(&timers->next_ns);
        filch_store_relaxed(&timers->watched_ns, until_ns);
        timers->watcher = self;
    }
    filch_lock_release(&timers->lock);
    return until_ns;
}

bool filch_timers_unwatch(filch_timers *timers, const void *self)
{
    filch_lock_acquire(&timers->lock);
    if (timers->watcher == self) {
        timers->watcher = NULL;
        /* relaxed: under the lock. */
        filch_store_relaxed(&timers->watched_ns, FILCH_NEVER_NS);
    }
    bool is_unwatched = filch_timers_is_unwatched(timers);
    filch_lock_release(&timers->lock);
    return is_unwatched;
}

bool filch_timers_are_due(filch_timers *timers)
{
    /* relaxed: a hint; a worker that goes to sleep reads it again. */
    uint64_t next_ns = filch_load_relaxed(&timers->next_ns);
    return next_ns != FILCH_NEVER_NS && filch_clock_ns() >= next_ns;
}

static void end_wait(filch_timer *timer, filch_link ***last)
{
    filch_strand *strand = timer->strand;

    if (filch_wait_end(&strand->wait, timer->turn, FILCH_WAIT_TIMED_OUT) == FILCH_WAIT_RESUME) {
        **last = &strand->link;
        *last = &strand->link.next;
    }
}

filch_link *filch_timers_fire(filch_timers *timers)
{
    filch_link *first = NULL, **last = &first;
    filch_wheel_entry *due, *next;

    filch_lock_acquire(&timers->lock);
    uint64_t now = filch_clock_ns() >> TICK_SHIFT;
    while ((due = filch_wheel_advance(&timers->wheel, now)))
        for (; due; due = next) {
            filch_timer *timer = (filch_timer *)due;
            /* A waiter that is resumed may run at once and free its timer. */
            next = due->next;
            (timer->fire ? timer->fire : end_wait)(timer, &last);
        }
    *last = NULL;
    update_next(timers);
    filch_lock_release(&timers->lock);
    return first;
}
