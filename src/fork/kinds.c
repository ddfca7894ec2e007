/* SPDX-License-Identifier: MIT */
/*
 * Fork and join on the deques of filch/deque/, for pools that use one of them (options.deque).
 *
 * Tasks lie in their slots as always; the deque has the slots' addresses. The limits stay armed, so
 * every fork and every join comes here. README.md has the steps. A join pops its task from a
 * last-in-first-out deque. From a first-in-first-out deque it cannot take the task it wants. So
 * entries are hints there, and a task belongs to the thread that claims it.
 *
 * Edges (task-done is in README.md)
 *   asked  filch_split_ask -> filch_serve_deque, and back
 *          carries that the thief counts as idle; and back, the tasks that were pushed.
 */
#include "fork/kinds.h"

#include "deque/adapt.h"
#include "fork/fork.h"
#include "worker/worker.h"

/* A sweep is due after this many pushes: joins may have left entries without a task. */
#define SWEEP_AFTER 1024

/* Each kind has its own copy of the COPIED functions, with its calls inlined. They call RARE ones
 * last: then they need no stack frame. */
#define COPIED static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline))

/* Clear `asked` before counting idle workers: a thief that asks later sees every task pushed so
 * far. */
__attribute__((noinline)) void filch_serve_deque(filch_strand *strand)
{
    filch_pool *pool = strand->worker->pool;

    if (strand->kind->show)
        strand->kind->show(strand->deque);
    /* acq_rel [asked] */
    filch_exchange_acq_rel(&strand->split.asked, 0);
    size_t count = strand->kind->size_hint(strand->deque);
    if (filch_pool_idle_count(pool) > count)
        filch_strand_arm(strand);
    if (count == 0)
        return;
    filch_count(strand->worker, FILCH_COUNT_published, 1);
    filch_pool_notify(pool, strand->worker);
}

static bool is_asked(filch_strand *strand)
{
    /* relaxed: a hint; if this load misses a request, the next fork or join sees it. */
    return __builtin_expect(filch_load_relaxed(&strand->split.asked) != 0, 0);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* The task is in no deque. OFFERED tells that to its join. */
static void keep(filch_slot *task)
{
    /* relaxed: own slot, which no other thread knows. */
    filch_store_relaxed(&task->state, filch_load_relaxed(&task->state) | FILCH_TASK_OFFERED);
}

RARE filch_slot *fork_asked(filch_slot *task)
{
    filch_serve_deque(filch_strand_of(task));
    return task;
}

/* The deque must grow, or is full. If thieves have emptied the deque, its owner notices that only
 * by a pop, which may make room again. */
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
    /* relaxed: a hint; a thief that takes the entry must claim the task. */
    return filch_load_relaxed(&task->state) & FILCH_TASK_OFFERED;
}

/* Remove all entries of this strand, and push its tasks up to the newest again. Otherwise entries
 * without a task, and several for one slot, would add up. In a shared deque, entries of other
 * strands stay if they have a task. A task whose entry no longer fits is found by its join. */
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

/* Push a task that must be claimed. Its entry stays in the deque when the forker claims it. */
COPIED void push_claimed(const filch_kind *kind, filch_strand *strand, filch_slot *task)
{
    filch_task_offer(task);
    strand->pushed++;
    if (kind->push(strand->deque, task) == 0 && strand->pushed <= SWEEP_AFTER)
        return;
    /* A sweep looks at all entries and all slots. It waits for about as many pushes, so its cost
     * per push is bounded. */
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

/* ---- join ------------------------------------------------------------------------------------ */

/* The join did not get the task at its first attempt: a thief may have it. */
RARE bool join_rest(filch_slot *task)
{
    filch_strand *strand = filch_strand_of(task);
    const filch_kind *kind = strand->kind;

    if (kind->take_last && kind->take_last(strand->deque))
        return true;
    for (;;) {
        filch_stolen_wait(strand, task);
        /* acquire [task-done] */
        if (filch_load_acquire(&task->state) == FILCH_TASK_DONE)
            return false;
        /* A guest had stolen it, and has given it back. */
        if (filch_task_claim(task))
            return true;
    }
}

/* If a thief has asked, `join_asked` answers, then calls this function with NULL. */
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
    /* relaxed: own slot. A thief that has the task never sets OFFERED here. */
    uintptr_t state = filch_load_relaxed(&task->state);
    if (__builtin_expect((state & FILCH_TASK_OFFERED) != 0, 0)) {
        /* relaxed: own slot, in no deque. */
        filch_store_relaxed(&task->state, state & ~FILCH_TASK_OFFERED);
        return true;
    }
    /* The newest entry is this task, and thieves take the oldest. So the pop gets this task, or the
     * deque is empty. */
    return __builtin_expect(kind->take(strand->deque, task), 1) ? true : join_rest(task);
}

/* ---- a copy for each kind -------------------------------------------------------------------- */

typedef struct calls {
    filch_slot *(*fork)(filch_slot *task, filch_strand *strand);
    void (*fork_quietly)(filch_slot *task, filch_strand *strand);
    bool (*join)(filch_slot *task, filch_strand *strand);
} calls;

#define COPY(d, ...)                                                                               \
    static const filch_kind d##_kind = FILCH_KIND_ROW(d, __VA_ARGS__);                             \
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
    }
FILCH_KIND_ROWS(COPY)

#define CALLS(d, enumerator, ...) [enumerator] = {d##_fork, d##_fork_quietly, d##_join},
static const calls calls_of[] = {FILCH_KIND_ROWS(CALLS)};

void filch_kind_fork_quietly(filch_strand *strand, filch_frame *f)
{
    calls_of[strand->kind->which].fork_quietly(f, strand);
}

/* ---- the slow halves, whatever the deque ----------------------------------------------------- */

/* With a deque other than the split stack, every fork and join comes here. So these functions have
 * no stack frame, and Chase-Lev, the most common of those deques, is inlined. */
filch_slot *filch_fork_slow(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    const filch_kind *kind = strand->kind;

    if (kind == &filch_chaselev_kind)
        return fork_on(&chaselev_kind, f, strand, false);
    return kind ? calls_of[kind->which].fork(f, strand) : filch_fork_split(strand, f);
}

bool filch_join_slow(filch_frame *f)
{
    filch_strand *strand = filch_strand_of(f);
    const filch_kind *kind = strand->kind;

    if (kind == &filch_chaselev_kind)
        return join_on(&chaselev_kind, f, strand, chaselev_join_asked);
    return kind ? calls_of[kind->which].join(f, strand) : filch_join_split(strand, f);
}
