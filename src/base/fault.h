/* SPDX-License-Identifier: MIT */
/*
 * Lets a test make the environment fail: no memory, no address space, no thread.
 *
 *     if (filch_fault(FILCH_FAULT_THREAD))
 *         return -EAGAIN;
 *
 * A library built with FILCH_FAULTS calls filch_fault() before each such operation. A test defines
 * that function and decides. Without such a definition, the library's own weak one returns false.
 * In every other build the call is a constant and costs nothing.
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

/* Any thread may call it. */
bool filch_fault(enum filch_fault_kind kind);

#else

static inline bool filch_fault(enum filch_fault_kind kind)
{
    (void)kind;
    return false;
}

#endif
#endif
