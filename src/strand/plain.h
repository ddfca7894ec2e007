/* SPDX-License-Identifier: MIT */
/*
 * A task without macros: a function and its argument in a slot. filch_fork writes it.
 *
 * Checked programs (fork/check.c) also write the place of the fork. So a fork that was not joined
 * can be named.
 */
#ifndef FILCH_STRAND_PLAIN_H
#define FILCH_STRAND_PLAIN_H

#include "strand/strand.h"

#include <filch/pool.h>

typedef struct filch_plain {
    filch_fn *fn;
    void *arg;
    /* Only in a checked program. */
    const char *file;
    unsigned line;
    unsigned generation; /* of the pool: in the child of a fork(), slots hold tasks of the parent */
    uint32_t is_begun;
    uint32_t seal; /* if it fits: the members above belong to this task */
} filch_plain;

_Static_assert(sizeof(filch_plain) <= FILCH_SLOT_ROOM, "a plain task lies in its slot");

static inline filch_plain *filch_plain_in(filch_slot *task)
{
    return (filch_plain *)(void *)task->room;
}

static inline uint32_t filch_plain_seal(const filch_plain *plain)
{
    return 0x66696c63u ^ (uint32_t)(uintptr_t)plain->file ^ plain->line << 8;
}

/* The thunks of such tasks. The second one is for checked programs. */
void filch_plain_run(filch_frame *f, filch_slot *task);
void filch_plain_run_checked(filch_frame *f, filch_slot *task);

/* Does the slot hold a task of a checked program that was not begun? */
static inline bool filch_plain_is_live(filch_slot *task)
{
    const filch_plain *plain = filch_plain_in(task);
    /* relaxed: own slot. */
    uintptr_t thunk = filch_load_relaxed(&task->state) & ~FILCH_TASK_MARKS;

    return thunk == (uintptr_t)filch_plain_run_checked && plain->seal == filch_plain_seal(plain) &&
           !plain->is_begun;
}

#endif
