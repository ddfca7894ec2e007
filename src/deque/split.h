/* SPDX-License-Identifier: MIT */
/*
 * The split stack: the default deque, a stack of task slots of which the oldest part is public.
 *
 * After Faxén, "Wool", 2008, and van Dijk and van de Pol, "Lace", 2014. README.md in this folder
 * explains the protocol, and why it is correct. filch/strand.h has the owner's inlined half.
 *
 *     slots   0 ........ tail ........ split ........ f ........ end  end+1
 *             |  stolen   |   public    |   private   |   free   |  no task |
 *             +-----------+-------------+-------------+----------+----------+
 *                thieves take here -->  |  <-- the owner forks and joins here
 *                                       |.... known: an idle worker can publish these ....
 *
 * Edges
 *   task-ready   filch_split_publish, filch_split_reach -> filch_split_steal
 *                carries the slot, and everything the owner wrote before it forked.
 *   task-known   filch_fork_fill, filch_split_know, filch_split_reset -> filch_split_reach,
 *                filch_split_is_live
 *                carries a private slot that holds a task, and everything written before its fork;
 *                and that free slots hold none.
 *   fork-or-look  filch_fork_fill, filch_fork_is_slow  x  filch_split_ask, filch_split_is_live
 *                see src/worker/README.md.
 *   claim-or-reach  filch_split_claim, filch_split_keeps, filch_split_know  x  filch_split_mark,
 *                filch_split_reach
 *                forbids that the owner runs a private task, or takes a piece of it, and a worker
 *                publishes the same.
 *   asked        filch_split_ask -> filch_split_answer, filch_split_follow
 *                carries that the thief counts as idle. Both sides exchange the same word, so one
 *                comes first: either the owner sees the request, or the thief's limits come after
 *                the owner's.
 *   publish-or-sleep  filch_split_publish  x  filch_split_has_public
 *                with the sleep word (src/sleep/README.md).
 */
#ifndef FILCH_DEQUE_SPLIT_H
#define FILCH_DEQUE_SPLIT_H

#include "base/barrier.h"

#include <filch/deque.h>
#include <filch/strand.h>

#include <assert.h>

/* The limits that a thief sets: they make every fork and every join slow. */
#define FILCH_FORK_ASKED ((filch_slot *)0)
#define FILCH_JOIN_ASKED ((filch_slot *)UINTPTR_MAX)

typedef struct filch_split {
    /* The owner reads them at every fork and join. Thieves that ask for work overwrite them. */
    filch_limits limits;
    filch_atomic_u32 asked; /* 1: a thief has asked since the owner last answered */
    /* The states of the slots from the split up to `known` are exact, but for slot `claimed`.
     * Written by the owner. */
    filch_atomic_u32 known;
    filch_atomic_u32 claimed;

    /* {reacher:16 | split:24 | tail:24}. Written by owner, thieves and idle workers. */
    filch_atomic_u64 word __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Owner only. Fork may write to end[0] and end[1], but no task is ever there. Constant. */
    filch_slot *end __attribute__((aligned(FILCH_CACHE_LINE)));
    /* While this is not zero, forks beyond the known slots are slow, and make these slots known. */
    uint32_t budget;
} filch_split;

/* The slots begin this far behind the split stack's address, in the same region. So a thief finds
 * them without reading a line that the owner writes. */
#define FILCH_SPLIT_HEADER_BYTES 640

static inline filch_slot *filch_split_slots(const filch_split *s)
{
    return (filch_slot *)((uintptr_t)s + FILCH_SPLIT_HEADER_BYTES);
}

#define FILCH_SPLIT_BITS 24
#define FILCH_SPLIT_MASK ((UINT64_C(1) << FILCH_SPLIT_BITS) - 1)

static inline uint64_t filch_split_word(uint32_t split, uint32_t tail)
{
    return (uint64_t)split << FILCH_SPLIT_BITS | tail;
}

static inline uint32_t filch_split_tail(uint64_t word)
{
    return (uint32_t)(word & FILCH_SPLIT_MASK);
}

static inline uint32_t filch_split_split(uint64_t word)
{
    return (uint32_t)(word >> FILCH_SPLIT_BITS & FILCH_SPLIT_MASK);
}

/* The mark of the worker that is about to publish known slots; 0: there is none. */
static inline uint32_t filch_split_reacher(uint64_t word)
{
    return (uint32_t)(word >> 2 * FILCH_SPLIT_BITS);
}

