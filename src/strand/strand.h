/* SPDX-License-Identifier: MIT */
/*
 * Strands, and where free ones are.
 *
 * A strand is made when a worker needs a stack and none is free. Its address stays a strand's until the pool is destroyed: a
 * thief may look at one that has ended long ago, and finds it empty. README.md has the states, slab.h the memory.
 */
#ifndef FILCH_STRAND_STRAND_H
#define FILCH_STRAND_STRAND_H

#include "deque/kind.h"
#include "deque/queue.h"
#include "deque/split.h"
#include "strand/context.h"
#include "strand/slab.h"
#include "strand/wait_word.h"

typedef struct filch_strand filch_strand;
struct filch_worker;
struct filch_parked;
struct filch_scope;
struct filch_binding;

struct filch_strand {
    filch_split split;

    /* What every wait looks at, and hardly anybody changes. */

    /* Of pools with another kind of deque; both NULL otherwise. Then all forks and joins are slow. Constant. */
    const filch_kind *kind;
    void *deque;
    filch_pool *pool; /* constant; NULL for a serial one */
    /* Of the task that runs here, and inherited by what it forks: src/wait/scope.h, src/join/local.c. */
    struct filch_scope *scope;         /* whose task it is, or NULL */
    FILCH_ATOMIC(filch_slot *) shield; /* tasks from this slot on are not cancelled */
    FILCH_ATOMIC(struct filch_binding *) locals;
    void (*at_end)(
        filch_strand
            *self); /* called before the task is said to be complete; NULL: nothing to do */
    /* Which filch_run the work belongs to; thieves that help only one of them look at it. */
    FILCH_ATOMIC(void *) root;

    /* One line with all that is written by a wait and by its end: of many strands that wait none is in a cache.
     * Whoever runs the strand, or is about to. Handed over by [strand-waits], src/wait/README.md. */
    struct filch_worker *worker __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_wait wait;                     /* what it waits for: wait.h; src/wait/README.md */
    FILCH_ATOMIC(const char *) waits_at; /* for those who look from outside; NULL: it does not */
    filch_link link;                     /* in the queue of strands that may go on */
    /* While it waits and has tasks to steal: src/worker/parked.h. */
    FILCH_ATOMIC(struct filch_parked *) parked_in;
    filch_context *entered_from; /* while it runs: where filch_strand_leave goes */
    filch_context context;       /* while it does not */
    bool is_firm;                /* its wait is not ended for want of memory; [strand-waits] */

    filch_strand *parked_next, **parked_to;
    void (*body)(filch_strand *self); /* called when the strand is entered anew */
    void *argument;                   /* what body runs: a stolen slot or a job */
    unsigned open_forks;              /* checked builds: forks without a join */
    unsigned at_once; /* operations since its last turn that did not have to wait: src/io/io.c */
    bool keeps_all;   /* publishes nothing: its handle does not say which slots hold tasks */
    size_t pushed,
        kept; /* where entries are claimed: pushed since the last sweep; found alive by it */
    unsigned id;
    size_t stack_bytes;
    filch_slab *slab;        /* where it lies */
    filch_strand *next_free; /* under the lock of the slabs */
    filch_strand *scope_next,
        **scope_to; /* under the scope's lock; scope_to is NULL when it is in no list */
    struct filch_scope *
        closes; /* whose end it waits for, while it does; read by who has ended that wait and will resume it */
    filch_lock locals_lock;
};

static inline filch_strand *filch_strand_of(const filch_frame *f)
{
    return (filch_strand *)FILCH_LIMITS(f);
}

/* It goes on soon: fetch what it needs for that, all at once. Of many strands that wait none is in a cache. By who has ended its wait. */
static inline void filch_strand_fetch(const filch_strand *strand)
{
    const char *stack = strand->context.sp;

    __builtin_prefetch(strand, 1);
    for (unsigned i = 0; i < 8; i++)
        __builtin_prefetch(stack + i * FILCH_CACHE_LINE, 1);
}

/* ---- what thieves do with a strand, whatever its deque ------------------------------------------ */

filch_steal_result filch_strand_steal_entry(filch_strand *victim, filch_slot **task);

static inline filch_steal_result filch_strand_steal(filch_strand *victim, filch_slot **task)
{
    return victim->kind ? filch_strand_steal_entry(victim, task)
                        : filch_split_steal(&victim->split, task);
}

/* Give back a task that was stolen from a deque for all, and is not the thief's business. False: its forker waits for it already, and nobody might find it: it has to be run. */
bool filch_strand_put_back(filch_slot *task);

/* Is there something to steal? */
static inline bool filch_strand_has_public(filch_strand *strand)
{
    return strand->kind ? strand->kind->has_public(strand->deque)
                        : filch_split_has_public(&strand->split);
}

