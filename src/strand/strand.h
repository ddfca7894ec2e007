/* SPDX-License-Identifier: MIT */
/*
 * Strands, and where a pool keeps its free ones.
 *
 * A strand is made when a worker needs a stack and no strand is free. Its address remains a strand
 * until the pool is destroyed. So a thief may look at a strand that ended long ago, and finds it
 * empty. README.md has the states, slab.h the memory.
 */
#ifndef FILCH_STRAND_STRAND_H
#define FILCH_STRAND_STRAND_H

#include "deque/kind.h"
#include "deque/queue.h"
#include "deque/split.h"
#include "strand/context.h"
#include "strand/slab.h"
#include "strand/wait_word.h"
#include "strand/waits.h"

typedef struct filch_strand filch_strand;
struct filch_worker;
struct filch_parked;
struct filch_scope;
struct filch_binding;

/* What the C++ runtime keeps for a thread: strand/exceptions.h. Laid out by the C++ ABI. */
typedef struct filch_exceptions {
    void *handled; /* the innermost exception that is caught and not yet done with */
    unsigned in_flight;
} filch_exceptions;

struct filch_strand {
    filch_split split;

    /* Every wait reads the following members, which hardly ever change. */

    /* Only in pools with another kind of deque, where all forks and joins are slow; otherwise NULL.
     * Constant. */
    const filch_kind *kind;
    void *deque;
    filch_pool *pool; /* constant; NULL for a serial strand */
    /* These belong to the task that runs here, and its forks inherit them: src/wait/scope.h,
     * strand/inherit.c. */
    struct filch_scope *scope;         /* the scope of the task, or NULL */
    FILCH_ATOMIC(filch_slot *) shield; /* tasks from this slot on are not cancelled */
    FILCH_ATOMIC(struct filch_binding *) locals;
    /* Called when the task ends, before its completion is visible; NULL: nothing to do. */
    void (*at_end)(filch_strand *self);
    /* The filch_run that the work belongs to. Thieves that help only one filch_run read it. */
    FILCH_ATOMIC(void *) root;

    /* One cache line has all that a wait and its end write: when many strands wait, none of them is
     * in a cache. `worker` is the worker that runs the strand, or is about to. [strand-waits] hands
     * it over, src/fork/README.md. */
    struct filch_worker *worker __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_wait wait;                      /* the current wait: wait_word.h */
    FILCH_ATOMIC(const void *) waits_for; /* the object, for observers: waits.h */
    filch_link link;                      /* in a queue of ready strands */
    /* While the strand waits and has tasks to steal: src/worker/parked.h. */
    FILCH_ATOMIC(struct filch_parked *) parked_in;
    filch_context *entered_from; /* while it runs: where filch_strand_leave returns to */
    filch_context context;       /* while it does not run */
    filch_atomic_u32 waits;      /* enum filch_waits, for observers */
    bool is_firm;                /* a shortage of memory does not end its wait; [strand-waits] */
    bool has_exceptions;         /* it left its stack with `exceptions` */

    filch_exceptions exceptions;
    filch_strand *parked_next, **parked_to;
    void (*body)(filch_strand *self); /* called when the strand starts a new task */
    void *argument;                   /* the stolen slot or the job that body runs */
    struct filch_notes *notes;        /* checked programs: strand/notes.h; NULL: none */
    unsigned open_forks;              /* checked builds: forks without a join */
    /* Operations since its last turn that completed without a wait: src/io/io.c. */
    unsigned at_once;
    /* For known slots, see fork.c: how often the oldest private task was joined, and when the
     * strand last earned some of the split's budget. */
    unsigned oldest_joins;
    uint64_t earned_ticks;
    /* Do not publish tasks: the frame does not tell which slots hold tasks. */
    bool keeps_all;
    /* For deques whose entries are claimed: pushes since the last sweep, and entries that the sweep
     * kept. */
    size_t pushed, kept;
    unsigned id;
    size_t stack_bytes;
    filch_slab *slab;        /* the slab that contains it */
    filch_strand *next_free; /* under the lock of the slabs */
    /* Under the scope's lock. scope_to is NULL if the strand is in no list. */
    filch_strand *scope_next, **scope_to;
    /* The scope that the strand waits to close, while it waits. Read by the thread that has ended
     * that wait and will resume the strand. */
    struct filch_scope *closes;
    filch_lock locals_lock;
};

static inline filch_strand *filch_strand_of(const filch_frame *f)
{
    return (filch_strand *)FILCH_LIMITS(f);
}

/* The strand begins, or ends, a wait: for observers. */
static inline void filch_strand_waits(filch_strand *strand, enum filch_waits kind,
                                      const void *object)
{
    /* relaxed: observers take both for hints. */
    filch_store_relaxed(&strand->waits_for, object);
    filch_store_relaxed(&strand->waits, kind);
}

static inline void filch_strand_waits_no_more(filch_strand *strand)
{
    /* relaxed: as above. */
    filch_store_relaxed(&strand->waits, FILCH_WAITS_NOT);
}

/* Prefetch all data that the strand needs to continue: when many strands wait, none of them is in a
 * cache. Called by the thread that has ended the wait. */
static inline void filch_strand_fetch(const filch_strand *strand)
{
    const char *stack = strand->context.sp;

    __builtin_prefetch(strand, 1);
    for (unsigned i = 0; i < 8; i++)
        __builtin_prefetch(stack + i * FILCH_CACHE_LINE, 1);
}

