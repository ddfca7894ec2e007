/* SPDX-License-Identifier: MIT */
/*
 * Which calls fail, and when; and tasks that run all the same. For tests that are linked with the
 * library that calls filch_fault (FAULTS). It defines filch_fault, so one file includes it.
 */
#ifndef FILCH_TEST_FAULT_SUPPORT_H
#define FILCH_TEST_FAULT_SUPPORT_H

#define TREE_SPINS 100
#include "pool_support.h"

#include "base/fault.h"

#define NEVER UINT32_MAX

/* Per kind of fault: the number of calls so far, and the first and the last call that fail. */
static filch_atomic_u32 asked[3], first[3], last[3];

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: set before the threads that call this start. */
    uint32_t n = filch_fetch_add_relaxed(&asked[kind], 1);
    return n >= filch_load_relaxed(&first[kind]) && n <= filch_load_relaxed(&last[kind]);
}

static TEST_UNUSED void fail_between(enum filch_fault_kind kind, uint32_t from, uint32_t to)
{
    /* relaxed: as above. */
    filch_store_relaxed(&asked[kind], 0);
    filch_store_relaxed(&first[kind], from);
    filch_store_relaxed(&last[kind], to);
}

static TEST_UNUSED void fail_from(enum filch_fault_kind kind, uint32_t from)
{
    fail_between(kind, from, NEVER);
}

static TEST_UNUSED void fail_never(void)
{
    for (int kind = 0; kind < 3; kind++)
        fail_between((enum filch_fault_kind)kind, NEVER, NEVER);
}

static TEST_UNUSED uint32_t times_asked(enum filch_fault_kind kind)
{
    /* relaxed: read when all threads are done. */
    return filch_load_relaxed(&asked[kind]);
}

#endif
