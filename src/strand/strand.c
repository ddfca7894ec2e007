/* SPDX-License-Identifier: MIT */
#include "strand/strand.h"

#include "base/fault.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(low, high) ((void)(low), (void)(high))
#endif

_Static_assert(sizeof(filch_slot) == FILCH_CACHE_LINE, "a slot is one cache line");
_Static_assert(offsetof(filch_strand, split) == 0, "the slots are found from the split stack");
_Static_assert(sizeof(filch_strand) <= FILCH_SPLIT_HEADER_BYTES, "the header has room");

/* A function with a large frame must not step over the guard: compilers probe the stack every page, on aarch64
 * every 64 KiB. */
#define GUARD_BYTES ((size_t)64 << 10)

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void init_slots(filch_strand *strand)
{
    size_t page = filch_page_bytes();
    /* Less the guard at the end, and the two slots that fork may write to when all are taken. */
    size_t bytes = FILCH_REGION_BYTES - page - FILCH_SPLIT_HEADER_BYTES;

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
    void *deque =
        filch_fault(FILCH_FAULT_MALLOC) ? NULL : aligned_alloc(FILCH_CACHE_LINE, bytes);

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

static filch_strand *create(const filch_strands *list)
{
    size_t page = filch_page_bytes(), stack_bytes = list->stack_bytes;
    void *deque = list->kind && !list->shared ? create_deque(list) : list->shared;
    if (list->kind && !deque)
        return NULL;
    filch_strand *strand = filch_map_aligned(GUARD_BYTES + stack_bytes, FILCH_REGION_BYTES);
    if (!strand)
        goto destroy_deque;
    char *low = (char *)strand - stack_bytes;
    if (filch_guard_install(low - GUARD_BYTES, GUARD_BYTES) ||
        filch_guard_install((char *)strand + FILCH_REGION_BYTES - page, page))
        goto unmap;
    strand->stack_bytes = stack_bytes;
    strand->kind = list->kind;
    strand->deque = deque;
    init_slots(strand);
    filch_context_init(&strand->context, low, strand, run_for_ever, strand);
    VALGRIND_STACK_REGISTER(low, strand);
    return strand;

unmap:
    filch_unmap_aligned(strand, GUARD_BYTES + stack_bytes, FILCH_REGION_BYTES);
destroy_deque:
    if (deque && !list->shared)
        destroy_deque(list, deque);
    return NULL;
}

void filch_strands_init(filch_strands *list, size_t stack_bytes)
{
    memset(list, 0, sizeof *list);
    filch_lock_init(&list->lock);
    list->stack_bytes = round_up(stack_bytes, filch_page_bytes());
}

int filch_strands_use(filch_strands *list, const filch_kind *kind, size_t capacity, size_t block)
{
    list->kind = kind;
    list->capacity = capacity;
    list->block = block;
    if (!kind)
        return 0;
    /* One is made now, to know that it can be; or because it is the only one. */
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

void filch_strands_fini(filch_strands *list)
{
    if (list->shared)
        destroy_deque(list, list->shared);
    for (filch_strand *s = list->all, *next; s; s = next) {
        next = s->next_all;
        if (s->deque && !list->shared)
            destroy_deque(list, s->deque);
        filch_context_fini(&s->context);
        filch_unmap_aligned(s, GUARD_BYTES + s->stack_bytes, FILCH_REGION_BYTES);
    }
}

void filch_strands_rebuild(filch_strands *list)
{
    filch_lock_init(&list->lock);
    list->free = NULL;
    /* What the deques had is lost, memory included: somebody may have been about to change it. Where there is none for another
     * one, the split stack will do. */
    if (list->shared && list->kind->init(list->shared, list->capacity, list->block) != 0) {
        list->kind = NULL;
        list->shared = NULL;
    }
    for (filch_strand *s = list->all; s; s = s->next_all) {
        init_slots(s);
        bool is_lost = s->deque && !list->shared &&
                       (!list->kind || list->kind->init(s->deque, list->capacity, list->block) != 0);
        if (is_lost) {
            s->kind = NULL;
            s->deque = NULL;
        }
        filch_context_init(&s->context, (char *)s - s->stack_bytes, s, run_for_ever, s);
        s->next_free = list->free;
        list->free = s;
    }
}

filch_strand *filch_strand_take(filch_strands *list)
{
    filch_lock_acquire(&list->lock);
    filch_strand *strand = list->free;
    if (strand)
        list->free = strand->next_free;
    filch_lock_release(&list->lock);
    if (strand)
        return strand;

    strand = create(list);
    if (!strand)
        return NULL;
    filch_lock_acquire(&list->lock);
    strand->id = list->count++;
    strand->next_all = list->all;
    list->all = strand;
    filch_lock_release(&list->lock);
    return strand;
}

void filch_strand_give(filch_strands *list, filch_strand *strand)
{
    filch_lock_acquire(&list->lock);
    strand->next_free = list->free;
    list->free = strand;
    filch_lock_release(&list->lock);
}

/* Entries whose tasks are gone are put away at once, some of them. */
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

void filch_strand_put_back(filch_strand *victim, filch_slot *task)
{
    filch_task_offer(task);
    /* Where this fails, its join finds it. */
    (void)victim->kind->push(victim->deque, task);
    /* Who goes to sleep now asks the task's strand before it looks: so it sees the task, or the caller, who looks next, sees the sleeper. */
    filch_strand_arm(filch_strand_of(task));
}

filch_strand *filch_strand_find_guard(filch_strands *list, const void *address)
{
    for (filch_strand *s = list->all; s; s = s->next_all) {
        const char *low = (char *)s - s->stack_bytes;
        if ((const char *)address >= low - GUARD_BYTES && (const char *)address < low)
            return s;
    }
    return NULL;
}

filch_strand *filch_strand_create_serial(void)
{
    filch_strand *strand = filch_map_aligned(0, FILCH_REGION_BYTES);
    if (!strand)
        return NULL;
    init_slots(strand);
    filch_split_answer(&strand->split);
    return strand;
}

void filch_strand_destroy_serial(filch_strand *strand)
{
    filch_unmap_aligned(strand, 0, FILCH_REGION_BYTES);
}
