/* SPDX-License-Identifier: MIT */
/*
 * Shortages: memory for stacks, and threads, that a test can make unavailable. For tests that are
 * linked with the library that calls filch_fault (FAULTS).
 */
#ifndef FILCH_TEST_SHORTAGE_SUPPORT_H
#define FILCH_TEST_SHORTAGE_SUPPORT_H

#include "watchdog.h"

#include "base/fault.h"

#include <filch/scope.h>

/* 1: mapping memory, or starting a thread, fails. */
static filch_atomic_u32 has_no_memory, has_no_threads;

/* How many more starts of threads fail. */
static filch_atomic_u32 failures_left;

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: switches, and a count. */
    if (kind == FILCH_FAULT_THREAD && filch_load_relaxed(&failures_left) > 0) {
        filch_fetch_add_relaxed(&failures_left, -1u);
        return true;
    }
    return (kind == FILCH_FAULT_MAP && filch_load_relaxed(&has_no_memory)) ||
           (kind == FILCH_FAULT_THREAD && filch_load_relaxed(&has_no_threads));
}

static void set(filch_atomic_u32 *fault, uint32_t value)
{
    /* relaxed: a switch. */
    filch_store_relaxed(fault, value);
}

static bool has_error(filch_scope *scope)
{
    filch_lock_acquire((filch_lock *)&scope->lock);
    bool has_one = scope->error;
    filch_lock_release((filch_lock *)&scope->lock);
    return has_one;
}

#endif