/* Slots below this are public or stolen. */
static inline uint32_t filch_split_now(filch_split *s)
{
    /* relaxed: only the owner lowers it. A reacher may raise it: filch_split_claim looks again. */
    return filch_split_split(filch_load_relaxed(&s->word));
}

/* Does the slot hold a task that was not begun? Exact for known slots only. */
static inline bool filch_split_is_live(filch_slot *slot)
{
    /* acquire [task-known], [fork-or-look] */
    uintptr_t state = filch_load_acquire(&slot->state);
    return state != FILCH_TASK_DONE && !(state & FILCH_TASK_TAKEN);
}

/* Make the owner's next fork and join slow. Called by owner and thieves. */
static inline void filch_split_arm(filch_split *s)
{
    /* relaxed: the limits are hints; the slow path orders everything that follows from them. */
    filch_store_relaxed(&s->limits.fork_limit, FILCH_FORK_ASKED);
    filch_store_relaxed(&s->limits.join_limit, FILCH_JOIN_ASKED);
}

static inline bool filch_split_is_armed(filch_split *s)
{
    /* relaxed: a hint. If it is wrong, the owner answers once too often, or only at the next
     * fork. */
    return filch_load_relaxed(&s->limits.join_limit) == FILCH_JOIN_ASKED;
}

/* Initialise for `count` usable slots; there is memory for two more. All forks and joins start
 * slow. */
static inline void filch_split_init(filch_split *s, size_t count)
{
    s->end = filch_split_slots(s) + count;
    s->budget = 0;
    /* relaxed: no other thread knows the strand yet. */
    filch_store_relaxed(&s->word, 0);
    filch_store_relaxed(&s->asked, 0);
    filch_store_relaxed(&s->known, 1);
    filch_store_relaxed(&s->claimed, UINT32_MAX);
    filch_store_relaxed(&filch_split_slots(s)->state, FILCH_TASK_DONE);
    filch_split_arm(s);
}

/* ---- owner ----------------------------------------------------------------------------------- */

static inline uint32_t filch_split_capacity(const filch_split *s)
{
    return (uint32_t)(s->end - filch_split_slots(s));
}

static inline uint32_t filch_split_known(filch_split *s)
{
    /* relaxed: the owner's own value. */
    return filch_load_relaxed(&s->known);
}

/* Let the slots below `count` be known, or as many as there are. */
static inline void filch_split_know(filch_split *s, uint32_t count)
{
    uint32_t capacity = filch_split_capacity(s);
    /* release [task-known] */
    filch_store_release(&s->known, count < capacity ? count : capacity);
}

/* The slot holds no task. It is not known yet, or the caller has it alone. */
static inline void filch_split_clear(filch_split *s, uint32_t i)
{
    if (i < filch_split_capacity(s))
        /* relaxed: filch_split_know or a publish releases it. */
        filch_store_relaxed(&filch_split_slots(s)[i].state, FILCH_TASK_DONE);
}

/* Fast forks and joins again, unless a thief has asked, or asks at the same time. The caller looks
 * at `asked` after this. */
static inline void filch_split_set_limits(filch_split *s)
{
    filch_slot *known = filch_split_slots(s) + filch_split_known(s);

    /* relaxed: [asked] orders these before the limits of a thief. */
    filch_store_relaxed(&s->limits.fork_limit, s->budget > 0 ? known : s->end);
    filch_store_relaxed(&s->limits.join_limit, known);
}

/* Return to fast forks and joins. Returns whether a thief has asked meanwhile; if so, the caller
 * looks again. */
static inline bool filch_split_answer(filch_split *s)
{
    filch_split_set_limits(s);
    /* acq_rel [asked] */
    return filch_exchange_acq_rel(&s->asked, 0) != 0;
}

/* Update the limits after the known slots have changed. This is no answer, so a request stays: a
 * second look depends on it. */
static inline void filch_split_follow(filch_split *s)
{
    if (filch_split_is_armed(s))
        return;
    filch_split_set_limits(s);
    /* acq_rel [asked] */
    if (filch_fetch_add_acq_rel(&s->asked, 0) != 0)
        filch_split_arm(s);
}

/* Make the slots below `count` public. The state of slot `count` is exact: that slot becomes the
 * only known one. Returns whether any slot was private; if so, the caller updates the limits. */
