/* SPDX-License-Identifier: MIT */
/*
 * Fork and join on the deques of filch/deque/, for pools that were asked to use one of them.
 *
 * Slots are where they always are, and hold the tasks; the deque has their addresses. Limits are such that every fork and every join
 * comes here. README.md says how it goes on: a deque that is last in first out is pushed to and popped from; of one that is first in first out the forker
 * cannot take what it wants, so its entries are hints, and a task belongs to whoever claims it.
 *
 * Edges
 *   task-done     run_stolen in src/worker/run.c -> join_on
 *                 filch_join_wait, where the deque has told that it was stolen.
 *   asked         filch_split_ask -> filch_serve_deque, and back
 *                 carries the thief's place among the idle workers, or what was pushed.
 */
#include "deque/kind.h"

#include "join/join.h"
#include "worker/worker.h"

#include <errno.h>
#include <filch/deque/abp.h>
#include <filch/deque/bwos_fifo.h>
#include <filch/deque/bwos_lifo.h>
#include <filch/deque/chaselev.h>
#include <filch/deque/global.h>
#include <filch/deque/locked.h>
#include <stdlib.h>
#include <string.h>

/* Entries that may be without a task before they are looked through. */
#define SWEEP_AFTER 1024

/* Each kind has its own copy of these, in which its calls are inlined. What is rare is called last: then the rest needs no
 * frame. */
#define COPIED static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline))

/* The question is taken away before the look who is: one that comes later finds what was pushed before. */
__attribute__((noinline)) void filch_serve_deque(filch_strand *strand)
{
    filch_pool *pool = strand->worker->pool;

    if (strand->kind->show)
        strand->kind->show(strand->deque);
    /* acq_rel [asked] */
    filch_exchange_acq_rel(&strand->split.asked, 0);
    size_t count = strand->kind->size_hint(strand->deque);
    if (filch_sleep_idle_count(&pool->sleep) > count)
        filch_strand_arm(strand);
    if (count == 0)
        return;
    filch_count(strand->worker, FILCH_COUNT_published);
    filch_pool_notify(pool, strand->worker);
}

static bool is_asked(filch_strand *strand)
{
    /* relaxed: a hint; the next fork or join sees it. */
    return __builtin_expect(filch_load_relaxed(&strand->split.asked) != 0, 0);
}

/* ---- fork -------------------------------------------------------------------------------------- */

/* A task that is in no deque: the mark tells its join. */
static void keep(filch_slot *task)
{
    /* relaxed: own slot, and nobody else knows it. */
    filch_store_relaxed(&task->state, filch_load_relaxed(&task->state) | FILCH_TASK_OFFERED);
}

RARE filch_slot *fork_asked(filch_slot *task)
{
    filch_serve_deque(filch_strand_of(task));
    return task;
}

/* The deque must grow, or is full. One of which thieves have taken all may have room again once its owner has found that out. */
RARE filch_slot *fork_full(filch_slot *task, bool is_quiet)
{
    filch_strand *strand = filch_strand_of(task);
    const filch_kind *kind = strand->kind;
    bool is_pushed = kind->push(strand->deque, task) == 0;
    void *entry;

    if (!is_pushed && kind->pop(strand->deque, &entry) && kind->push(strand->deque, entry) != 0)
        keep(entry);
    if (!is_pushed && kind->push(strand->deque, task) != 0)
        keep(task);
    return is_quiet || !is_asked(strand) ? task : fork_asked(task);
}

static bool is_offered(filch_slot *task)
{
    /* relaxed: a hint; who takes the entry must claim the task. */
    return filch_load_relaxed(&task->state) & FILCH_TASK_OFFERED;
}

/* Put away what this strand has pushed, and push its tasks up to the newest again: entries whose tasks are gone, and several for one
 * slot, add up otherwise. In a deque for all, other strands have entries, too. What does not fit any more is found by its join. */
RARE void sweep(filch_strand *strand, filch_slot *newest)
{
    const filch_kind *kind = strand->kind;
    size_t kept = 0;
    void *entry;

    for (size_t i = kind->size_hint(strand->deque); i > 0 && kind->pop(strand->deque, &entry); i--)
        if (filch_strand_of(entry) != strand && is_offered(entry))
            kind->push(strand->deque, entry);
    for (filch_slot *task = filch_split_slots(&strand->split); task <= newest; task++)
        if (is_offered(task))
            kept += kind->push(strand->deque, task) == 0;
    strand->pushed = 0;
    strand->kept = kept;
}

