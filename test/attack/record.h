/* SPDX-License-Identifier: MIT */
/*
 * The record of a program: the operations that ran, and the tasks and threads that ran them.
 *
 *     run 1 {                    an actor: a task or a thread
 *         scope(tasks 2) {       an operation, with its arguments
 *             task 1 {           an actor of the operation
 *                 yield();
 *
 * It is in the memory that the supervisor shares with the program. So it outlives a program that
 * ends by a signal, and shows what a program that hangs waits for.
 */
#ifndef FILCH_TEST_ATTACK_RECORD_H
#define FILCH_TEST_ATTACK_RECORD_H

#include <filch/filch.h>

#include <stdio.h>

#define ENTRIES_MAX 4096u
#define NOTES_MAX 6u

enum entry_state { ENTRY_CHOSEN, ENTRY_BEGUN, ENTRY_ENDED };

typedef struct record_entry {
    const char *name;
    uint32_t above; /* 0: the program */
    uint32_t id;    /* of an operation, for `--ops`; 0: an actor */
    unsigned number;
    filch_atomic_u32 state, note_count;
    struct note {
        const char *name;
        uint64_t value;
    } notes[NOTES_MAX];
} record_entry;

typedef struct record {
    filch_atomic_u32 count;            /* may be larger than what has room */
    record_entry entries[ENTRIES_MAX]; /* an entry comes after the one above it; 0 is not used */
} record;

/* ---- the program writes ---------------------------------------------------------------------- */

/* Returns the index of a new entry. */
uint32_t record_add(uint32_t above, const char *name, unsigned number, uint32_t id);
void record_set(uint32_t index, enum entry_state state);

#define NO_VALUE UINT64_MAX
void record_note(uint32_t index, const char *name, uint64_t value);

typedef struct actor actor;

/* Give the actor an entry of its own. If the actor does more than act(), mark where
 * it begins, and where it ends without act(). */
void name_actor(actor *a, const char *name, unsigned number);
void actor_begins(actor *a);
void actor_ends(actor *a);

/* An argument of the operation or of the named actor. */
void note(const actor *a, const char *name, uint64_t value);
void note_if(const actor *a, bool is_so, const char *name);

/* ---- the supervisor reads -------------------------------------------------------------------- */

/* Print the entries as a program in pseudo-C; or only those that have not ended. Returns the number
 * of lines. */
unsigned record_print(const record *r, bool is_unended_only, unsigned lines_max, FILE *out);

/* Copy the ids of the operations that ran, or only of those that have not ended, in the order in
 * which they began. */
unsigned record_operations(const record *r, bool is_unended_only, uint32_t *ids,
                           unsigned count_max);

#endif