static inline bool filch_split_publish(filch_split *s, uint32_t count)
{
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    if (count <= filch_split_split(word))
        return false;
    filch_split_know(s, count + 1);
    do {
        if (count <= filch_split_split(word)) {
            /* An idle worker has seen the new `known`, and has published them meanwhile. */
            filch_split_follow(s);
            return false;
        }
        /* release [task-ready], seq_cst [publish-or-sleep] */
    } while (!filch_cas_seq_cst(&s->word, &word, filch_split_word(count, filch_split_tail(word))));
    return true;
}

/* The number of public tasks that no thief has taken. */
static inline uint32_t filch_split_public_count(filch_split *s)
{
    /* relaxed: thieves may take one right after. A count that is too high is corrected when they
     * ask. */
    uint64_t word = filch_load_relaxed(&s->word);
    return filch_split_split(word) - filch_split_tail(word);
}

/* The owner forks slot `i`, the newest. Make it known, and with it the slots above it up to
 * `count`, which are free. */
static inline void filch_split_extend(filch_split *s, uint32_t i, uint32_t count)
{
    for (uint32_t k = i + 1; k < count; k++)
        filch_split_clear(s, k);
    filch_split_know(s, count);
    s->budget--;
    filch_split_follow(s);
}

/* Remove the mark of an idle worker, whose last step is to fail then. False: that step has come
 * first, and has published slot i. */
static __attribute__((noinline)) bool filch_split_unmark(filch_split *s, uint32_t i)
{
    /* relaxed: the cas decides; or the word tells that slot i is public, and the owner then takes
     * it back by another cas. */
    uint64_t word = filch_load_relaxed(&s->word);
    while (filch_split_split(word) <= i && filch_split_reacher(word) != 0)
        /* acq_rel [claim-or-reach] */
        if (filch_cas_acq_rel(&s->word, &word,
                              filch_split_word(filch_split_split(word), filch_split_tail(word))))
            return true;
    return filch_split_split(word) <= i;
}

/*
 * The owner has just claimed slot `i`, or a piece of the task there, by a store. Is the slot still
 * private? If so, no idle worker publishes it without seeing that store.
 *
 * The order of the store and the load here is kept by filch_barrier_all in the other thread. So the
 * owner needs no fence.
 */
static inline bool filch_split_keeps(filch_split *s, uint32_t i)
{
    filch_keep_order();
    /* relaxed: [claim-or-reach] */
    uint64_t word = filch_load_relaxed(&s->word);
    /* A mark is above the split in the word, so one comparison finds both. */
    return __builtin_expect(word >> FILCH_SPLIT_BITS <= i, 1) || filch_split_unmark(s, i);
}

/* The owner joins slot `i`, the newest, which is known and private as far as it knows. From now on
 * only the slots below `known` are. False: an idle worker has published the task. */
static inline bool filch_split_claim(filch_split *s, uint32_t i, uint32_t known)
{
    filch_slot *slot = filch_split_slots(s) + i;

    /* release [task-known]: a reacher may read this value instead of an older one. */
    filch_store_release(&s->known, known);
    /* release [claim-or-reach]: carries `known` */
    filch_store_release(&s->claimed, i);
    bool is_mine = filch_split_keeps(s, i);
    if (is_mine)
        /* relaxed: no thief can get the slot now. The release below carries it. */
        filch_store_relaxed(&slot->state, filch_load_relaxed(&slot->state) | FILCH_TASK_TAKEN);
    /* release [claim-or-reach] */
    filch_store_release(&s->claimed, UINT32_MAX);
    return is_mine;
}

/*
 * Reclaim the public task in slot `i`, the newest, and half of the older public tasks with it.
 * False: a thief has it.
 */
static inline bool filch_split_take_back(filch_split *s, uint32_t i)
{
    filch_slot *slot = filch_split_slots(s) + i;
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    while (i >= filch_split_tail(word)) {
        uint32_t tail = filch_split_tail(word), split = tail + (i - tail) / 2;
        /* relaxed: as in filch_split_claim. */
        uintptr_t state = filch_load_relaxed(&slot->state);
        /* Slot i is about to be the known one, but the caller runs its task: mark it, unless a
         * thief has completed it. The cas below releases the mark.
         * acq_rel [task-ready] */
        if (split == i && state != FILCH_TASK_DONE)
            filch_cas_acq_rel(&slot->state, &state, state | FILCH_TASK_TAKEN);
        /* The tasks that become private again were not begun: the states of their slots are
         * exact. */
        filch_split_know(s, split < i ? i : i + 1);
        /* acq_rel [task-ready]: publishes the remaining public slots again. */
        if (filch_cas_acq_rel(&s->word, &word, filch_split_word(split, tail))) {
            filch_split_follow(s);
            return true;
        }
    }
    return false;
}