/* The same before a sleep: where there is nothing, it is asked for. A deque is asked first, since it shows what was pushed before the
 * question. */
static inline bool filch_strand_look(filch_strand *strand)
{
    if (!strand->kind && filch_split_has_public(&strand->split))
        return true;
    filch_split_ask(&strand->split, true);
    return strand->kind && strand->kind->has_public(strand->deque);
}

/* Its next fork looks whether somebody is idle. */
static inline void filch_strand_arm(filch_strand *strand)
{
    /* acq_rel [asked]: as a thief would */
    if (strand->kind)
        filch_exchange_acq_rel(&strand->split.asked, 1);
    else
        filch_split_arm(&strand->split);
}

/* Let anybody claim a task of ours. */
static inline void filch_task_offer(filch_slot *task)
{
    /* relaxed: our slot. release [task-offered] */
    filch_store_release(&task->state, filch_load_relaxed(&task->state) | FILCH_TASK_OFFERED);
}

/* Take a task that lies in a deque whose entries are no more than a hint: its forker may have it already, and the slot another
 * task, which is as good. False: it was somebody else's. */
static inline bool filch_task_claim(filch_slot *task)
{
    /* relaxed: the cas decides. */
    uintptr_t state = filch_load_relaxed(&task->state);
    /* acquire [task-offered] */
    return (state & FILCH_TASK_OFFERED) &&
           filch_cas_acq_rel(&task->state, &state, state & ~FILCH_TASK_OFFERED);
}

/* Let anybody claim a task that we have claimed. False: its forker waits for it. */
static inline bool filch_task_offer_again(filch_slot *task)
{
    /* relaxed: the cas decides. */
    uintptr_t state = filch_load_relaxed(&task->state);
    /* release [task-offered] */
    return !(state & FILCH_TASK_AWAITED) &&
           filch_cas_acq_rel(&task->state, &state, state | FILCH_TASK_OFFERED);
}

static inline filch_strand *filch_strand_of_link(filch_link *link)
{
    return (filch_strand *)((char *)link - offsetof(filch_strand, link));
}

/* All strands of a pool. */
typedef struct filch_strands {
    filch_pool *pool;
    filch_slabs slabs;
    const filch_kind *kind; /* of their deques; NULL: they have the split stack only */
    size_t capacity, block; /* of each */
    void *shared;           /* the one of all, where kind says so */
} filch_strands;

/* stack_bytes is rounded up to whole pages. The split stack is the deque. */
void filch_strands_init(filch_strands *list, filch_pool *pool, size_t stack_bytes);

/* Give them deques of another kind, before the first is taken. 0; -ENOMEM; -EINVAL: there is no such capacity, or no such block. */
int filch_strands_use(filch_strands *list, const filch_kind *kind, size_t capacity, size_t block);

/* No strand is in use any more. */
void filch_strands_fini(filch_strands *list);

/* In the child of a fork(): whatever ran on them is the parent's, so all are free. */
void filch_strands_rebuild(filch_strands *list);

/* A free strand, or a new one; NULL when there is no memory for it. */
filch_strand *filch_strand_take(filch_strands *list);
void filch_strand_give(filch_strands *list, filch_strand *strand);

/* Is there one for which no memory is needed? */
bool filch_strands_have_free(filch_strands *list);

/* Free strands of one worker: only it takes and gives them, without a lock, the one given last first. Where others may have to do
 * without, it is emptied before its owner sleeps. All zero is an empty one. */
#define FILCH_MAGAZINE_MAX 32u
typedef struct filch_magazine {
    unsigned count;
    filch_strand *strands[FILCH_MAGAZINE_MAX];
} filch_magazine;

filch_strand *filch_magazine_take(filch_magazine *magazine, filch_strands *list);
void filch_magazine_give(filch_magazine *magazine, filch_strands *list, filch_strand *strand);
void filch_magazine_empty(filch_magazine *magazine, filch_strands *list);

/* Give memory of free strands back to the system, if there is much of it: some, so that the caller can look for work in between.
 * Returns whether there may be more. */
bool filch_strands_trim(filch_strands *list);

/* Go on in the strand; returns when it leaves, perhaps for another thread to enter it next. */
void filch_strand_enter(filch_strand *strand, filch_context *from);
void filch_strand_leave(filch_strand *strand);

/* The strand whose guard page holds `address`, or NULL. For a signal handler: takes no lock. */
filch_strand *filch_strand_find_guard(filch_strands *list, const void *address);

/* A strand without a stack, for running serially on the caller's: forks and joins, is never stolen from. NULL
 * when there is no memory. */
filch_strand *filch_strand_create_serial(void);
void filch_strand_destroy_serial(filch_strand *strand);

#endif
