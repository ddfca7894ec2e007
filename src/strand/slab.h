/* SPDX-License-Identifier: MIT */
/*
 * Memory for strands: slabs of many strands, each reserved with one call to the kernel.
 *
 *     |<------------- span ------------->|<------------- span ------------->|
 *     | guard | stack  | header   slots  | guard | stack  | header   slots  | ...
 *                   ^                                  ^
 *                   a multiple of FILCH_REGION_BYTES   and the next; a span is one, or some
 *
 * One guard is between neighbours: below the stack of one strand, behind the slots of the other.
 * The slots of a slab's last strand have no guard behind them and need none. Unlike a call, which
 * does not check the stack, a fork checks the end before it uses a slot.
 *
 * The first slab has one strand. Each further slab has twice as many as the last, up to
 * FILCH_SLAB_MAX. So a pool for one short task stays cheap, and a large pool can return its slabs
 * one by one.
 *
 * A strand is
 *   - new: its pages are zero and untouched;
 *   - busy; or
 *   - free.
 * A slab with free strands is in one of two lists: `partly`, if other strands of it are busy, or
 * `idle`, if none is. Strands are taken from `partly` first, so that slabs become idle. If many
 * slabs are idle, the pages of some return to the system, and their strands are new again. The
 * guards of such a slab are removed as well, since they cost page tables. The slab is bare until
 * its strands are needed. The pool keeps the address space until it is destroyed: README.md.
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
    char *low;                /* the guard of its first strand */
    unsigned count, first_id; /* number of strands; id of the first */

    /* Under the lock. */

    /* Some or all guards are missing. Set before guards are removed, cleared after they are
     * installed. The guards themselves change without the lock. */
    bool is_bare;
    unsigned used;               /* strands that are not new, counted from the first */
    unsigned busy;               /* of these, strands that are taken */
    struct filch_strand *free;   /* and those that are not */
    filch_slab *previous, *next; /* in `partly` or `idle`, if a strand is free */
    filch_slab *next_new;        /* in `has_new` or `bare` */
};

typedef struct filch_slabs {
    /* Constant. slot_bytes counts from the aligned address on. */
    size_t stack_bytes, slot_bytes, span_bytes;
    filch_slab *all; /* grows only, at its head: a signal handler reads it */
    filch_lock lock;
    unsigned strand_count, next_size;
    bool keeps_pages;           /* the kernel cannot take them back */
    filch_slab *has_new, *bare; /* in `has_new`, at most one slab has strands that are not new */
    filch_slab_list partly, idle;
    filch_atomic_u32 idle_count; /* slabs of full size in `idle`; written under the lock */
} filch_slabs;

/* `stack_bytes` is rounded up to whole pages. */
void filch_slabs_init(filch_slabs *slabs, size_t stack_bytes);

/* fini: no strand may be busy. rebuild: for the child of a fork(), where no busy strand will
 * continue; all strands become new. */
void filch_slabs_fini(filch_slabs *slabs);
void filch_slabs_rebuild(filch_slabs *slabs);

/* Take up to `max` free strands. Returns their number. */
unsigned filch_slabs_take(filch_slabs *slabs, struct filch_strand **strands, unsigned max);

/* Take a new strand. It is zero, except for the members that filch_slabs itself uses. NULL: no
 * memory. */
struct filch_strand *filch_slabs_take_new(filch_slabs *slabs);

/* Is there a free strand that is not new? */
bool filch_slabs_have_free(filch_slabs *slabs);

/* Return strands that were taken, in any order. */
void filch_slabs_give(filch_slabs *slabs, struct filch_strand *const *strands, unsigned count);

/* If far more strands are free than a pool usually needs, return the pages of one slab to the
 * system. That takes a tenth of a millisecond. Returns whether there may be more to return. `fini`,
 * unless NULL, is called for each strand before its memory is gone. */
bool filch_slabs_trim(filch_slabs *slabs, void (*fini)(struct filch_strand *strand, void *context));

/* Visit all strands that are not new. No thread may take or give a strand meanwhile. */
void filch_slabs_each(filch_slabs *slabs, void (*visit)(struct filch_strand *strand, void *context),
                      void *context);

/* Copy the addresses of the strands of `slab` that are not new. Returns their number. The first has
 * the id slab->first_id. */
unsigned filch_slabs_list(filch_slabs *slabs, const filch_slab *slab,
                          struct filch_strand *strands[FILCH_SLAB_MAX]);

/* The id of a strand, found without reading the strand: another thread may just be making it. Under
 * the lock. */
unsigned filch_slabs_number(const filch_slabs *slabs, const struct filch_strand *strand);

/* The number of strands that are not new. */
unsigned filch_slabs_count(filch_slabs *slabs);

/* The strand whose guard contains `address`, or NULL. For a signal handler: takes no lock. */
struct filch_strand *filch_slabs_find_guard(const filch_slabs *slabs, const void *address);

#endif
