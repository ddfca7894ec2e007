/* SPDX-License-Identifier: MIT */
#include "strand/slab.h"

#include "base/memory.h"
#include "base/valgrind.h"
#include "strand/strand.h"

#include <string.h>

/* A function with a large frame must not step over the guard. Compilers that probe the stack touch
 * every page, on aarch64 one byte per 64 KiB. On x86-64 much code is compiled without probes, and
 * any code may run on a strand. */
#define GUARD_BYTES ((size_t)64 << 10)

/* The least room for slots. A strand with a small stack fits in one region. */
#define SLOT_BYTES_MIN (FILCH_REGION_BYTES / 4)

/* This many idle slabs of full size keep their pages: 1024 strands, 4 MiB if they are small. */
#define IDLE_MAX 16u

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* The distance from the start of a strand's guard to its aligned address. */
static size_t bytes_below(const filch_slabs *slabs)
{
    return GUARD_BYTES + slabs->stack_bytes;
}

static filch_strand *strand_at(const filch_slabs *slabs, const filch_slab *slab, unsigned i)
{
    return (filch_strand *)(void *)(slab->low + i * slabs->span_bytes + bytes_below(slabs) +
                                    FILCH_HEADER_OFFSET);
}

void filch_slabs_init(filch_slabs *slabs, size_t stack_bytes)
{
    memset(slabs, 0, sizeof *slabs);
    filch_lock_init(&slabs->lock);
    slabs->next_size = 1;
    slabs->stack_bytes = round_up(stack_bytes, filch_page_bytes());
    slabs->span_bytes = round_up(bytes_below(slabs) + SLOT_BYTES_MIN, FILCH_REGION_BYTES);
    slabs->slot_bytes = slabs->span_bytes - bytes_below(slabs);
    if (slabs->slot_bytes > FILCH_REGION_BYTES)
        slabs->slot_bytes = FILCH_REGION_BYTES;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void push(filch_slab_list *list, filch_slab *slab)
{
    slab->previous = NULL;
    slab->next = list->first;
    *(list->first ? &list->first->previous : &list->last) = slab;
    list->first = slab;
}

static void withdraw(filch_slab_list *list, filch_slab *slab)
{
    *(slab->previous ? &slab->previous->next : &list->first) = slab->next;
    *(slab->next ? &slab->next->previous : &list->last) = slab->previous;
}

/* Insert the slab behind the first, which stays first until all its strands are used. */
static void enlist_new(filch_slabs *slabs, filch_slab *slab)
{
    filch_slab **at = slabs->has_new ? &slabs->has_new->next_new : &slabs->has_new;
    slab->next_new = *at;
    *at = slab;
}

static void push_bare(filch_slabs *slabs, filch_slab *slab)
{
    slab->next_new = slabs->bare;
    slabs->bare = slab;
}

static void push_idle(filch_slabs *slabs, filch_slab *slab)
{
    push(&slabs->idle, slab);
    /* relaxed: written under the lock; elsewhere a hint. */
    if (slab->count == FILCH_SLAB_MAX)
        filch_store_relaxed(&slabs->idle_count, filch_load_relaxed(&slabs->idle_count) + 1);
}

static void withdraw_idle(filch_slabs *slabs, filch_slab *slab)
{
    withdraw(&slabs->idle, slab);
    /* relaxed: as above. */
    if (slab->count == FILCH_SLAB_MAX)
        filch_store_relaxed(&slabs->idle_count, filch_load_relaxed(&slabs->idle_count) - 1);
}

/* ---- create and destroy ---------------------------------------------------------------------- */

static void unmap(const filch_slabs *slabs, char *low, unsigned count)
{
    size_t below = bytes_below(slabs);
    filch_unmap_aligned(low + below, below, count * slabs->span_bytes - below);
}

static int install_guards(const filch_slabs *slabs, const filch_slab *slab)
{
    return filch_guard_install(slab->low, GUARD_BYTES, slabs->span_bytes, slab->count);
}

static filch_slab *create(const filch_slabs *slabs, unsigned count)
{
    size_t span = slabs->span_bytes, below = bytes_below(slabs), bytes;
    filch_slab *slab = filch_calloc(1, sizeof *slab);

    if (!slab)
        return NULL;
    if (__builtin_mul_overflow(count, span, &bytes))
        goto free_slab;
    char *aligned = filch_map_aligned(below, bytes - below, FILCH_REGION_BYTES);
    if (!aligned)
        goto free_slab;
    slab->low = aligned - below;
    slab->count = count;
    if (install_guards(slabs, slab))
        goto unmap;
    for (unsigned i = 0; i < count; i++)
        filch_valgrind_add_stack(slab->low + i * span + GUARD_BYTES, strand_at(slabs, slab, i));
    return slab;

unmap:
    unmap(slabs, slab->low, count);
free_slab:
    free(slab);
    return NULL;
}

/* Make another slab of `count` strands, or of fewer if there is no address space for so many. */
static bool grow(filch_slabs *slabs, unsigned count)
{
    filch_slab *slab;

    while (!(slab = create(slabs, count)) && count > 1)
        count /= 2;
    if (!slab)
        return false;
    filch_lock_acquire(&slabs->lock);
    slab->first_id = slabs->strand_count;
    slabs->strand_count += count;
    slabs->next_size = count < FILCH_SLAB_MAX ? 2 * count : count;
    slab->next_all = slabs->all;
    slabs->all = slab;
    enlist_new(slabs, slab);
    filch_lock_release(&slabs->lock);
    return true;
}

static bool dress(filch_slabs *slabs, filch_slab *slab)
{
    bool is_dressed = install_guards(slabs, slab) == 0;

    filch_lock_acquire(&slabs->lock);
    slab->is_bare = !is_dressed;
    if (is_dressed)
        enlist_new(slabs, slab);
    else
        push_bare(slabs, slab);
    filch_lock_release(&slabs->lock);
    return is_dressed;
}

void filch_slabs_fini(filch_slabs *slabs)
{
    for (filch_slab *slab = slabs->all, *next; slab; slab = next) {
        next = slab->next_all;
        unmap(slabs, slab->low, slab->count);
        free(slab);
    }
}

void filch_slabs_each(filch_slabs *slabs, void (*visit)(filch_strand *strand, void *context),
                      void *context)
{
    for (filch_slab *slab = slabs->all; slab; slab = slab->next_all)
        for (unsigned i = 0; i < slab->used; i++)
            visit(strand_at(slabs, slab, i), context);
}

unsigned filch_slabs_list(filch_slabs *slabs, const filch_slab *slab,
                          filch_strand *strands[FILCH_SLAB_MAX])
{
    filch_lock_acquire(&slabs->lock);
    unsigned count = slab->used;
    filch_lock_release(&slabs->lock);
    for (unsigned i = 0; i < count; i++)
        strands[i] = strand_at(slabs, slab, i);
    return count;
}

unsigned filch_slabs_number(const filch_slabs *slabs, const filch_strand *strand)
{
    const filch_slab *slab = slabs->all;

    while ((uintptr_t)strand - (uintptr_t)slab->low >= slab->count * slabs->span_bytes)
        slab = slab->next_all;
    return slab->first_id +
           (unsigned)(((uintptr_t)strand - (uintptr_t)slab->low) / slabs->span_bytes);
}

unsigned filch_slabs_count(filch_slabs *slabs)
{
    unsigned count = 0;

    filch_lock_acquire(&slabs->lock);
    for (filch_slab *slab = slabs->all; slab; slab = slab->next_all)
        count += slab->used;
    filch_lock_release(&slabs->lock);
    return count;
}

void filch_slabs_rebuild(filch_slabs *slabs)
{
    filch_lock_init(&slabs->lock);
    slabs->has_new = slabs->bare = NULL;
    slabs->partly = slabs->idle = (filch_slab_list){NULL, NULL};
    /* relaxed: no other thread uses the pool before it is rebuilt. */
    filch_store_relaxed(&slabs->idle_count, 0);
    for (filch_slab *slab = slabs->all; slab; slab = slab->next_all) {
        if (!filch_discard(slab->low, slab->count * slabs->span_bytes))
            for (unsigned i = 0; i < slab->used; i++)
                memset(strand_at(slabs, slab, i), 0, sizeof(filch_strand));
        slab->used = slab->busy = 0;
        slab->free = NULL;
        if (slab->is_bare)
            push_bare(slabs, slab);
        else
            enlist_new(slabs, slab);
    }
}

/* ---- take and give --------------------------------------------------------------------------- */

/* Take up to `max` strands from a slab that has free ones. */
static unsigned take_from(filch_slabs *slabs, filch_slab *slab, filch_strand **strands,
                          unsigned max)
{
    unsigned count = 0;
    bool was_idle = slab->busy == 0;

    while (count < max && slab->free) {
        strands[count++] = slab->free;
        slab->free = slab->free->next_free;
    }
    slab->busy += count;
    if (was_idle) {
        withdraw_idle(slabs, slab);
        if (slab->free)
            push(&slabs->partly, slab);
    } else if (!slab->free) {
        withdraw(&slabs->partly, slab);
    }
    return count;
}

unsigned filch_slabs_take(filch_slabs *slabs, filch_strand **strands, unsigned max)
{
    unsigned count = 0;

    filch_lock_acquire(&slabs->lock);
    filch_slab *slab = slabs->partly.first ? slabs->partly.first : slabs->idle.first;
    if (slab)
        count = take_from(slabs, slab, strands, max);
    filch_lock_release(&slabs->lock);
    return count;
}

filch_strand *filch_slabs_take_new(filch_slabs *slabs)
{
    filch_slab *slab;
    unsigned i;

    filch_lock_acquire(&slabs->lock);
    while (!(slab = slabs->has_new)) {
        /* Release the lock: installing guards takes a microsecond for each strand of the slab. */
        filch_slab *bare = slabs->bare;
        unsigned size = slabs->next_size;
        if (bare)
            slabs->bare = bare->next_new;
        filch_lock_release(&slabs->lock);
        if (!(bare ? dress(slabs, bare) : grow(slabs, size)))
            return NULL;
        filch_lock_acquire(&slabs->lock);
    }
    /* The slab is no longer idle. */
    if (slab->free && slab->busy == 0) {
        withdraw_idle(slabs, slab);
        push(&slabs->partly, slab);
    }
    i = slab->used++;
    slab->busy++;
    if (slab->used == slab->count)
        slabs->has_new = slab->next_new;
    filch_lock_release(&slabs->lock);

    /* The first touch causes a page fault, so do it without the lock. */
    filch_strand *strand = strand_at(slabs, slab, i);
    strand->slab = slab;
    strand->id = slab->first_id + i;
    return strand;
}

bool filch_slabs_have_free(filch_slabs *slabs)
{
    filch_lock_acquire(&slabs->lock);
    bool have_free = slabs->partly.first || slabs->idle.first;
    filch_lock_release(&slabs->lock);
    return have_free;
}

static void give(filch_slabs *slabs, filch_strand *strand)
{
    filch_slab *slab = strand->slab;
    bool was_listed = slab->free != NULL;

    strand->next_free = slab->free;
    slab->free = strand;
    slab->busy--;
    if (slab->busy == 0) {
        if (was_listed)
            withdraw(&slabs->partly, slab);
        push_idle(slabs, slab);
    } else if (!was_listed) {
        push(&slabs->partly, slab);
    }
}

void filch_slabs_give(filch_slabs *slabs, filch_strand *const *strands, unsigned count)
{
    filch_lock_acquire(&slabs->lock);
    for (unsigned i = 0; i < count; i++)
        give(slabs, strands[i]);
    filch_lock_release(&slabs->lock);
}

/* ---- rare ------------------------------------------------------------------------------------ */

/* Take the slab that has been idle for longest off its list. NULL: not too many slabs are idle.
 * Slabs with new strands are skipped: another thread may take such a strand meanwhile. */
static filch_slab *take_idle(filch_slabs *slabs)
{
    filch_lock_acquire(&slabs->lock);
    filch_slab *slab = slabs->idle.last;
    while (slab && (slab->count < FILCH_SLAB_MAX || slab->used < slab->count))
        slab = slab->previous;
    /* relaxed: written under the lock. */
    if (slab && !slabs->keeps_pages && filch_load_relaxed(&slabs->idle_count) > IDLE_MAX) {
        withdraw_idle(slabs, slab);
        slab->is_bare = true;
    } else {
        slab = NULL;
    }
    filch_lock_release(&slabs->lock);
    return slab;
}

bool filch_slabs_trim(filch_slabs *slabs, void (*fini)(filch_strand *strand, void *context))
{
    /* relaxed: a hint. */
    filch_slab *slab = filch_load_relaxed(&slabs->idle_count) > IDLE_MAX ? take_idle(slabs) : NULL;

    if (!slab)
        return false;
    for (unsigned i = 0; fini && i < slab->count; i++)
        fini(strand_at(slabs, slab, i), NULL);
    filch_guard_remove(slab->low, GUARD_BYTES, slabs->span_bytes, slab->count);
    bool is_discarded = filch_discard(slab->low, slab->count * slabs->span_bytes);
    filch_lock_acquire(&slabs->lock);
    slab->used = 0;
    slab->free = NULL;
    if (is_discarded)
        push_bare(slabs, slab);
    else
        slabs->keeps_pages = true; /* the program has locked its memory; this slab is lost */
    filch_lock_release(&slabs->lock);
    return is_discarded;
}

filch_strand *filch_slabs_find_guard(const filch_slabs *slabs, const void *address)
{
    for (const filch_slab *slab = slabs->all; slab; slab = slab->next_all) {
        size_t offset = (uintptr_t)address - (uintptr_t)slab->low;
        if (offset < slab->count * slabs->span_bytes && offset % slabs->span_bytes < GUARD_BYTES)
            return strand_at(slabs, slab, (unsigned)(offset / slabs->span_bytes));
    }
    return NULL;
}
