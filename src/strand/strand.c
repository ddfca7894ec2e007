/* SPDX-License-Identifier: MIT */
#include "strand/strand.h"

#include "base/fault.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(filch_slot) == FILCH_CACHE_LINE, "a slot is one cache line");
_Static_assert(offsetof(filch_strand, split) == 0, "the slots are found from the split stack");
_Static_assert(sizeof(filch_strand) <= FILCH_SPLIT_HEADER_BYTES, "the header has room");
_Static_assert(FILCH_HEADER_OFFSET % FILCH_CACHE_LINE == 0, "the header begins a cache line");

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* `bytes` counts from the aligned address on. */
static void init_slots(filch_strand *strand, size_t bytes)
{
    bytes -= FILCH_HEADER_OFFSET + FILCH_SPLIT_HEADER_BYTES;
    /* Two slots fewer: a fork may write to these when all others are in use. */
    filch_split_init(&strand->split, bytes / sizeof(filch_slot) - 2);
}

static void run_for_ever(void *argument)
{
    filch_strand *self = argument;

    filch_context_arrive(&self->context);
    for (;;) {
        self->body(self);
        filch_strand_leave(self);
    }
}

void filch_strand_enter(filch_strand *strand, filch_context *from)
{
    strand->entered_from = from;
    filch_context_switch(from, &strand->context);
}

void filch_strand_leave(filch_strand *strand)
{
    filch_context_switch(&strand->context, strand->entered_from);
}

static void *create_deque(const filch_strands *list)
{
    size_t bytes = round_up(list->kind->bytes, FILCH_CACHE_LINE);
    void *deque = filch_fault(FILCH_FAULT_MALLOC) ? NULL : aligned_alloc(FILCH_CACHE_LINE, bytes);

    if (deque && list->kind->init(deque, list->capacity, list->block) == 0)
        return deque;
    free(deque);
    return NULL;
}

static void destroy_deque(const filch_strands *list, void *deque)
{
    list->kind->fini(deque);
    free(deque);
}

static filch_strand *create(filch_strands *list)
{
    size_t stack_bytes = list->slabs.stack_bytes;
    void *deque = list->kind && !list->shared ? create_deque(list) : list->shared;
    if (list->kind && !deque)
        return NULL;
    filch_strand *strand = filch_slabs_take_new(&list->slabs);
    if (!strand)
        goto destroy_deque;
    strand->stack_bytes = stack_bytes;
    strand->pool = list->pool;
    /* Without a deque, leave the zero bytes of the page: a thief with an old pointer to this strand
     * must see no change. */
    if (deque) {
        strand->kind = list->kind;
        strand->deque = deque;
    }
    init_slots(strand, list->slabs.slot_bytes);
    filch_context_init(&strand->context, (char *)strand - FILCH_HEADER_OFFSET - stack_bytes, strand,
                       run_for_ever, strand);
    return strand;

destroy_deque:
    if (deque && !list->shared)
        destroy_deque(list, deque);
    return NULL;
}

void filch_strands_init(filch_strands *list, filch_pool *pool, size_t stack_bytes)
{
    memset(list, 0, sizeof *list);
    list->pool = pool;
    filch_slabs_init(&list->slabs, stack_bytes);
}

int filch_strands_use(filch_strands *list, const filch_kind *kind, size_t capacity, size_t block)
{
    list->kind = kind;
    list->capacity = capacity;
    list->block = block;
    if (!kind)
        return 0;
    /* Make one deque now: to learn whether that is possible, or because all strands share it. */
    void *deque = filch_fault(FILCH_FAULT_MALLOC)
                      ? NULL
                      : aligned_alloc(FILCH_CACHE_LINE, round_up(kind->bytes, FILCH_CACHE_LINE));
    int err = deque ? kind->init(deque, capacity, block) : -ENOMEM;
    if (!err && kind->is_shared)
        list->shared = deque;
    else if (!err)
        destroy_deque(list, deque);
    else
        free(deque);
    return err;
}

static void fini_context(filch_strand *strand, void *context)
{
    (void)context;
    filch_context_fini(&strand->context);
}

static void fini_deque(filch_strand *strand, void *context)
{
    (void)context;
    if (strand->deque)
        strand->kind->fini(strand->deque);
    free(strand->deque);
}

static void free_deque(filch_strand *strand, void *context)
{
    (void)context;
    free(strand->deque);
}

void filch_strands_fini(filch_strands *list)
{
    if (list->shared)
        destroy_deque(list, list->shared);
    else if (list->kind)
        filch_slabs_each(&list->slabs, fini_deque, NULL);
    if (FILCH_CONTEXT_HAS_FINI)
        filch_slabs_each(&list->slabs, fini_context, NULL);
    filch_slabs_fini(&list->slabs);
}

