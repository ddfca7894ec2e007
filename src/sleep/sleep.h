/* SPDX-License-Identifier: MIT */
/*
 * Who is idle: one word, and a stack of those who sleep. README.md has the protocol and its proof.
 *
 *      63            32 31      22 21      12 11         0
 *     +----------------+----------+----------+------------+
 *     |     epoch      | searchers| sleepers | top, 0=none|
 *     +----------------+----------+----------+------------+
 *
 * A sleeper is a seat: a worker that nobody is. Its thread is asleep, or was never started. Whoever takes it
 * off the stack decides what becomes of it: a publisher wakes its thread, a caller of filch_run sits down on it.
 */
#ifndef FILCH_SLEEP_SLEEP_H
#define FILCH_SLEEP_SLEEP_H

#include "base/futex.h"

/* As many as fit into the fields of the word. */
#define FILCH_SEATS_MAX 1000u

/* What a thread sleeps on. */
enum filch_bed_state {
    FILCH_BED_EMPTY,  /* its thread is awake */
    FILCH_BED_ASLEEP, /* its thread is in the kernel, or on the way */
    FILCH_BED_AWAY,   /* the same, but waits for the kernel's events, and is woken by the bell */
    FILCH_BED_CALLED, /* it has been woken and does not know yet */
    FILCH_BED_ENDED,  /* the same, and it shall end */
};

typedef struct filch_seat {
    filch_atomic_u32 bed;
    filch_atomic_u32 next; /* the seat below on the stack, plus 1 */
    int bell;              /* an eventfd, of a thread that may be away */
} filch_seat;

typedef struct filch_sleep {
    filch_atomic_u64 word __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_seat **seats;
} filch_sleep;

/* How a seat goes onto or comes off the stack. */
enum filch_sleep_role {
    FILCH_ROLE_RUNNING,   /* has work */
    FILCH_ROLE_SEARCHING, /* counts as a searcher */
};

/* Searchers and sleepers together. */
unsigned filch_sleep_idle_count(filch_sleep *sleep);
unsigned filch_sleep_sleeper_count(filch_sleep *sleep);
unsigned filch_sleep_searcher_count(filch_sleep *sleep);

/* Become a searcher, if there are not enough already. */
bool filch_sleep_search(filch_sleep *sleep, unsigned searcher_limit);

/* Stop being one. Returns whether it was the last: then somebody else should look, if there is more to find. */
bool filch_sleep_found(filch_sleep *sleep);

/* Announce that seat `index` sleeps. Look at all work once more after this, before filch_seat_sleep. */
void filch_sleep_push(filch_sleep *sleep, unsigned index, enum filch_sleep_role from);

/* Take a seat off the stack, in the role `to`; -1 when there is none. With only_if_needed, also when somebody
 * searches already. */
int filch_sleep_pop(filch_sleep *sleep, enum filch_sleep_role to, bool only_if_needed);

/* Sleep until called, or for this long (NULL: for ever). Only the seat's own thread. Returns FILCH_BED_CALLED, FILCH_BED_ENDED, or, when
 * time is up or a signal has come, FILCH_BED_EMPTY: then the seat is still on the stack, and not its thread's, which may sleep again. */
enum filch_bed_state filch_seat_nap(filch_seat *seat, const struct timespec *timeout);

/* Sleep elsewhere than in bed. False: somebody has called, do not go. */
bool filch_seat_go_away(filch_seat *seat);

/* Back again. FILCH_BED_EMPTY: nobody has called; as after a nap. */
enum filch_bed_state filch_seat_come_back(filch_seat *seat);

/* Without a time-out. False: it shall end. */
static inline bool filch_seat_sleep(filch_seat *seat)
{
    return filch_seat_nap(seat, NULL) != FILCH_BED_ENDED;
}

/* Wake the thread of a seat that was taken off the stack, with FILCH_BED_CALLED or FILCH_BED_ENDED. */
void filch_seat_call(filch_seat *seat, enum filch_bed_state call);

#endif
