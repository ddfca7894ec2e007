/* SPDX-License-Identifier: MIT */
/*
 * Notes of checked programs: objects on the stack of a strand that other threads will still use.
 * If the function that holds such an object has returned, the library stops the program. Otherwise
 * the other threads would write to memory that has another use by now.
 *
 * A note says where the object was passed to the library, and how to see whether it is still in
 * use. The notes are checked when a FILCH_TASK of a checked program returns, and at the end of the
 * strand's task. An object that was overwritten by then is not found. All functions are for the
 * strand itself.
 */
#ifndef FILCH_STRAND_NOTES_H
#define FILCH_STRAND_NOTES_H

#include "strand/strand.h"

typedef struct filch_note {
    struct filch_note *next;
    const void *object;
    bool (*is_live)(const void *object);
    const char *text; /* what is wrong if the object is in use */
    const char *file;
    int line;
} filch_note;

typedef struct filch_notes {
    filch_note *first;
    size_t count, limit;              /* at the limit, notes of objects not in use are dropped */
    void (*then)(filch_strand *self); /* the strand's at_end before */
} filch_notes;

/*
 * For is_live: read 4 or 8 bytes of an object, unseen by sanitizers and valgrind. The object may be
 * gone, and its memory may be free, or used by another function. Or another thread may be
 * completing the object: then the old and the new value are both right.
 */
uint32_t filch_notes_read32(const void *word);
uint64_t filch_notes_read64(const void *word);

/* Let the end of the task check the notes, and the forks without macros. */
void filch_notes_begin(filch_strand *strand);

/* Does nothing unless the object lies on the strand's own stack. */
void filch_notes_add(filch_strand *strand, const filch_note *note);
void filch_notes_remove(filch_strand *strand, const void *object);

/* The note of the object if it is in use; or NULL. */
const filch_note *filch_notes_find(const filch_strand *strand, const void *object);

/*
 * The objects are in the frames of functions that have returned, where the next calls would write.
 * So move the stack pointer below them. Use it in short functions only: registers that the compiler
 * saves before that are written there, too. The gap is much smaller than the smallest stack.
 */
#define FILCH_NOTES_KEEP_STACK()                                                                   \
    do {                                                                                           \
        void *filch_gap = __builtin_alloca(2048);                                                  \
        __asm__ volatile("" ::"r"(filch_gap) : "memory");                                          \
    } while (0)

/* After the call, which must not become a jump (a tail call). */
#define FILCH_NOTES_KEPT() __asm__ volatile("" ::: "memory")

/* The stack below this address is free: stop the program if an object there is in use. */
void filch_notes_check(filch_strand *strand, const void *free_below);

#endif
