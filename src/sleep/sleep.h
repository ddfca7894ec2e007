/* SPDX-License-Identifier: MIT */
/*
 * Which workers are idle: one word, and a stack of sleeping seats. README.md has the protocol and
 * its proof.
 *
 *      63            32 31      22 21      12 11         0
 *     +----------------+----------+----------+------------+
 *     |     epoch      | searchers| sleepers | top, 0=none|
 *     +----------------+----------+----------+------------+
 *
 * A sleeper is a free seat: no running thread holds it. A publisher that takes a seat off the stack
 * wakes the seat's thread. A caller of filch_run that takes a seat acts as that worker itself.
 */
#ifndef FILCH_SLEEP_SLEEP_H
#define FILCH_SLEEP_SLEEP_H

#include "base/futex.h"

/* The fields of the word have room for no more. */
#define FILCH_SEATS_MAX 1000u

/* The state of a bed: the word that a seat's thread sleeps on. */
enum filch_bed_state {
    FILCH_BED_EMPTY,  /* the thread is awake */
    FILCH_BED_ASLEEP, /* the thread is in the kernel, or on its way there */
    FILCH_BED_AWAY,   /* the same, but it waits for events of the kernel; the bell wakes it */
    FILCH_BED_CALLED, /* the thread has been woken, but has not noticed yet */
    FILCH_BED_ENDED,  /* the same, and it shall exit */
};

typedef struct filch_seat {
    filch_atomic_u32 bed;
    filch_atomic_u32 next; /* the seat below on the stack, plus 1 */
    int bell;              /* an eventfd, if the thread may be away */
} filch_seat;

typedef struct filch_sleep {
    filch_atomic_u64 word __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_seat **seats;
} filch_sleep;

/* The role of a worker whose seat goes onto the stack or comes off it. */
enum filch_sleep_role {
    FILCH_ROLE_RUNNING,   /* has work to run */
    FILCH_ROLE_SEARCHING, /* counts as a searcher */
};

/* idle_count is searchers and sleepers together. */
unsigned filch_sleep_idle_count(filch_sleep *sleep);
unsigned filch_sleep_sleeper_count(filch_sleep *sleep);
unsigned filch_sleep_searcher_count(filch_sleep *sleep);

/* As sleeper_count, which is only a hint, but ordered like idle_count. */
unsigned filch_sleep_resting_count(filch_sleep *sleep);

/* Become a searcher, unless there are enough already. */
bool filch_sleep_search(filch_sleep *sleep, unsigned searcher_limit);

/* Stop being a searcher. Returns whether the caller was the last searcher. If so, and work is left,
 * another worker should search. */
bool filch_sleep_found(filch_sleep *sleep);

/* Announce that seat `index` sleeps. After this, and before filch_seat_nap, look at all work once
 * more. */
void filch_sleep_push(filch_sleep *sleep, unsigned index, enum filch_sleep_role from);

/* Take a seat off the stack, in the role `to`. Returns -1 if there is none; with `only_if_needed`,
 * also if another worker searches already. */
int filch_sleep_pop(filch_sleep *sleep, enum filch_sleep_role to, bool only_if_needed);

/* Sleep until called, or until `timeout` has passed (NULL: for ever). Only the seat's own thread
 * calls it. Returns FILCH_BED_CALLED, FILCH_BED_ENDED, or FILCH_BED_EMPTY after the timeout or a
 * signal. After EMPTY the seat is still on the stack and does not belong to its thread, which may
 * sleep again. */
enum filch_bed_state filch_seat_nap(filch_seat *seat, const struct timespec *timeout);

/* Start to sleep elsewhere than in bed. False: another thread has called, so do not sleep. */
bool filch_seat_go_away(filch_seat *seat);

/* Stop sleeping elsewhere. Returns as filch_seat_nap. FILCH_BED_EMPTY: no thread has called. */
enum filch_bed_state filch_seat_come_back(filch_seat *seat);

/* Wake the thread of a seat that was taken off the stack. `call` is FILCH_BED_CALLED or
 * FILCH_BED_ENDED. */
void filch_seat_call(filch_seat *seat, enum filch_bed_state call);

#endif
