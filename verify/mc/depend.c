/* SPDX-License-Identifier: MIT */
/*
 * Which operations do not commute, and which other orders the search must therefore try.
 *
 * Two executions are equivalent when swapping independent neighbours turns one into the other. The
 * search runs one of each kind: source-DPOR (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014) with
 * sleep sets.
 *
 *     steps    ... e ......... p       e and p are dependent, and nothing in between forces
 *                   \__ v __/          e before p: a race. At e's node, try a thread that can
 *                                      begin the steps that do not need e, followed by p.
 *
 * The choice of a store to read belongs to the step: the search tries all choices wherever the step
 * stands. So two steps conflict if some choice makes them conflict. That answer must be the same
 * for a done step (are_dependent) and for the next step of a sleeping thread (conflicts_with_next).
 *
 * The rules of seq_cst do not depend on the order of steps (README.md: Exploration), so they make
 * no steps dependent.
 */
#include "mc/engine.h"

static bool touches(const spin *spins, unsigned count, uintptr_t address)
{
    for (unsigned i = 0; i < count; i++)
        if (spins[i].location->address == address)
            return true;
    return false;
}

static bool effects_conflict(unsigned a, unsigned b, bool same_address)
{
    if (same_address &&
        ((a & WRITES && b & (READS | WRITES)) || (b & WRITES && a & (READS | WRITES))))
        return true;
    return same_address && ((a & WAKES && b & (WAITS | WAKES)) || (b & WAKES && a & WAITS));
}

/* Whether s asks if t lives. t may die instead of doing any of its steps. */
static bool asks_about(const step *s, const thread *t)
{
    return t->may_crash && s->effects & READS && s->address == (uintptr_t)t;
}

static bool steps_conflict(const step *a, const step *b)
{
    if (asks_about(a, &mc.threads[b->tid]) || asks_about(b, &mc.threads[a->tid]))
        return true;
    if (b->spins)
        return a->effects & WRITES && touches(b->spins, b->spin_count, a->address);
    if (a->spins)
        return b->effects & WRITES && touches(a->spins, a->spin_count, b->address);
    return effects_conflict(a->effects, b->effects, a->address == b->address);
}

/* Whether a sleeping thread must be tried again after `done`. */
static bool conflicts_with_next(const thread *t, const step *done)
{
    if (asks_about(done, t))
        return true;
    if (t->op.kind == OP_PAUSE)
        return done->effects & WRITES && touches(t->spinning, t->spin_count, done->address);
    return effects_conflict(mc_next_effects(t), done->effects, t->op.address == done->address);
}

/* ---- old stores ------------------------------------------------------------------------------ */

static void join_past(uint32_t *to, const uint32_t *from)
{
    for (int i = 0; i < MC_THREADS_MAX; i++)
        to[i] = from[i] > to[i] ? from[i] : to[i];
}

/*
 * Whether the search must try an operation that reads store i, or goes behind it, and ignores newer
 * stores.
 *
 * If a newer store is not in the operation's past, the operation could have come before that store.
 * The race between the two makes the search try that order. With this choice, the past also
 * includes the store that the operation reads. If the operation writes, the past includes all
 * operations that wrote or read an older store, too.
 */
bool mc_is_needed(const thread *t, const location *l, uint32_t i, bool is_write)
{
    const store *behind = l->stores[i];
    uint32_t past[MC_THREADS_MAX];

    if (!mc.is_reduced)
        return true;
    memcpy(past, t->past, sizeof past);
    if (behind->past)
        join_past(past, behind->past);
    for (unsigned k = 0; is_write && k < mc.step_count; k++)
        if (mc.steps[k].address == l->address && mc.steps[k].rank <= behind->rank)
            join_past(past, mc.steps[k].past);
    for (uint32_t k = i + 1; k < l->count; k++)
        if (l->stores[k]->seq > past[l->stores[k]->tid] && l->stores[k]->tid != t->id)
            return false;
    return true;
}

/*
 * Bounded search: whether t, preempted before its next operation, could equally have been preempted
 * after it. That holds if every step since then commutes with the operation. The later preemption
 * costs no more, and the search tries it, too.
 */
bool mc_is_preempted_in_vain(const thread *t)
{
    if (mc.options.mode != MC_BOUNDED || mc.options.no_reduction || t->preempted_at == 0 ||
        t->may_crash)
        return false;
    for (unsigned k = t->preempted_at - 1; k < mc.step_count; k++)
        if (conflicts_with_next(t, &mc.steps[k]))
            return false;
    return true;
}

/* ---- races ----------------------------------------------------------------------------------- */

/* A pause cannot come before step e if it would have no news without e and the steps that need
 * e. */
