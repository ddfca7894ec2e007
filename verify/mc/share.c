/* SPDX-License-Identifier: MIT */
/*
 * Which words are shared: written by one thread, and used by another.
 *
 * A preemption before an operation at any other word can as well come after it, before the next operation of the same thread: nobody can tell. So
 * bounded search preempts a thread only before operations at words that are shared in some execution. Which these are is found
 * out on the way: the search is repeated if there were more in the end than in the beginning. What was left out then cannot have shared a
 * word that is not known: up to the first operation that does it would be the same as one that was tried. Words that another program has shared are kept:
 * too many do no harm.
 *
 * What T0 does alone, before the others begin and after they have ended, shares nothing.
 */
#include "mc/engine.h"

#define WORDS_MAX (1u << 16)

typedef struct word {
    uintptr_t address; /* 0: none */
    uint8_t readers, writers;
} word;

static MC_KEEP struct {
    word *words;
    unsigned count, shared_count;
} known;

void mc_share_begin(void)
{
    if (!known.words)
        known.words = mc_reserve(WORDS_MAX * sizeof *known.words);
}

unsigned mc_share_count(void)
{
    return known.shared_count;
}

static word *find_word(uintptr_t address)
{
    uint64_t hash = (uint64_t)(address >> 2) * 0x9e3779b97f4a7c15u;
    unsigned at = (unsigned)(hash >> 48);

    while (known.words[at].address && known.words[at].address != address)
        at = (at + 1) % WORDS_MAX;
    return &known.words[at];
}

static bool is_shared(const word *w)
{
    unsigned users = w->readers | w->writers;
    return w->writers && users & (users - 1);
}

static bool is_alone(const thread *t)
{
    for (int i = 1; i < mc.thread_count; i++)
        if (mc.threads[i].state < THREAD_ENDED)
            return false;
    return t->id == 0;
}

void mc_share_note(const thread *t, const step *s)
{
    if (!(s->effects & (READS | WRITES)) || is_alone(t))
        return;
    word *w = find_word(s->address);
    bool was_shared = is_shared(w);

    if (!w->address) {
        w->address = s->address;
        if (++known.count == WORDS_MAX / 2)
            mc_fatal("limit", "more than %u words", known.count);
    }
    if (s->effects & READS)
        w->readers |= (uint8_t)(1u << t->id);
    if (s->effects & WRITES)
        w->writers |= (uint8_t)(1u << t->id);
    known.shared_count += !was_shared && is_shared(w);
}

/* Whether it makes a difference what comes before t's next operation. */
bool mc_share_matters(const thread *t)
{
    switch (t->op.kind) {
    case OP_LOAD:
    case OP_STORE:
    case OP_RMW:
    case OP_CAS:
        return t->may_crash || is_shared(find_word(t->op.address));
    default:
        return true;
    }
}
