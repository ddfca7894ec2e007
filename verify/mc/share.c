/* SPDX-License-Identifier: MIT */
/*
 * Which words are shared: one thread writes them, and another uses them.
 *
 * A preemption before an operation at any other word can just as well come right after that
 * operation: no thread can tell the difference. So bounded search preempts a thread only before
 * operations at words that are shared in some execution.
 *
 * The search learns on the way which words these are. With the full number of preemptions, it
 * begins again whenever it meets one more. An execution that was left out shares no unknown word.
 * Up to the first operation that would share one, it equals an execution that was tried.
 *
 * Each program starts with no word known, so its executions do not depend on the programs before.
 *
 * T0 alone, before the other threads begin and after they have ended, shares nothing.
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
    memset(known.words, 0, WORDS_MAX * sizeof *known.words);
    known.count = known.shared_count = 0;
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

/* Whether a preemption before t's next operation can make a difference. */
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