static bool has_news_without(const step *pause, unsigned e)
{
    for (unsigned k = 0; k < mc.step_count; k++) {
        const step *s = &mc.steps[k];
        if (k == e || !(s->effects & WRITES) ||
            (k > e && s->past[mc.steps[e].tid] >= mc.steps[e].seq))
            continue;
        for (unsigned i = 0; i < pause->spin_count; i++)
            if (pause->spins[i].location->address == s->address && s->rank > pause->spins[i].rank)
                return true;
    }
    return false;
}

/* Threads that can begin v, then p: their first step in it needs no other step of it. */
static unsigned initials_after(unsigned e, const step *p)
{
    const step *race = &mc.steps[e];
    uint32_t first[MC_THREADS_MAX] = {0}; /* step of each thread in v */
    unsigned initials = 0;

    for (unsigned k = e + 1; k <= mc.step_count; k++) {
        const step *s = k < mc.step_count ? &mc.steps[k] : p;
        if (s != p && s->past[race->tid] >= race->seq)
            continue;
        if (first[s->tid])
            continue;
        bool needs_another = false;
        for (int t = 0; t < MC_THREADS_MAX; t++)
            needs_another |= first[t] && first[t] <= s->past[t];
        first[s->tid] = s->seq;
        if (!needs_another)
            initials |= 1u << s->tid;
    }
    return initials;
}

/* Find the races of p, which completes its past, and ask for the other orders. */
static void find_races(step *p)
{
    unsigned races[MC_THREADS_MAX], race_count = 0; /* at most one of each thread */

    for (unsigned k = mc.step_count; k-- > 0;) {
        const step *s = &mc.steps[k];
        if (s->seq <= p->past[s->tid] || !steps_conflict(s, p))
            continue;
        if (!p->spins || has_news_without(p, k))
            races[race_count++] = k;
        join_past(p->past, s->past);
    }
    for (unsigned i = 0; i < race_count; i++)
        mc_add_backtrack(mc.steps[races[i]].node, initials_after(races[i], p));
}

/* ---- a step is done -------------------------------------------------------------------------- */

/* Fingerprints of steps are added up, so the hash must be good. */
static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) + 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return h ^ h >> 31;
}

/* The step and the store that it read: the same in every equivalent order. */
static uint64_t fingerprint_of(const step *s, const deed *d)
{
    uint64_t h = mix(mix(mix(mix(0, s->tid), s->seq), d->kind), s->address);

    if (d->read)
        h = mix(mix(mix(h, d->read->tid), d->read->seq), d->read->value);
    return d->written ? mix(h, d->written->value) : h;
}

/* Add the modification orders. */
uint64_t mc_fingerprint(void)
{
    uint64_t sum = mc.fingerprint;

    for (unsigned k = 1; k <= mc.location_count; k++) {
        uint64_t h = mc.locations[k].address;
        for (uint32_t i = 0; i < mc.locations[k].count; i++)
            h = mix(mix(h, mc.locations[k].stores[i]->tid), mc.locations[k].stores[i]->seq);
        sum += h;
    }
    return sum;
}

void mc_commit(thread *t, const deed *d)
{
    if (mc.step_count >= (mc.options.max_steps ? mc.options.max_steps : 20000))
        mc_fail("more than %u operations: does a loop spin without filch_pause?", mc.step_count);
    step *s = &mc.steps[mc.step_count];
    /* The step repeats the execution before: its past is there already, and its races were found
     * then. */
    bool is_known = mc.is_reduced && mc_is_repeated();
    uint32_t past[MC_THREADS_MAX];
    memcpy(past, is_known ? s->past : t->past, sizeof past);
    *s = (step){.tid = (uint8_t)t->id,
                .effects = d->effects,
                .address = d->kind == OP_CRASH ? (uintptr_t)t : t->op.address,
                .rank = d->written ? d->written->rank
                        : d->read  ? d->read->rank
                                   : 0,
                .seq = ++t->seq,
                .node = mc_node()};
    if (d->kind == OP_PAUSE) {
        s->spins = t->spinning;
        s->spin_count = t->spin_count;
    }
    memcpy(s->past, past, sizeof s->past);
    s->past[t->id] = s->seq;
    if (mc.is_reduced && !is_known)
        find_races(s);
    memcpy(t->past, s->past, sizeof t->past);
    if (d->written)
        d->written->past = s->past;
    mc.step_count++;
    if (mc.options.mode == MC_BOUNDED)
        mc_share_note(t, s);
    for (int i = 0; i < mc.thread_count; i++)
        if (mc.asleep >> i & 1 && conflicts_with_next(&mc.threads[i], s))
            mc.asleep &= ~(1u << i);
    if (mc.options.each)
        mc.fingerprint += fingerprint_of(s, d);
}