/* The stolen task in slot `i` is complete. So every older task was stolen, too, and the slots from
 * `i` on are free. The state of slot i is exact: DONE. */
static inline void filch_split_reset(filch_split *s, uint32_t i)
{
    filch_split_know(s, i + 1);
    /* Nothing is public, so no thief claims a task; a reacher finds none.
     * release [task-known]: carries that slot i is free. */
    filch_store_release(&s->word, filch_split_word(i, i));
    filch_split_follow(s);
}

/* ---- thieves --------------------------------------------------------------------------------- */

static inline bool filch_split_has_public(filch_split *s)
{
    /* seq_cst [publish-or-sleep] */
    uint64_t word = filch_load_seq_cst(&s->word);
    return filch_split_tail(word) < filch_split_split(word);
}

/*
 * Take the oldest public task.
 *
 * The thief reads the slot only after its claim. If the word has changed and come back in between,
 * the slot holds another task, which is pending and public as well.
 */
static inline filch_steal_result filch_split_steal(filch_split *s, filch_slot **task)
{
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    uint32_t tail = filch_split_tail(word), split = filch_split_split(word);
    if (tail >= split)
        return FILCH_STEAL_EMPTY;
    /* The owner's core has both cache lines: fetch them at the same time. */
    filch_slot *slot = filch_split_slots(s) + tail;
    __builtin_prefetch(slot, 1);
    /* acquire [task-ready] */
    if (!filch_cas_acq_rel(&s->word, &word, word + 1))
        return FILCH_STEAL_LOST;
    *task = slot;
    return FILCH_STEAL_WON;
}

/*
 * Ask the owner to publish. The caller counts as idle in the sleep word before it asks.
 *
 * If another thief has asked already, a caller that will ask again later need not ask now: `insist`
 * is false. But the owner may then answer without seeing that the caller is idle. `insist` prevents
 * that.
 */
static inline void filch_split_ask(filch_split *s, bool insist)
{
    /* relaxed: see above. */
    if (!insist && filch_load_relaxed(&s->asked))
        return;
    /* acq_rel [asked] */
    filch_exchange_acq_rel(&s->asked, 1);
    filch_split_arm(s);
}

/* ---- idle workers ---------------------------------------------------------------------------- */

/*
 * Publish the known tasks for an owner that does not answer: mark the strand, call
 * filch_barrier_all, then filch_split_reach with the same mark. The mark is the caller's own, and
 * not 0. False: the strand has public tasks, or another worker's mark.
 */
static inline bool filch_split_mark(filch_split *s, uint32_t mark)
{
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    return filch_split_tail(word) == filch_split_split(word) && filch_split_reacher(word) == 0 &&
           /* acq_rel [claim-or-reach] */
           filch_cas_acq_rel(&s->word, &word, word | (uint64_t)mark << 2 * FILCH_SPLIT_BITS);
}

/* Remove the mark, and publish if `has_barrier`: the barrier did not fail. WON: there is a public
 * task now. EMPTY: the strand has no known task. LOST: it may have, look again later. */
static inline filch_steal_result filch_split_reach(filch_split *s, uint32_t mark, bool has_barrier)
{
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    uint32_t tail = filch_split_tail(word), n = tail;

    if (filch_split_reacher(word) != mark)
        return tail < filch_split_split(word) ? FILCH_STEAL_WON : FILCH_STEAL_LOST;
    /* acquire [claim-or-reach] */
    uint32_t claimed = filch_load_acquire(&s->claimed);
    /* acquire [task-known], [claim-or-reach] */
    uint32_t known = filch_load_acquire(&s->known);
    while (has_barrier && n < known && n < claimed && filch_split_is_live(&filch_split_slots(s)[n]))
        n++;
    /* release [task-ready], seq_cst [publish-or-sleep]. If this fails, the owner has removed the
     * mark: it has published or joined tasks itself. */
    if (!filch_cas_seq_cst(&s->word, &word, filch_split_word(n, tail)) || !has_barrier)
        return FILCH_STEAL_LOST;
    return n > tail ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY;
}

/* A hint: does the strand have a known task, and nothing public? */
static inline bool filch_split_seems_known(filch_split *s)
{
    /* relaxed: a hint. */
    uint64_t word = filch_load_relaxed(&s->word);
    uint32_t tail = filch_split_tail(word);
    return tail == filch_split_split(word) && tail < filch_split_known(s) &&
           filch_split_is_live(&filch_split_slots(s)[tail]);
}

#endif