void filch_strands_rebuild(filch_strands *list)
{
    /* Give up the deques with their entries and memory: a thread of the parent may have been about
     * to change them. If there is no memory for a new deque, use the split stack: as at creation,
     * one strand must exist. */
    if (list->shared && list->kind->init(list->shared, list->capacity, list->block) != 0) {
        list->kind = NULL;
        list->shared = NULL;
    } else if (list->kind && !list->shared) {
        filch_slabs_each(&list->slabs, free_deque, NULL);
    }
    filch_slabs_rebuild(&list->slabs);
    filch_strand *first = filch_strand_take(list);
    if (!first) {
        list->kind = NULL;
        first = filch_strand_take(list);
    }
    filch_strand_give(list, first);
}

filch_strand *filch_strand_take(filch_strands *list)
{
    filch_strand *strand;
    return filch_slabs_take(&list->slabs, &strand, 1) ? strand : create(list);
}

void filch_strand_give(filch_strands *list, filch_strand *strand)
{
    filch_slabs_give(&list->slabs, &strand, 1);
}

bool filch_strands_have_free(filch_strands *list)
{
    return filch_slabs_have_free(&list->slabs);
}

/* Fill and empty the magazine by halves, so that alternating takes and gives do not reach the
 * slabs. */
filch_strand *filch_magazine_take(filch_magazine *magazine, filch_strands *list)
{
    if (magazine->count == 0)
        magazine->count = filch_slabs_take(&list->slabs, magazine->strands, FILCH_MAGAZINE_MAX / 2);
    return magazine->count > 0 ? magazine->strands[--magazine->count] : create(list);
}

void filch_magazine_give(filch_magazine *magazine, filch_strands *list, filch_strand *strand)
{
    if (magazine->count == FILCH_MAGAZINE_MAX) {
        const unsigned half = FILCH_MAGAZINE_MAX / 2;
        filch_slabs_give(&list->slabs, magazine->strands, half);
        memmove(magazine->strands, magazine->strands + half, half * sizeof magazine->strands[0]);
        magazine->count = half;
    }
    magazine->strands[magazine->count++] = strand;
}

void filch_magazine_empty(filch_magazine *magazine, filch_strands *list)
{
    if (magazine->count > 0)
        filch_slabs_give(&list->slabs, magazine->strands, magazine->count);
    magazine->count = 0;
}

bool filch_strands_trim(filch_strands *list)
{
    /* Deques of other kinds are separate memory, which thieves may still read. */
    return !list->kind &&
           filch_slabs_trim(&list->slabs, FILCH_CONTEXT_HAS_FINI ? fini_context : NULL);
}

/* At most this many entries without a task are dropped in one steal. */
#define STALE_MAX 64

filch_steal_result filch_strand_steal_entry(filch_strand *victim, filch_slot **task)
{
    const filch_kind *kind = victim->kind;

    for (int i = 0; i < STALE_MAX; i++) {
        void *entry;
        filch_steal_result result = kind->steal(victim->deque, &entry);
        if (result != FILCH_STEAL_WON)
            return result;
        *task = entry;
        if (!kind->is_claimed || filch_task_claim(*task))
            return FILCH_STEAL_WON;
    }
    return FILCH_STEAL_LOST;
}

bool filch_strand_put_back(filch_slot *task)
{
    filch_strand *forker = filch_strand_of(task);

    if (!filch_task_offer_again(task))
        return false;
    /* If the push fails, the task's join finds it. */
    (void)forker->kind->push(forker->deque, task);
    /* A worker that goes to sleep asks the task's strand before its last look. So either that
     * worker sees the task; or the caller, which looks for sleepers next, sees that worker. */
    filch_strand_arm(forker);
    return true;
}

filch_strand *filch_strand_find_guard(filch_strands *list, const void *address)
{
    return filch_slabs_find_guard(&list->slabs, address);
}

filch_strand *filch_strand_create_serial(void)
{
    char *aligned = filch_map_aligned(0, FILCH_REGION_BYTES, FILCH_REGION_BYTES);
    if (!aligned)
        return NULL;
    filch_strand *strand = (filch_strand *)(void *)(aligned + FILCH_HEADER_OFFSET);
    init_slots(strand, FILCH_REGION_BYTES);
    filch_split_answer(&strand->split);
    return strand;
}

void filch_strand_destroy_serial(filch_strand *strand)
{
    filch_unmap_aligned((char *)strand - FILCH_HEADER_OFFSET, 0, FILCH_REGION_BYTES);
}
