/* SPDX-License-Identifier: MIT */
/*
 * Where a test makes the environment fail: no memory, no address space, no thread.
 *
 *     if (filch_fault(FILCH_FAULT_THREAD))
 *         return -EAGAIN;
 *
 * A library built with FILCH_FAULTS asks filch_fault() before each such operation. A test
 * defines that function and decides; without one the library's own, weak, says no. In
 * every other build the question is a constant and costs nothing.
 */
#ifndef FILCH_BASE_FAULT_H
#define FILCH_BASE_FAULT_H

#include <stdbool.h>

enum filch_fault_kind {
    FILCH_FAULT_MALLOC,
    FILCH_FAULT_MAP,
    FILCH_FAULT_THREAD,
};

#ifdef FILCH_FAULTS

/* Called by any thread. */
bool filch_fault(enum filch_fault_kind kind);

#else

static inline bool filch_fault(enum filch_fault_kind kind)
{
    (void)kind;
    return false;
}

#endif
#endif