/* ---- thieves, with any kind of deque --------------------------------------------------------- */

filch_steal_result filch_strand_steal_entry(filch_strand *victim, filch_slot **task);

static inline filch_steal_result filch_strand_steal(filch_strand *victim, filch_slot **task)
{
    return victim->kind ? filch_strand_steal_entry(victim, task)
                        : filch_split_steal(&victim->split, task);
}

/* Put back a task that was stolen from a deque for all strands, but does not belong to the
 * filch_run that the thief helps. False: the forker already waits for the task, and other threads
 * might not find it. Then the caller must run it. */
bool filch_strand_put_back(filch_slot *task);

/* Does the strand have a task to steal? */
static inline bool filch_strand_has_public(filch_strand *strand)
{
    return strand->kind ? strand->kind->has_public(strand->deque)
                        : filch_split_has_public(&strand->split);
}

/* The same, or a private task that an idle worker could publish? A hint. */
static inline bool filch_strand_has_tasks(filch_strand *strand)
{
    return filch_strand_has_public(strand) ||
           (!strand->kind && filch_split_seems_known(&strand->split));
}

/* filch_strand_has_public before a sleep. If there is no task, ask the owner for one. With a deque
 * of another kind, ask first: the deque then shows all tasks that were pushed before the request.
 */
static inline bool filch_strand_look(filch_strand *strand)
{
    if (!strand->kind && filch_split_has_public(&strand->split))
        return true;
    filch_split_ask(&strand->split, true);
    return strand->kind && strand->kind->has_public(strand->deque);
}

/* Make the strand's next fork check for idle workers. */
static inline void filch_strand_arm(filch_strand *strand)
{
    /* acq_rel [asked]: as a thief would */
    if (strand->kind)
        filch_exchange_acq_rel(&strand->split.asked, 1);
    else
        filch_split_arm(&strand->split);
}

/* Let any thread claim a task of the caller's strand. */
static inline void filch_task_offer(filch_slot *task)
{
    /* relaxed: own slot. release [task-offered] */
    filch_store_release(&task->state, filch_load_relaxed(&task->state) | FILCH_TASK_OFFERED);
}

/* Claim a task whose entry is only a hint. If its forker has already taken that task, the slot may
 * hold another task, which will do as well. False: another thread has claimed it. */
static inline bool filch_task_claim(filch_slot *task)
{
    /* relaxed: the cas decides. */
    uintptr_t state = filch_load_relaxed(&task->state);
    /* acquire [task-offered] */
    return (state & FILCH_TASK_OFFERED) &&
           filch_cas_acq_rel(&task->state, &state, state & ~FILCH_TASK_OFFERED);
}

/* Offer a task again that the caller has claimed. False: its forker waits for it. */
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
    const filch_kind *kind; /* the kind of their deques; NULL: the split stack */
    size_t capacity, block; /* of each deque */
    void *shared;           /* the deque for all strands, if the kind has one */
} filch_strands;

/* `stack_bytes` is rounded up to whole pages. The deque is the split stack. */
void filch_strands_init(filch_strands *list, filch_pool *pool, size_t stack_bytes);

/* Use deques of another kind; called before the first strand is taken. Returns 0; -ENOMEM; -EINVAL:
 * no such capacity or block size. */
int filch_strands_use(filch_strands *list, const filch_kind *kind, size_t capacity, size_t block);

/* No strand may be in use. */
void filch_strands_fini(filch_strands *list);

/* In the child of a fork(): all strands become free, since their tasks belong to the parent. */
void filch_strands_rebuild(filch_strands *list);

/* Take a free strand, or make a new one. NULL: no memory. */
filch_strand *filch_strand_take(filch_strands *list);
void filch_strand_give(filch_strands *list, filch_strand *strand);

/* Is there a strand that needs no new memory? */
bool filch_strands_have_free(filch_strands *list);

/* Free strands of one worker. Only that worker takes and gives them, without a lock, last in, first
 * out. The worker empties its magazine before it sleeps, as others may lack strands. All zero bytes
 * are an empty magazine. */
#define FILCH_MAGAZINE_MAX 32u
typedef struct filch_magazine {
    unsigned count;
    filch_strand *strands[FILCH_MAGAZINE_MAX];
} filch_magazine;

filch_strand *filch_magazine_take(filch_magazine *magazine, filch_strands *list);
void filch_magazine_give(filch_magazine *magazine, filch_strands *list, filch_strand *strand);
void filch_magazine_empty(filch_magazine *magazine, filch_strands *list);

/* If free strands hold much memory, return some of it to the system. The amount is bounded, so that
 * the caller can look for work in between. Returns whether there may be more. */
bool filch_strands_trim(filch_strands *list);

/* enter: run the strand; returns when the strand leaves. The next time, another thread may enter
 * it. */
void filch_strand_enter(filch_strand *strand, filch_context *from);
void filch_strand_leave(filch_strand *strand);

/* The strand whose guard contains `address`, or NULL. For a signal handler: takes no lock. */
filch_strand *filch_strand_find_guard(filch_strands *list, const void *address);

/* A strand without a stack, to run tasks serially on the caller's stack. It forks and joins, and is
 * never stolen from. NULL: no memory. */
filch_strand *filch_strand_create_serial(void);
void filch_strand_destroy_serial(filch_strand *strand);

#endif
