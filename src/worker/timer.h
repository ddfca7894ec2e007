/* SPDX-License-Identifier: MIT */
/*
 * The timers of a pool: a wheel under a lock, and one idle worker that sleeps no longer than until the next is due.
 *
 * A worker that goes to sleep becomes the watcher if something is due before what the watcher so far knows of (filch_timers_watch), and sleeps with
 * a time-out. Workers that are awake look at the clock when they have nothing better to do. Who starts a timer that is due before the watcher wakes up has to see
 * to it that somebody watches: by going to sleep itself, or by waking somebody. src/sleep/README.md says why no timer is forgotten.
 *
 * A tick is 16 us: a timer is late by that at most, and by what it takes to wake somebody.
 *
 * Edges
 *   timer-or-sleep  filch_timer_start x filch_timers_watch, filch_timers_is_unwatched
 *                   with the sleep word (src/sleep/README.md).
 */
#ifndef FILCH_WORKER_TIMER_H
#define FILCH_WORKER_TIMER_H

#include "base/wheel.h"
#include "strand/strand.h"

/* Never. */
#define FILCH_NEVER_NS UINT64_MAX

typedef struct filch_timer filch_timer;
struct filch_timer {
    filch_wheel_entry entry; /* first: an entry of the wheel is a timer */

    /* Called when it is due, under the lock of the timers, which it must not use; NULL: the wait below ends. Strands that are to be
     * resumed are appended at **last. */
    void (*fire)(filch_timer *timer, filch_link ***last);

    filch_strand *strand; /* whose wait, and which one */
    uint64_t turn;
};

typedef struct filch_timers {
    filch_lock lock;
    filch_wheel wheel;
    filch_atomic_u64 next_ns;    /* not later than the next is due */
    filch_atomic_u64 watched_ns; /* when the watcher wakes up */
    const void *watcher;         /* under the lock */
} filch_timers;

void filch_timers_init(filch_timers *timers);

/* The deadline is in nanoseconds of filch_clock_ns. True: nobody watches it yet. */
bool filch_timer_start(filch_timers *timers, filch_timer *timer, uint64_t deadline_ns);

/* It does not fire any more on return, if it had not. All zero is a timer that was not started. */
void filch_timer_stop(filch_timers *timers, filch_timer *timer);

/* Is something due before the watcher wakes up? */
bool filch_timers_is_unwatched(filch_timers *timers);

/* Watch, if need be, on the way to sleep. Returns until when, FILCH_NEVER_NS: somebody else does, or there is nothing. */
uint64_t filch_timers_watch(filch_timers *timers, const void *self);

/* Awake again. True: timers are left that somebody should watch. */
bool filch_timers_unwatch(filch_timers *timers, const void *self);

/* Is something due? Looks at the clock only where there are timers at all. */
bool filch_timers_are_due(filch_timers *timers);

/* End what is due. Returns the strands to resume, linked by link.next. */
filch_link *filch_timers_fire(filch_timers *timers);

#endif
