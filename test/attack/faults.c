/* SPDX-License-Identifier: MIT */
/*
 * Which calls of the library fail: a rate per family and program, and a number per call.
 *
 * Most programs have few families of faults: otherwise the pool could hardly ever be created, and
 * nothing else would be tried.
 */
#include "faults.h"

#include <stdio.h>

#define FAULT_COUNT (PART_COUNT - FIRST_FAULT)
#define OWN_FDS 65536

static unsigned percents[FAULT_COUNT];
static uint64_t seed;
static filch_atomic_u64 calls, blocks, mapped_bytes;
static filch_atomic_u32 is_on, pauses;
static filch_atomic_u32 own_fds[OWN_FDS];

void faults_start(const settings *s, char *text, size_t bytes)
{
    static const unsigned rates[] = {1, 1, 1, 20, 20, 50, 100};
    actor chooser = {.state = s->seed ^ 0xfa17};
    /* A third of the programs has no faults, some have all. */
    unsigned mode = below(&chooser, 6), at = 0;

    seed = number(&chooser);
    text[0] = '\0';
    for (unsigned i = 0; i < FAULT_COUNT; i++) {
        bool is_chosen = mode >= 2 && (mode == 5 || one_in(&chooser, 4));
        unsigned rate = rates[below(&chooser, COUNT_OF(rates))];
        percents[i] = is_chosen && has_part(s, (part)(FIRST_FAULT + i)) ? rate : 0;
        /* With all families, each is rare. */
        if (mode == 5 && percents[i])
            percents[i] = 1;
        if (percents[i] && at < bytes)
            at += (unsigned)snprintf(text + at, bytes - at, " %s %u %%",
                                     part_names[FIRST_FAULT + i], percents[i]);
    }
    the_world.may_lack_memory = fault_is_on(PART_memory) || fault_is_on(PART_mapping) ||
                                fault_is_on(PART_advice) || fault_is_on(PART_threads);
    /* relaxed: the threads of the pools start later. */
    filch_store_relaxed(&is_on, 1);
}

void faults_stop(void)
{
    /* relaxed: the pools are gone. */
    filch_store_relaxed(&is_on, 0);
}

bool fault_is_on(part fault)
{
    return percents[fault - FIRST_FAULT] > 0;
}

int fault_percent(part fault)
{
    return (int)percents[fault - FIRST_FAULT];
}

int may_fail_io(int may)
{
    static const part io[] = {PART_rings, PART_epoll,   PART_descriptors, PART_transfers,
                              PART_paths, PART_threads, PART_memory,      PART_mapping};
    bool may_fail = false;

    for (unsigned i = 0; i < COUNT_OF(io); i++)
        may_fail |= fault_is_on(io[i]);
    return may_fail ? may | MAY_FAIL : may;
}

void faults_pause(void)
{
    /* relaxed: other threads may see it late. */
    filch_fetch_add_relaxed(&pauses, 1);
}

void faults_resume(void)
{
    /* relaxed: as above. */
    filch_fetch_add_relaxed(&pauses, -1u);
}

static uint64_t next(void)
{
    /* relaxed: a number of its own for each call. */
    actor chooser = {.state = seed + filch_fetch_add_relaxed(&calls, 1)};
    return number(&chooser);
}

static bool strikes(part fault, unsigned most)
{
    unsigned percent = percents[fault - FIRST_FAULT];

    /* relaxed: switched while no calls are made, or other threads may see it late. */
    if (percent == 0 || !filch_load_relaxed(&is_on) || filch_load_relaxed(&pauses))
        return false;
    if (next() % 100 >= (percent < most ? percent : most))
        return false;
    add(&the_board->counts[fault], 1);
    return true;
}

bool fault_strikes(part fault)
{
    return strikes(fault, 100);
}

bool fault_strikes_some(part fault)
{
    return strikes(fault, 50);
}

size_t fault_below(size_t count)
{
    return count ? next() % count : 0;
}

int fault_error(const int *errors, size_t count)
{
    errno = errors[fault_below(count)];
    return -1;
}

/* ---- what is not given back yet -------------------------------------------------------------- */

void fault_count_blocks(long change)
{
    /* relaxed: read after the threads have ended. */
    filch_fetch_add_relaxed(&blocks, (uint64_t)change);
}

void fault_count_mapped(long change)
{
    /* relaxed: as above. */
    filch_fetch_add_relaxed(&mapped_bytes, (uint64_t)change);
}

balance faults_balance(void)
{
    return (balance){get(&blocks), get(&mapped_bytes)};
}

void fault_set_own(int fd, bool is_own)
{
    if (fd >= 0 && fd < OWN_FDS)
        /* relaxed: ordered by what carries the descriptor. */
        filch_store_relaxed(&own_fds[fd], is_own);
}

bool fault_is_own(int fd)
{
    /* relaxed: as above. */
    return fd >= 0 && fd < OWN_FDS && filch_load_relaxed(&own_fds[fd]);
}