/* An entry stays in the deque when its forker takes the task. */
COPIED void push_claimed(const filch_kind *kind, filch_strand *strand, filch_slot *task)
{
    filch_task_offer(task);
    strand->pushed++;
    if (kind->push(strand->deque, task) == 0 && strand->pushed <= SWEEP_AFTER)
        return;
    /* A sweep looks at all entries and all slots: not before as many pushes have paid for it. */
    if (strand->pushed > 2 * strand->kept + (size_t)(task - filch_split_slots(&strand->split)))
        sweep(strand, task);
}

COPIED filch_slot *fork_on(const filch_kind *kind, filch_slot *task, filch_strand *strand,
                           bool is_quiet)
{
    if (__builtin_expect(task >= strand->split.end, 0))
        return strand->split.end;
    if (kind->is_claimed)
        push_claimed(kind, strand, task);
    else if (__builtin_expect(!kind->push_fast(strand->deque, task), 0))
        return fork_full(task, is_quiet);
    return is_quiet || !is_asked(strand) ? task : fork_asked(task);
}

/* ---- join -------------------------------------------------------------------------------------- */

/* It was not ours at once. */
RARE bool join_rest(filch_slot *task)
{
    filch_strand *strand = filch_strand_of(task);
    const filch_kind *kind = strand->kind;

    if (kind->take_last && kind->take_last(strand->deque))
        return true;
    for (;;) {
        filch_join_wait(strand, task);
        /* acquire [task-done] */
        if (filch_load_acquire(&task->state) == FILCH_TASK_DONE)
            return false;
        /* A guest had it, and has given it back. */
        if (filch_task_claim(task))
            return true;
    }
}

/* `join_asked` serves whoever has asked, and then does the rest: this without that. */
COPIED bool join_on(const filch_kind *kind, filch_slot *task, filch_strand *strand,
                    bool (*join_asked)(filch_slot *))
{
    if (__builtin_expect(task >= strand->split.end, 0))
        return true;
    if (join_asked && is_asked(strand))
        return join_asked(task);
    if (kind->is_claimed) {
        /* acquire [task-done] */
        if (filch_load_acquire(&task->state) == FILCH_TASK_DONE)
            return false;
        return filch_task_claim(task) ? true : join_rest(task);
    }
    /* relaxed: own slot. A thief that has it never makes it this. */
    uintptr_t state = filch_load_relaxed(&task->state);
    if (__builtin_expect((state & FILCH_TASK_OFFERED) != 0, 0)) {
        /* relaxed: own slot, in no deque. */
        filch_store_relaxed(&task->state, state & ~FILCH_TASK_OFFERED);
        return true;
    }
    /* The newest entry is the newest task, and thieves take the oldest: either this one is left, or none is. */
    return __builtin_expect(kind->take(strand->deque, task), 1) ? true : join_rest(task);
}

/* ---- kinds ------------------------------------------------------------------------------------- */

