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
 *
 * Edges
 *   task-ready   filch_split_publish -> filch_split_steal
 *                carries the slot, and everything the owner wrote before it forked.
 *   asked        filch_split_ask -> filch_split_answer
 *                carries that the thief counts as idle. Both sides exchange the same word, so one
 *                comes first: either the owner sees the request, or the thief's limits come after
 *                the owner's.
 *   publish-or-sleep  filch_split_publish  x  filch_split_has_public
 *                with the sleep word (src/sleep/README.md).
 */
#ifndef FILCH_DEQUE_SPLIT_H
#define FILCH_DEQUE_SPLIT_H

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

    /* {split:32 | tail:32}. Written by owner and thieves. */
    filch_atomic_u64 word __attribute__((aligned(FILCH_CACHE_LINE)));

    /* Owner only. Fork may write to end[0] and end[1], but no task is ever there. Constant. */
    filch_slot *end __attribute__((aligned(FILCH_CACHE_LINE)));
    /* A copy of the word's split, unless is_used_up. */
    uint32_t split;
    /* The word shows slots that were stolen and are free again. The next publish corrects it. */
    bool is_used_up;
} filch_split;

/* The slots begin this far behind the split stack's address, in the same region. So a thief finds
 * them without reading a line that the owner writes. */
#define FILCH_SPLIT_HEADER_BYTES 640

static inline filch_slot *filch_split_slots(const filch_split *s)
{
    return (filch_slot *)((uintptr_t)s + FILCH_SPLIT_HEADER_BYTES);
}

static inline uint32_t filch_split_tail(uint64_t word)
{
    return (uint32_t)word;
}

static inline uint32_t filch_split_split(uint64_t word)
{
    return (uint32_t)(word >> 32);
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
    s->split = 0;
    s->is_used_up = false;
    /* relaxed: no other thread knows the strand yet. */
    filch_store_relaxed(&s->word, 0);
    filch_store_relaxed(&s->asked, 0);
    filch_split_arm(s);
}

/* ---- owner ----------------------------------------------------------------------------------- */

/* Make the slots below `count` public. Returns whether any was private; if so, the caller updates
 * the limits. */
static inline bool filch_split_publish(filch_split *s, uint32_t count)
{
    if (count <= s->split)
        return false;
    /* release [task-ready], seq_cst [publish-or-sleep] */
    if (s->is_used_up)
        filch_store_seq_cst(&s->word, (uint64_t)count << 32 | s->split);
    else
        filch_fetch_add_seq_cst(&s->word, (uint64_t)(count - s->split) << 32);
    s->is_used_up = false;
    s->split = count;
    return true;
}

/* The number of public tasks that no thief has taken. */
static inline uint32_t filch_split_public_count(filch_split *s)
{
    if (s->is_used_up)
        return 0;
    /* relaxed: thieves may take one right after. A count that is too high is corrected when they
     * ask. */
    return s->split - filch_split_tail(filch_load_relaxed(&s->word));
}

/* Return to fast forks and joins. Returns whether a thief has asked meanwhile; if so, the caller
 * looks again. */
static inline bool filch_split_answer(filch_split *s)
{
    /* relaxed: [asked] below orders these before the limits of a thief. */
    filch_store_relaxed(&s->limits.fork_limit, s->end);
    filch_store_relaxed(&s->limits.join_limit, filch_split_slots(s) + s->split);
    /* acq_rel [asked] */
    return filch_exchange_acq_rel(&s->asked, 0) != 0;
}

/* Update the limits after the split has moved. A request stays. */
static inline void filch_split_follow(filch_split *s)
{
    if (!filch_split_is_armed(s) && filch_split_answer(s))
        filch_split_arm(s);
}

/*
 * Reclaim the public task in slot `i`, the newest, and half of the older public tasks with it.
 * False: a thief has it.
 */
static inline bool filch_split_take_back(filch_split *s, uint32_t i)
{
    /* relaxed: the cas below decides. */
    uint64_t word = filch_load_relaxed(&s->word);
    while (i >= filch_split_tail(word)) {
        uint32_t tail = filch_split_tail(word), split = tail + (i - tail) / 2;
        /* acq_rel [task-ready]: publishes the remaining public slots again. */
        if (filch_cas_acq_rel(&s->word, &word, (uint64_t)split << 32 | tail)) {
            s->split = split;
            filch_split_follow(s);
            return true;
        }
    }
    return false;
}

/* The stolen task in slot `i` is complete. So every older task was stolen, too, and the slots from
 * `i` on are free. Nothing is public, so no thief changes the word. The owner leaves it alone until
 * the next publish: thieves read it all the time, and each change costs both sides a cache miss. */
static inline void filch_split_reset(filch_split *s, uint32_t i)
{
    s->is_used_up = true;
    s->split = i;
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

#endif
