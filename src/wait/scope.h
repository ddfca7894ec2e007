/* SPDX-License-Identifier: MIT */
/*
 * The part of scopes that waits need.
 */
#ifndef FILCH_WAIT_SCOPE_H
#define FILCH_WAIT_SCOPE_H

#include "strand/strand.h"

#include <filch/scope.h>

/* For checked programs. The state is mixed with the scope's address (filch_scope_life). So a copy
 * of a scope, or other memory, does not look like a scope. */
enum filch_scope_life {
    FILCH_SCOPE_OPEN = 0x6f70656e,
    FILCH_SCOPE_CLOSING = 0x636c6f73,
    FILCH_SCOPE_CLOSED = 0x656e6465,
};

static inline uint32_t filch_scope_life(const filch_scope *scope, enum filch_scope_life life)
{
    return (uint32_t)((uintptr_t)scope ^ (uintptr_t)scope >> 32) ^ (uint32_t)life;
}

/* Add the strand, which runs a task of the scope and is about to wait, to the list that
 * filch_scope_cancel goes through. The end of the task removes it. */
void filch_scope_enlist(filch_scope *scope, filch_strand *strand);

#endif
