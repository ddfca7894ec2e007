/* SPDX-License-Identifier: MIT */
/*
 * A strand: a C stack and the tasks forked on it, in one mapping.
 *
 *      low addresses                                                       high addresses
 *     +-------+----------------------------+--------+------+------+------+-----+-------+
 *     | guard |        <---- C stack       | header | slot | slot | slot | ... | guard |
 *     +-------+----------------------------+--------+------+------+------+-----+-------+
 *                                    ^     ^        oldest fork --> newest
 *                                    |     FILCH_HEADER_OFFSET behind it
 *                                    aligned to FILCH_REGION_BYTES
 *
 * The page at the aligned address holds the top of the stack, the header and the first slots. A
 * small task touches no other page.
 *
 * A frame, `filch_frame *f` everywhere in this library, is the address of the next free slot. It
 * tells where the next fork goes. Masked, it tells which strand the code runs on. Functions pass it
 * to each other in a register. So the fast path reads no thread-local variable, and stays correct
 * when a strand moves to another thread.
 *
 * Slots below the split are public: thieves may take them, oldest first. Slots above it are private
 * to the owner, which forks and joins them with plain stores and one comparison each:
 *
 *     fork is slow when  f >= fork_limit   the region is full, or a thief asked for work
 *     join is slow when  f <  join_limit   the slot is public or known, or a thief asked for work
 *
 * At least the oldest private slot is known: an idle worker can tell whether it holds a task, and
 * publish it for an owner that computes and does not come to its next fork or join.
 *
 * A thief that wants work overwrites both limits. So the comparison that is made anyway also polls
 * for thieves. src/deque/README.md has the protocol.
 *
 * Edges
 *   task-known  filch_fork_fill -> filch_split_reach
 *               carries the task in a known slot, and everything its forker did before.
 *   task-ready  filch_fork_fill -> filch_split_steal
 *               the same for other slots, by way of filch_split_publish (src/deque/split.h).
 *   fork-or-look  filch_fork_fill, filch_fork_is_slow  x  filch_split_ask, filch_second_look
 *               see src/worker/README.md.
 */
#ifndef FILCH_STRAND_H
#define FILCH_STRAND_H

#include <filch/atomic.h>
#include <filch/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A power of two: masking the address of a slot gives the header of its strand. */
#define FILCH_REGION_BYTES ((uintptr_t)512 << 10)
#define FILCH_HEADER_OFFSET ((uintptr_t)2048)

/* Bytes for the arguments or the result of a task inside its slot. */
#define FILCH_SLOT_ROOM 56

typedef struct filch_slot filch_slot;

/* The frame that functions take as `filch_frame *f` to fork, join or wait: the place of the calling
 * task on its strand. It is the address of the next free slot, so it has the slot's type. */
typedef struct filch_slot filch_frame;

/* Runs the task in `task` on the strand of `f`: reads its arguments from the slot and leaves its
 * result there. */
typedef void filch_thunk(filch_frame *f, filch_slot *task);

/* One task: a cache line, so that a thief that works on it does not disturb its neighbours. */
struct filch_slot {
    unsigned char room[FILCH_SLOT_ROOM]; /* arguments, then the result */
    FILCH_ATOMIC(uintptr_t) state;       /* see below */
} __attribute__((aligned(FILCH_CACHE_LINE)));

/*
 * From its fork on, the state of a slot is the task's thunk. If the task was stolen, the thief sets
 * DONE at the end. If the forker leaves its strand to wait for that, it adds the mark AWAITED. The
 * marks are bits that are 0 in the address of every function, so the thief still finds the thunk.
 */
#define FILCH_TASK_DONE ((uintptr_t)0)
#define FILCH_TASK_AWAITED ((uintptr_t)1 << 63)
/* With some deques: the worker that clears this mark has the task. */
#define FILCH_TASK_OFFERED ((uintptr_t)1 << 62)
/* The owner joins the task, and will run it unless it is public. */
#define FILCH_TASK_TAKEN ((uintptr_t)1 << 61)
#define FILCH_TASK_MARKS (FILCH_TASK_AWAITED | FILCH_TASK_OFFERED | FILCH_TASK_TAKEN)

/* The part of a strand's header that the inlined path reads. The owner writes it; thieves that ask
 * for work overwrite it. */
typedef struct filch_limits {
    FILCH_ATOMIC(filch_slot *) fork_limit;
    FILCH_ATOMIC(filch_slot *) join_limit;
} filch_limits;

/* The memory at the aligned address. With a struct instead of an addition, compilers keep the
 * masked address and make the offset part of the load. */
typedef struct filch_region {
    unsigned char stack_top[FILCH_HEADER_OFFSET];
    filch_limits limits;
} filch_region;

#define FILCH_LIMITS(f) (&((filch_region *)((uintptr_t)(f) & ~(FILCH_REGION_BYTES - 1)))->limits)

/* The last step of writing a task to `f`. */
FILCH_INLINE void filch_fork_fill(filch_frame *f, filch_thunk *thunk)
{
    /* release [task-known], [fork-or-look]. If the slot is not known, [task-ready] carries it to
     * thieves. */
    filch_store_release(&f->state, (uintptr_t)thunk);
}

/* Must fork take the slow path for the task just written to `f`? */
FILCH_INLINE bool filch_fork_is_slow(const filch_frame *f)
{
    /* relaxed: a hint that the slow path checks again, or the owner's own value. */
    return __builtin_expect(f >= filch_load_relaxed(&FILCH_LIMITS(f)->fork_limit), 0);
}

/* Must the join of `f` take the slow path? */
FILCH_INLINE bool filch_join_is_slow(const filch_frame *f)
{
    /* relaxed: a hint that the slow path checks again, or the owner's own value. */
    return __builtin_expect(f < filch_load_relaxed(&FILCH_LIMITS(f)->join_limit), 0);
}

/* Publish the tasks up to `f` if a thief wants them. Returns the slot of the task: f, or the end of
 * the region if that is full. A task there is never published; its join runs it. */
FILCH_API filch_slot *filch_fork_slow(filch_frame *f) __attribute__((cold, nothrow));

/* The same for a spawned task, which no variable names. If the region is full, the call joins
 * the tasks above `mark` to make room, or runs the task at once. */
FILCH_API filch_slot *filch_spawn_slow(filch_frame *f, filch_frame *mark)
    __attribute__((cold, nothrow));

/* True: the task in `f` is still the caller's to run. False: it was stolen, and is complete on
 * return; the strand was suspended meanwhile if need be. */
FILCH_API bool filch_join_slow(filch_frame *f) __attribute__((cold, nothrow));

#ifdef __cplusplus
}
#endif

#endif
