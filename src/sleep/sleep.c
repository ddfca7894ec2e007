/* SPDX-License-Identifier: MIT */
/*
 * The edges are in README.md.
 */
#include "sleep/sleep.h"

#include <errno.h>
#include <unistd.h>

#define TOP_BITS 12
#define COUNT_BITS 10
#define ONE_SLEEPER ((uint64_t)1 << TOP_BITS)
#define ONE_SEARCHER ((uint64_t)1 << (TOP_BITS + COUNT_BITS))
#define ONE_EPOCH ((uint64_t)1 << 32)

static unsigned top_of(uint64_t word)
{
    return (unsigned)(word & (ONE_SLEEPER - 1));
}

static unsigned sleepers_of(uint64_t word)
{
    return (unsigned)(word / ONE_SLEEPER) & ((1u << COUNT_BITS) - 1);
}

static unsigned searchers_of(uint64_t word)
{
    return (unsigned)(word / ONE_SEARCHER) & ((1u << COUNT_BITS) - 1);
}

unsigned filch_sleep_idle_count(filch_sleep *sleep)
{
    /* seq_cst [strand-or-sleep] */
    uint64_t word = filch_load_seq_cst(&sleep->word);
    return searchers_of(word) + sleepers_of(word);
}

unsigned filch_sleep_resting_count(filch_sleep *sleep)
{
    /* seq_cst [strand-or-sleep], [publish-or-sleep] */
    return sleepers_of(filch_load_seq_cst(&sleep->word));
}

unsigned filch_sleep_sleeper_count(filch_sleep *sleep)
{
    /* relaxed: a hint for how long to spin. */
    return sleepers_of(filch_load_relaxed(&sleep->word));
}

unsigned filch_sleep_searcher_count(filch_sleep *sleep)
{
    /* relaxed: a hint for whether an offer will be taken. */
    return searchers_of(filch_load_relaxed(&sleep->word));
}

bool filch_sleep_search(filch_sleep *sleep, unsigned searcher_limit)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&sleep->word);
    do {
        if (searchers_of(word) >= searcher_limit)
            return false;
        /* seq_cst [publish-or-sleep], [strand-or-sleep] */
    } while (!filch_cas_seq_cst(&sleep->word, &word, word + ONE_SEARCHER));
    return true;
}

bool filch_sleep_found(filch_sleep *sleep)
{
    /* seq_cst [publish-or-sleep]: a publisher that comes later no longer counts on this worker. */
    uint64_t word = filch_fetch_add_seq_cst(&sleep->word, -ONE_SEARCHER);
    return searchers_of(word) == 1;
}

void filch_sleep_push(filch_sleep *sleep, unsigned index, enum filch_sleep_role from)
{
    /* relaxed: the cas decides. */
    uint64_t word = filch_load_relaxed(&sleep->word), next;
    do {
        /* relaxed: carried by [seat-free] below. */
        filch_store_relaxed(&sleep->seats[index]->next, top_of(word));
        next = word - top_of(word) + (index + 1) + ONE_SLEEPER + ONE_EPOCH;
        if (from == FILCH_ROLE_SEARCHING)
            next -= ONE_SEARCHER;
        /* release [seat-free], seq_cst [publish-or-sleep], [strand-or-sleep], [queued-or-sleep] */
    } while (!filch_cas_seq_cst(&sleep->word, &word, next));
}

int filch_sleep_pop(filch_sleep *sleep, enum filch_sleep_role to, bool only_if_needed)
{
    /* seq_cst [publish-or-sleep], [queued-or-sleep] */
    uint64_t word = filch_load_seq_cst(&sleep->word), next;
    unsigned top;
    do {
        top = top_of(word);
        if (top == 0 || (only_if_needed && searchers_of(word) > 0))
            return -1;
        /* relaxed: written before the push that we read. If it is stale, the epoch makes the cas
         * fail. */
        unsigned below = filch_load_relaxed(&sleep->seats[top - 1]->next);
        next = word - top + below - ONE_SLEEPER + ONE_EPOCH;
        if (to == FILCH_ROLE_SEARCHING)
            next += ONE_SEARCHER;
        /* acquire [seat-free], seq_cst [publish-or-sleep] */
    } while (!filch_cas_seq_cst(&sleep->word, &word, next));
    return (int)top - 1;
}

enum filch_bed_state filch_seat_nap(filch_seat *seat, const struct timespec *timeout)
{
    uint32_t bed = FILCH_BED_EMPTY;
    /* acq_rel [called] */
    if (filch_cas_acq_rel(&seat->bed, &bed, FILCH_BED_ASLEEP)) {
        do {
            filch_futex_wait(&seat->bed, FILCH_BED_ASLEEP, timeout);
            /* acq_rel [called]: get up, unless a call came at the last moment. With a timeout, get
             * up after any return of the futex wait. A signal ends it, too, and the caller computes
             * the remaining time. */
            bed = FILCH_BED_ASLEEP;
            if (timeout && filch_cas_acq_rel(&seat->bed, &bed, FILCH_BED_EMPTY))
                return FILCH_BED_EMPTY;
            /* acquire [called] */
            bed = filch_load_acquire(&seat->bed);
        } while (bed == FILCH_BED_ASLEEP);
    }
    /* relaxed: own variable until the seat is pushed again. */
    filch_store_relaxed(&seat->bed, FILCH_BED_EMPTY);
    return bed;
}

bool filch_seat_go_away(filch_seat *seat)
{
    uint32_t bed = FILCH_BED_EMPTY;
    /* acq_rel [called] */
    return filch_cas_acq_rel(&seat->bed, &bed, FILCH_BED_AWAY);
}

enum filch_bed_state filch_seat_come_back(filch_seat *seat)
{
    uint32_t bed = FILCH_BED_AWAY;
    /* acquire [called] */
    if (filch_cas_acq_rel(&seat->bed, &bed, FILCH_BED_EMPTY))
        return FILCH_BED_EMPTY;
    /* relaxed: own variable until the seat is pushed again. */
    filch_store_relaxed(&seat->bed, FILCH_BED_EMPTY);
    return bed;
}

static void ring(int bell)
{
    const uint64_t one = 1;
    while (write(bell, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void filch_seat_call(filch_seat *seat, enum filch_bed_state call)
{
    /* Read before the call: after it, the thread may be gone. */
    int bell = seat->bell;

    /* release [called] */
    switch (filch_exchange_acq_rel(&seat->bed, (uint32_t)call)) {
    case FILCH_BED_ASLEEP:
        filch_futex_wake(&seat->bed, 1);
        break;
    case FILCH_BED_AWAY:
        ring(bell);
        break;
    }
}
