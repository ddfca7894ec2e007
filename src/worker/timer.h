/* SPDX-License-Identifier: MIT */
/*
 * The timers of a pool: a wheel under a lock, and one idle worker that watches it.
 *
 * A worker that goes to sleep calls filch_timers_watch. If a timer is due before the current
 * watcher wakes up, the worker becomes the watcher and sleeps with a time-out. Awake workers look
 * at the clock when their own queues are empty. If a thread starts a timer that is due before the
 * watcher wakes up, it must make sure that the timer is watched. It goes to sleep itself, or wakes
 * a worker. README.md says why no timer is lost, and lists the edge.
 *
 * A tick is 16 us: a timer is late by one tick at most, plus the time to wake a worker.
 */
#ifndef FILCH_WORKER_TIMER_H
#define FILCH_WORKER_TIMER_H

#include "base/wheel.h"
#include "strand/strand.h"

#define FILCH_NEVER_NS UINT64_MAX

typedef struct filch_timer filch_timer;
struct filch_timer {
    filch_wheel_entry entry; /* first: an entry of the wheel is a timer */

    /* Called when it is due, under the timers' lock, so it must not call the timers. NULL: end the
     * wait below. Appends strands to resume at **last. */
    void (*fire)(filch_timer *timer, filch_link ***last);

    filch_strand *strand; /* whose wait to end, */
    uint64_t turn;        /* and which of its waits */
};

typedef struct filch_timers {
    filch_lock lock;
    filch_wheel wheel;
    filch_atomic_u64 next_ns;    /* not later than the next timer is due */
    filch_atomic_u64 watched_ns; /* when the watcher wakes up; FILCH_NEVER_NS: there is none */
    const void *watcher;         /* under the lock */
} filch_timers;

void filch_timers_init(filch_timers *timers);

/* The deadline is in nanoseconds of filch_clock_ns. True: timers are unwatched now. */
bool filch_timer_start(filch_timers *timers, filch_timer *timer, uint64_t deadline_ns);

/* On return, the timer has fired or never will. A timer of all zeros counts as not started. */
void filch_timer_stop(filch_timers *timers, filch_timer *timer);

/* Is a timer due before the watcher wakes up? */
bool filch_timers_is_unwatched(filch_timers *timers);

/* By a worker that goes to sleep: become the watcher, if timers are unwatched. Returns when to wake
 * up; FILCH_NEVER_NS: another worker watches, or there are no timers. */
uint64_t filch_timers_watch(filch_timers *timers, const void *self);

/* Stop watching. True: timers are unwatched now. */
bool filch_timers_unwatch(filch_timers *timers, const void *self);

/* Is a timer due? Reads the clock only if there are timers. */
bool filch_timers_are_due(filch_timers *timers);

/* Fire the timers that are due. Returns the strands to resume, linked by link.next. */
filch_link *filch_timers_fire(filch_timers *timers);

#endif
