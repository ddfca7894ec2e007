/* SPDX-License-Identifier: MIT */
#include "strand/notes.h"

#include "base/valgrind.h"
#include "strand/plain.h"

#include <stdio.h>
#include <stdlib.h>

#define LIMIT_FIRST 16

#define UNSEEN __attribute__((noinline, no_sanitize("address", "thread")))

UNSEEN uint32_t filch_notes_read32(const void *word)
{
    filch_valgrind_change_silence(1);
    uint32_t value = *(const volatile uint32_t *)word;
    filch_valgrind_change_silence(-1);
    filch_valgrind_make_defined(&value, sizeof value);
    return value;
}

UNSEEN uint64_t filch_notes_read64(const void *word)
{
    filch_valgrind_change_silence(1);
    uint64_t value = *(const volatile uint64_t *)word;
    filch_valgrind_change_silence(-1);
    filch_valgrind_make_defined(&value, sizeof value);
    return value;
}

static _Noreturn void stop(const char *file, int line, const char *text)
{
    fprintf(stderr, "filch: %s:%d: %s\n", file, line, text);
    abort();
}

void filch_notes_check(filch_strand *strand, const void *free_below)
{
    filch_notes *notes = strand->notes;
    filch_note **at = notes ? &notes->first : NULL;

    while (at && *at) {
        filch_note *note = *at;
        if ((uintptr_t)note->object >= (uintptr_t)free_below) {
            at = &note->next;
            continue;
        }
        if (note->is_live(note->object))
            stop(note->file, note->line, note->text);
        *at = note->next;
        free(note);
        notes->count--;
    }
}

static void check_first(filch_slot *first)
{
    if (filch_plain_is_live(first))
        stop(filch_plain_in(first)->file, (int)filch_plain_in(first)->line,
             "the task forked here by filch_fork is not joined, and its forker has returned");
}

static __attribute__((noinline)) void check_all(filch_strand *self)
{
    filch_notes *notes = self->notes;

    filch_notes_check(self, (const void *)UINTPTR_MAX);
    check_first(filch_split_slots(&self->split));
    void (*then)(filch_strand *) = notes->then;
    free(notes);
    self->notes = NULL;
    if (then)
        then(self);
}

static void end(filch_strand *self)
{
    FILCH_NOTES_KEEP_STACK();
    check_all(self);
    FILCH_NOTES_KEPT();
}

void filch_notes_begin(filch_strand *strand)
{
    filch_notes *notes = strand->notes || !strand->pool ? NULL : calloc(1, sizeof *notes);

    if (!notes)
        return;
    notes->limit = LIMIT_FIRST;
    notes->then = strand->at_end;
    strand->notes = notes;
    strand->at_end = end;
}

static void drop_unused(filch_notes *notes)
{
    for (filch_note **at = &notes->first, *note; (note = *at);) {
        if (note->is_live(note->object)) {
            at = &note->next;
        } else {
            *at = note->next;
            free(note);
            notes->count--;
        }
    }
    notes->limit = 2 * notes->count + LIMIT_FIRST;
}

static bool is_on_stack(const filch_strand *strand, const void *object)
{
    uintptr_t high = (uintptr_t)strand, low = high - FILCH_HEADER_OFFSET - strand->stack_bytes;

    return strand->pool && (uintptr_t)object >= low && (uintptr_t)object < high;
}

void filch_notes_add(filch_strand *strand, const filch_note *note)
{
    filch_note *copy = is_on_stack(strand, note->object) ? malloc(sizeof *copy) : NULL;

    if (copy)
        filch_notes_begin(strand);
    if (!copy || !strand->notes) { /* no memory: not checked */
        free(copy);
        return;
    }
    if (strand->notes->count >= strand->notes->limit)
        drop_unused(strand->notes);
    *copy = *note;
    copy->next = strand->notes->first;
    strand->notes->first = copy;
    strand->notes->count++;
}

void filch_notes_remove(filch_strand *strand, const void *object)
{
    filch_notes *notes = strand->notes;

    for (filch_note **at = notes ? &notes->first : NULL; at && *at;) {
        filch_note *note = *at;
        if (note->object != object) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        free(note);
        notes->count--;
    }
}

const filch_note *filch_notes_find(const filch_strand *strand, const void *object)
{
    const filch_note *note = strand->notes ? strand->notes->first : NULL;

    while (note && (note->object != object || !note->is_live(object)))
        note = note->next;
    return note;
}