/* The functions of a kind with the types of filch_kind. */
#define KIND(d, ...)                                                                               \
    static const filch_kind d##_kind;                                                              \
    static int d##_push(void *deque, void *entry)                                                  \
    {                                                                                              \
        return filch_##d##_push(deque, entry);                                                     \
    }                                                                                              \
    static bool d##_pop(void *deque, void **entry)                                                 \
    {                                                                                              \
        return filch_##d##_pop(deque, entry);                                                      \
    }                                                                                              \
    static filch_steal_result d##_steal(void *deque, void **entry)                                 \
    {                                                                                              \
        return filch_##d##_steal(deque, entry);                                                    \
    }                                                                                              \
    static size_t d##_size_hint(void *deque)                                                       \
    {                                                                                              \
        return filch_##d##_size_hint(deque);                                                       \
    }                                                                                              \
    static void d##_fini(void *deque)                                                              \
    {                                                                                              \
        filch_##d##_fini(deque);                                                                   \
    }                                                                                              \
    static filch_slot *d##_fork(filch_slot *task, filch_strand *strand)                            \
    {                                                                                              \
        return fork_on(&d##_kind, task, strand, false);                                            \
    }                                                                                              \
    static void d##_fork_quietly(filch_slot *task, filch_strand *strand)                           \
    {                                                                                              \
        fork_on(&d##_kind, task, strand, true);                                                    \
    }                                                                                              \
    RARE bool d##_join_asked(filch_slot *task)                                                     \
    {                                                                                              \
        filch_strand *strand = filch_strand_of(task);                                              \
        filch_serve_deque(strand);                                                                 \
        return join_on(&d##_kind, task, strand, NULL);                                             \
    }                                                                                              \
    static bool d##_join(filch_slot *task, filch_strand *strand)                                   \
    {                                                                                              \
        return join_on(&d##_kind, task, strand, d##_join_asked);                                   \
    }                                                                                              \
    static const filch_kind d##_kind = {                                                           \
        .name = #d,                                                                                \
        .bytes = sizeof(filch_##d),                                                                \
        .init = d##_init,                                                                          \
        .push = d##_push,                                                                          \
        .push_fast = d##_push_fast,                                                                \
        .pop = d##_pop,                                                                            \
        .take = d##_take,                                                                          \
        .steal = d##_steal,                                                                        \
        .has_public = d##_has_public,                                                              \
        .size_hint = d##_size_hint,                                                                \
        .fini = d##_fini,                                                                          \
        .fork = d##_fork,                                                                          \
        .fork_quietly = d##_fork_quietly,                                                          \
        .join = d##_join,                                                                          \
        __VA_ARGS__,                                                                               \
    };

/* Of a kind without blocks, whose entries can all be stolen. */
#define PLAIN_KIND(d, ...)                                                                         \
    static int d##_init(void *deque, size_t capacity, size_t block)                                \
    {                                                                                              \
        (void)block;                                                                               \
        return filch_##d##_init(deque, capacity);                                                  \
    }                                                                                              \
    static bool d##_has_public(void *deque)                                                        \
    {                                                                                              \
        return filch_##d##_size_hint(deque) > 0;                                                   \
    }                                                                                              \
    KIND(d, __VA_ARGS__)

/* Of a kind with blocks. One block more than it takes, as some slots of the oldest may be used up. */
#define BLOCK_KIND(d, ...)                                                                         \
    static int d##_init(void *deque, size_t capacity, size_t block)                                \
    {                                                                                              \
        if (block == 0)                                                                            \
            return filch_##d##_init(deque, capacity);                                              \
        size_t count = capacity > 0 ? (capacity - 1) / block + 2 : FILCH_BWOS_BLOCK_COUNT;         \
        return filch_##d##_init_blocks(deque, block, count);                                       \
    }                                                                                              \
    KIND(d, __VA_ARGS__)

static void bwos_lifo_show(void *deque)
{
    filch_bwos_lifo_ask(deque);
    filch_bwos_lifo_settle(deque);
}

static void bwos_fifo_show(void *deque)
{
    filch_bwos_fifo_ask(deque);
    filch_bwos_fifo_settle(deque);
}

/* Has the owner granted something at this position that nobody has taken? */
static bool is_granted(const filch_bwos_ring *ring, uint64_t position)
{
    filch_bwos_block *b = filch_bwos_block_at(ring, position);
    /* relaxed: hints. */
    uint64_t head = filch_load_relaxed(&b->head), granted = filch_load_relaxed(&b->granted);

    return filch_bwos_round(granted) == filch_bwos_round(position) &&
           filch_bwos_index(head) < filch_bwos_index(granted);
}

/* All blocks before the owner's are granted. */
static bool bwos_lifo_has_public(void *deque)
{
    filch_bwos_lifo *d = deque;
    /* relaxed: hints. */
    uint64_t top = filch_load_relaxed(&d->top), position = filch_load_relaxed(&d->position);
    bool is_found = filch_bwos_is_after(position, top) || is_granted(&d->ring, top);

    if (!is_found)
        filch_bwos_lifo_ask(d);
    return is_found;
}

/* All blocks between those from which the owner pops and to which it pushes are granted. */
static bool bwos_fifo_has_public(void *deque)
{
    filch_bwos_fifo *d = deque;
    /* relaxed: hints. */
    uint64_t get = filch_load_relaxed(&d->get), put = filch_load_relaxed(&d->put);
    uint64_t top = filch_load_relaxed(&d->top), next = filch_bwos_next(&d->ring, get);
    uint64_t first = filch_bwos_is_after(top, get) ? top : next;
    bool is_found = is_granted(&d->ring, get) || filch_bwos_is_after(put, first) ||
                    (first == put && is_granted(&d->ring, put));

    if (!is_found)
        filch_bwos_fifo_ask(d);
    return is_found;
}

/* Where push and pop have no shorter form. */
#define WHOLE_CALLS(d)                                                                             \
    static bool d##_push_fast(void *deque, void *entry)                                            \
    {                                                                                              \
        return filch_##d##_push(deque, entry) == 0;                                                \
    }                                                                                              \
    static bool d##_take(void *deque, void *newest)                                                \
    {                                                                                              \
        void *entry = NULL;                                                                        \
        bool is_taken = filch_##d##_pop(deque, &entry);                                            \
        assert(!is_taken || entry == newest);                                                      \
        (void)newest;                                                                              \
        return is_taken;                                                                           \
    }

WHOLE_CALLS(locked)
WHOLE_CALLS(global)
WHOLE_CALLS(abp)
WHOLE_CALLS(bwos_lifo)
WHOLE_CALLS(bwos_fifo)

static bool chaselev_push_fast(void *deque, void *entry)
{
    return filch_chaselev_push_fast(deque, entry);
}

/* What is in the slot of the deque is known. */
static bool chaselev_take(void *deque, void *newest)
{
    uint64_t index;
    (void)newest;
    return filch_chaselev_take(deque, &index);
}

static bool chaselev_take_last(void *deque)
{
    return filch_chaselev_take_last(deque);
}

PLAIN_KIND(locked, .is_shared = false)
PLAIN_KIND(global, .is_claimed = true, .is_shared = true)
PLAIN_KIND(abp, .is_shared = false)
PLAIN_KIND(chaselev, .take_last = chaselev_take_last)
BLOCK_KIND(bwos_lifo, .show = bwos_lifo_show)
BLOCK_KIND(bwos_fifo, .show = bwos_fifo_show, .is_claimed = true)

/* ---- the slow halves, whatever the deque ------------------------------------------------------- */

/* Chase-Lev, which most programs with another deque than the split stack will want, is inlined: one jump less. */
filch_slot *filch_fork_slow(filch_slot *f)
{
    filch_strand *strand = filch_strand_of(f);
    const filch_kind *kind = strand->kind;

    if (kind == &chaselev_kind)
        return fork_on(&chaselev_kind, f, strand, false);
    return kind ? kind->fork(f, strand) : filch_fork_split(strand, f);
}

bool filch_join_slow(filch_slot *f)
{
    filch_strand *strand = filch_strand_of(f);
    const filch_kind *kind = strand->kind;

    if (kind == &chaselev_kind)
        return join_on(&chaselev_kind, f, strand, chaselev_join_asked);
    return kind ? kind->join(f, strand) : filch_join_split(strand, f);
}

/* ---- names ------------------------------------------------------------------------------------- */

static const filch_kind *const kinds[] = {
    [FILCH_DEQUE_SPLIT] = NULL,
    [FILCH_DEQUE_LOCKED] = &locked_kind,
    [FILCH_DEQUE_GLOBAL] = &global_kind,
    [FILCH_DEQUE_ABP] = &abp_kind,
    [FILCH_DEQUE_CHASELEV] = &chaselev_kind,
    [FILCH_DEQUE_BWOS_LIFO] = &bwos_lifo_kind,
    [FILCH_DEQUE_BWOS_FIFO] = &bwos_fifo_kind,
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

bool filch_kind_find(filch_deque_kind which, const filch_kind **kind)
{
    if ((unsigned)which >= KIND_COUNT)
        return false;
    *kind = kinds[which];
    return true;
}

static bool find_name(const char *name, size_t length, const filch_kind **kind)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const char *known = kinds[i] ? kinds[i]->name : "split";
        if (strlen(known) == length && strncmp(known, name, length) == 0)
            return filch_kind_find((filch_deque_kind)i, kind);
    }
    return false;
}

/* ":123" at *text, or nothing. */
static bool parse_size(const char **text, size_t *size)
{
    char *end;

    if (**text == '\0')
        return true;
    if ((*text)[0] != ':' || (*text)[1] < '0' || (*text)[1] > '9')
        return false;
    errno = 0;
    *size = strtoull(*text + 1, &end, 10);
    *text = end;
    return errno == 0;
}

bool filch_kind_parse(const char *text, const filch_kind **kind, size_t *capacity, size_t *block)
{
    size_t length = strcspn(text, ":"), sizes[2] = {0, 0};
    const char *rest = text + length;
    const filch_kind *found;

    if (!find_name(text, length, &found) || !parse_size(&rest, &sizes[0]) ||
        !parse_size(&rest, &sizes[1]) || *rest != '\0')
        return false;
    *kind = found;
    *capacity = sizes[0];
    *block = sizes[1];
    return true;
}
