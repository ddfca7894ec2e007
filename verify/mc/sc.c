/* SPDX-License-Identifier: MIT */
/*
 * Which choices seq_cst forbids: those that close a cycle in psc, RC11's partial order of seq_cst
 * operations.
 *
 * "a is known to b" means that a happens before b. These operations precede each other:
 *
 *     in one thread   the earlier precedes the later
 *     accesses a, b   of one word: a is known to b, or b stores behind the store that a has read or
 *                     made
 *                     of two words: c is known to d. Here c is the next operation of a's thread at
 *                     another word than a, and d the last one of b's thread before b at another
 *                     word than b
 *     access a, fence f   f knows a store behind the store that a has read or made
 *     fence f, access a   a stores behind a store that an operation which knows f has read or made
 *     fences f, g     at some word, an operation that knows f is older than one that g knows
 *
 * Nothing else orders them, least of all the order of execution. README.md derives this from the
 * definition.
 *
 * psc is not stored. An operation that reads or makes the newest store precedes nothing yet, so it
 * closes no cycle. For other choices the engine looks for a cycle: through the operation, or
 * through a fence that is known to it. Nothing else precedes more operations than before.
 */
#include "mc/engine.h"

/* ---- operations of a thread at one word, and then elsewhere ---------------------------------- */

void mc_stay(thread *t, const location *l)
{
    if (l && t->stay && t->stay->location == l)
        return;
    if (t->stay)
        t->stay->end = t->now.hb[t->id];
    t->stay = NULL;
    if (!l)
        return;
    t->stay = mc_scratch(sizeof *t->stay);
    *t->stay = (stay){l, t->now, UINT32_MAX};
}

/* ---- psc ------------------------------------------------------------------------------------- */

static bool is_fence(const visit *v)
{
    return !v->stay;
}

static bool happens_before(const visit *a, const visit *b)
{
    return a != b && a->clock <= b->now.hb[a->tid];
}

/* The order of all operations at one word: a store, the reads of it, the next store. */
static uint64_t position(const visit *v)
{
    return 2 * v->rank + (v->kind == VISIT_READ);
}

/* The first position, at the word, of an operation that knows the fence. */
static uint64_t first_after(const visit *fence, const location *l)
{
    uint64_t first = UINT64_MAX;

    for (int who = 0; who < mc.thread_count; who++)
        for (const visit *v = l->last[who]; v; v = v->before)
            if (v->kind != VISIT_NONE && happens_before(fence, v) && position(v) < first)
                first = position(v);
    return first;
}

/* The last position of an operation or a store that the fence knows. */
static uint64_t last_before(const visit *fence, const location *l, bool is_store)
{
    uint64_t last = 0;

    for (int who = 0; who < mc.thread_count; who++)
        for (const visit *v = l->last[who]; v; v = v->before)
            if ((v->kind == VISIT_WRITE || (v->kind == VISIT_READ && !is_store)) &&
                happens_before(v, fence) && position(v) > last)
                last = position(v);
    return last;
}

static bool is_older_somewhere(const visit *f, const visit *g)
{
    for (unsigned i = 1; i <= mc.location_count; i++)
        if (first_after(f, &mc.locations[i]) < last_before(g, &mc.locations[i], false))
            return true;
    return false;
}

static bool precedes(const visit *a, const visit *b)
{
    if (a->tid == b->tid && a != b)
        return a->clock < b->clock;
    if (is_fence(a) && is_fence(b))
        return is_older_somewhere(a, b);
    if (is_fence(a))
        return b->kind == VISIT_WRITE && first_after(a, b->stay->location) < position(b);
    if (is_fence(b))
        return position(a) < last_before(b, a->stay->location, true);
    if (a->stay->location == b->stay->location)
        return happens_before(a, b) || (b->kind == VISIT_WRITE && position(a) < position(b));
    return a->stay->end <= b->stay->before.hb[a->tid];
}

/* ---- cycles ---------------------------------------------------------------------------------- */

static bool is_on_cycle(visit *start)
{
    static MC_KEEP uint64_t round;
    visit *todo = start;

    round++;
    start->todo = NULL;
    while (todo) {
        const visit *a = todo;
        todo = a->todo;
        for (visit *b = mc.sc; b; b = b->sc_before) {
            if (b->round == round || !precedes(a, b))
                continue;
            if (b == start)
                return true;
            b->round = round;
            b->todo = todo;
            todo = b;
        }
    }
    return false;
}

bool mc_sc_allows(const thread *t, location *l, uint32_t i, bool is_write, int order)
{
    bool is_sc = order == __ATOMIC_SEQ_CST, is_cyclic;

    if (!is_sc && !mc.has_sc_fence)
        return true;
    visit v = {.tid = (uint8_t)t->id,
               .kind = is_write ? VISIT_WRITE : VISIT_READ,
               .clock = t->now.hb[t->id],
               .rank = is_write ? mc_rank_behind(l, i) : l->stores[i]->rank,
               .now = t->now, /* what it acquires makes no difference: that is no older than i */
               .stay = t->stay,
               .before = l->last[t->id],
               .sc_before = mc.sc};
    /* Pretend that the operation is done. */
    l->last[t->id] = &v;
    mc.sc = is_sc ? &v : mc.sc;
    is_cyclic = is_sc && is_on_cycle(&v);
    for (visit *f = mc.sc; mc.has_sc_fence && f && !is_cyclic; f = f->sc_before)
        is_cyclic = is_fence(f) && happens_before(f, &v) && is_on_cycle(f);
    mc.sc = is_sc ? v.sc_before : mc.sc;
    l->last[t->id] = v.before;
    return !is_cyclic;
}

void mc_sc_add(visit *v)
{
    v->sc_before = mc.sc;
    mc.sc = v;
}

void mc_sc_fence(const thread *t)
{
    visit *v = mc_scratch(sizeof *v);

    v->tid = (uint8_t)t->id;
    v->clock = t->now.hb[t->id];
    v->now = t->now;
    mc_sc_add(v);
    mc.has_sc_fence = true;
}
