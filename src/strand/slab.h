/* SPDX-License-Identifier: MIT */
/*
 * Memory for strands: slabs of many, each reserved with one call to the kernel.
 *
 *     |<------------- span ------------->|<------------- span ------------->|
 *     | guard | stack  | header   slots  | guard | stack  | header   slots  | ...
 *                   ^                                  ^
 *                   a multiple of FILCH_REGION_BYTES   and the next; a span is one, or some
 *
 * One guard lies between neighbours: below the stack of one, behind the slots of the other. Behind the slots of a slab's last
 * strand there is none, and none is needed: a fork compares before it uses a slot, while a call does not look at the stack.
 *
 * The first slab has one strand, each further one twice as many as the last, up to FILCH_SLAB_MAX: a pool for one short task
 * stays cheap, and the slabs of a large one can be given back in pieces.
 *
 * A strand is new (its pages zero and untouched), busy, or free. Slabs with free strands are in one of two lists: `partly`, when
 * others of theirs are busy, and `idle`, when none is. Strands are taken from the first list first, so that slabs become idle. The pages
 * of idle ones are given back to the system when there are many, and their strands are new again; so are their guards, which cost page tables, and
 * the slab is bare until they are needed. The address space is kept as long as the pool lives: README.md.
 */
#ifndef FILCH_STRAND_SLAB_H
#define FILCH_STRAND_SLAB_H

#include "base/lock.h"

#include <filch/atomic.h>

#include <stdbool.h>
#include <stddef.h>

#define FILCH_SLAB_MAX 64u

typedef struct filch_slab filch_slab;
typedef struct filch_slab_list {
    filch_slab *first, *last;
} filch_slab_list;

struct filch_slab {
    filch_slab *next_all;
    char *low;                /* of the guard of the first */
    unsigned count, first_id; /* its strands, and the number of the first */

    /* Under the lock. */
    bool
        is_bare; /* it has no guards, or perhaps not all: who makes or removes them says so before, and does it without the lock */
    unsigned used;               /* are not new, from the first on */
    unsigned busy;               /* of these: are with somebody */
    struct filch_strand *free;   /* and these are not */
    filch_slab *previous, *next; /* in `partly` or `idle`, if any is free */
    filch_slab *next_new;        /* in `has_new` or `bare` */
};

typedef struct filch_slabs {
    size_t stack_bytes, slot_bytes,
        span_bytes;  /* constant; slot_bytes from the aligned address on */
    filch_slab *all; /* only grows, at its head: a signal handler reads it */
    filch_lock lock;
    unsigned strand_count, next_size;
    bool keeps_pages;           /* they cannot be given back */
    filch_slab *has_new, *bare; /* of the first list, one at most has new strands and others */
    filch_slab_list partly, idle;
    filch_atomic_u32 idle_count; /* slabs of full size in `idle`; written under the lock */
} filch_slabs;

/* stack_bytes is rounded up to whole pages. */
void filch_slabs_init(filch_slabs *slabs, size_t stack_bytes);

/* No strand is busy any more, or this is the child of a fork(), where none that is may go on. Then all are new. */
void filch_slabs_fini(filch_slabs *slabs);
void filch_slabs_rebuild(filch_slabs *slabs);

/* Take up to `max` free strands. Returns how many there were. */
unsigned filch_slabs_take(filch_slabs *slabs, struct filch_strand **strands, unsigned max);

/* Take a new one: zero, but for what filch_slabs itself needs. NULL when there is no memory. */
struct filch_strand *filch_slabs_take_new(filch_slabs *slabs);

/* Is there one that is free, and not new? */
bool filch_slabs_have_free(filch_slabs *slabs);

/* Any that were taken. */
void filch_slabs_give(filch_slabs *slabs, struct filch_strand *const *strands, unsigned count);

/* If far more strands are free than a pool needs all the time, give pages of some back to the system: of one slab, which takes a tenth
 * of a millisecond. Returns whether there may be more. `fini`, or NULL, is called for each strand before its memory is gone. */
bool filch_slabs_trim(filch_slabs *slabs, void (*fini)(struct filch_strand *strand, void *context));

/* All strands that are not new. Nobody may take or give one meanwhile. */
void filch_slabs_each(filch_slabs *slabs, void (*visit)(struct filch_strand *strand, void *context),
                      void *context);

/* The number of a strand, without a look at it: it may just be being made. Under the lock. */
unsigned filch_slabs_number(const filch_slabs *slabs, const struct filch_strand *strand);

/* How many there are. */
unsigned filch_slabs_count(filch_slabs *slabs);

/* The strand whose guard holds `address`, or NULL. For a signal handler: takes no lock. */
struct filch_strand *filch_slabs_find_guard(const filch_slabs *slabs, const void *address);

#endif
