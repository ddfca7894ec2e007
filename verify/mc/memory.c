/* SPDX-License-Identifier: MIT */
/*
 * The memory model: which store a load may read, where a store may go, and who knows what afterwards.
 *
 *     stores of x    0    1    2    3    4
 *                    too old   |  may be read; a new store may go behind each of them
 *                              mc_oldest: the newest that this thread, or one it has synchronised
 *                              with before that synchronisation, has read or written
 *
 * A read-modify-write goes right behind the store it has read, and nothing between them. README.md says how this relates to RC11.
 */
#include "mc/engine.h"

bool mc_is_acquire(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
           order == __ATOMIC_SEQ_CST;
}

bool mc_is_release(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool is_sc(int order)
{
    return order == __ATOMIC_SEQ_CST;
}

static uint64_t truncate_to(uint32_t size, uint64_t value)
{
    return size == 8 ? value : value & (((uint64_t)1 << 8 * size) - 1);
}

/* An operation is done: what its thread does from here on is later. */
void mc_tick(thread *t)
{
    t->now.seen[t->id] = ++t->now.hb[t->id];
}

/* ---- which stores may be read, and where a store may go ---------------------------------------- */

/* Whether a store can be put in between. */
static bool has_room_behind(const location *l, uint32_t i)
{
    return i + 1 == l->count || !l->stores[i + 1]->is_rmw;
}

typedef struct choice {
    uint32_t *candidates; /* besides the newest */
    unsigned count;
} choice;

/* True when there is a choice in principle; whether it is one here depends on what is added. */
static bool begin_choice(const location *l, uint64_t oldest, choice *c)
{
    *c = (choice){.candidates = NULL};
    if (mc_newest(l)->rank == oldest)
        return false;
    c->candidates = mc_scratch(l->count * sizeof *c->candidates);
    return true;
}

/* The store to read. */
static uint32_t choose_read(const thread *t, const location *l, int order)
{
    uint64_t oldest = mc_oldest(t, l, order);
    uint32_t newest = l->count - 1;
    choice c;

    if (!begin_choice(l, oldest, &c))
        return newest;
    for (uint32_t i = newest; i-- > 0 && l->stores[i]->rank >= oldest;)
        if (mc_is_needed(t, l, i, false))
            c.candidates[c.count++] = i;
    return mc_pick_store(newest, c.candidates, c.count);
}

/* The store that a read-modify-write replaces. */
static uint32_t choose_replaced(const thread *t, const location *l, int order)
{
    uint64_t oldest = mc_oldest(t, l, order);
    uint32_t newest = l->count - 1;
    choice c;

    if (!mc.has_places || !begin_choice(l, oldest, &c))
        return newest;
    for (uint32_t i = newest; i-- > 0 && l->stores[i]->rank >= oldest;)
        if (has_room_behind(l, i) && mc_is_needed(t, l, i, true))
            c.candidates[c.count++] = i;
    return mc_pick_store(newest, c.candidates, c.count);
}

/* The store behind which a new one goes. */
static uint32_t choose_place(const thread *t, const location *l, int order)
{
    return choose_replaced(t, l, order);
}

/* The store that a compare and swap reads: one with another value, or one that it can replace. */
static uint32_t choose_compared(const thread *t, const location *l, uint64_t wanted, int order,
                                int failure_order)
{
    uint64_t oldest = mc_oldest(t, l, order), oldest_failing = mc_oldest(t, l, failure_order);
    uint32_t newest = l->count - 1;
    choice c;

    if (!begin_choice(l, oldest_failing < oldest ? oldest_failing : oldest, &c))
        return newest;
    for (uint32_t i = newest; i-- > 0;) {
        const store *s = l->stores[i];
        bool is_equal = s->value == wanted;
        if (is_equal ? mc.has_places && s->rank >= oldest && has_room_behind(l, i)
                     : s->rank >= oldest_failing)
            if (mc_is_needed(t, l, i, is_equal))
                c.candidates[c.count++] = i;
    }
    return mc_pick_store(newest, c.candidates, c.count);
}

/* ---- reading and writing ----------------------------------------------------------------------- */

void mc_note_read(thread *t, location *l, const store *s)
{
    mc_spin_note(t, l, s->rank);
    mc_know(t, l, s->rank);
    l->last_use[t->id] = t->now.hb[t->id];
}

static const store *read_store(thread *t, location *l, uint32_t i, int order, mc_site site)
{
    const store *s = l->stores[i];

    if (s->is_uninitialised)
        mc_fail("%s:%d: T%d reads %s before anybody has written it", site.file, site.line, t->id,
                site.text);
    mc_note_read(t, l, s);
    join_view(&t->acquired, &s->view);
    if (mc_is_acquire(order))
        join_view(&t->now, &s->view);
    return s;
}

/* Behind store i. `replaced` is that store for a read-modify-write, which continues its release sequence. */
static store *write_store(thread *t, location *l, uint32_t i, uint64_t value, int order,
                          const store *replaced, mc_site site)
{
    store *s = mc_insert(l, i + 1, value, t->id, site);
    size_t offset;

    s->view = mc_is_release(order) ? t->now : t->released;
    if (replaced)
        join_view(&s->view, &replaced->view);
    s->is_rmw = replaced != NULL;
    s->seq = t->seq + 1;
    mc_know(t, l, s->rank);
    l->last_write[t->id] = l->last_use[t->id] = t->now.hb[t->id];
    if (is_sc(order))
        mc_log(l, SC, ++mc.sc_clock, s->rank);
    if (l->spun[t->id].round == t->round)
        mc_spin_note(t, l, s->rank); /* one's own store is no news */
    if (s == mc_newest(l))
        memcpy((void *)l->address, &s->value, l->size);
    if (mc_offset(l->address, &offset))
        mc_mark_written(offset, l->size);
    return s;
}

static void trace_read(const thread *t, const char *what, const location *l, uint32_t i, int order,
                       mc_site site)
{
    if (!mc.is_traced)
        return;
    const store *s = l->stores[i], *newest = mc_newest(l);
    if (s == newest)
        mc_trace(t, site, "%s %s %s: %s", what, mc_order_name(order), site.text,
                 mc_value_name(s->value, l->size));
    else
        mc_trace(t, site, "%s %s %s: %s, STALE: the newest is %s, by T%d at line %d", what,
                 mc_order_name(order), site.text, mc_value_name(s->value, l->size),
                 mc_value_name(newest->value, l->size), newest->tid, newest->site.line);
}

static void trace_write(const thread *t, const char *what, const location *l, const store *old,
                        const store *s, int order, mc_site site)
{
    if (!mc.is_traced)
        return;
    mc_trace(t, site, "%s %s %s%s%s = %s%s", what, mc_order_name(order), site.text,
             old ? ": was " : "", old ? mc_value_name(old->value, l->size) : "",
             mc_value_name(s->value, l->size), s == mc_newest(l) ? "" : ", BEHIND newer stores");
}

/* ---- operations -------------------------------------------------------------------------------- */

uint64_t mc_load(const volatile void *address, uint32_t size, int order, mc_site site)
{
    unsigned effects = READS | (is_sc(order) ? SC_ACCESS : 0);

    mc_announce(&(operation){
        .kind = OP_LOAD, .effects = effects, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate((uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, false, site);
    uint32_t i = choose_read(t, l, order);
    trace_read(t, "load", l, i, order, site);
    const store *s = read_store(t, l, i, order, site);
    mc_commit(t, &(deed){.kind = OP_LOAD, .effects = effects, .read = s});
    mc_tick(t);
    return s->value;
}

void mc_store(volatile void *address, uint32_t size, uint64_t value, int order, mc_site site)
{
    unsigned effects = WRITES | (is_sc(order) ? SC_ACCESS : 0);

    mc_announce(&(operation){
        .kind = OP_STORE, .effects = effects, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate((uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, true, site);
    uint32_t i = choose_place(t, l, order);
    store *s = write_store(t, l, i, value, order, NULL, site);
    trace_write(t, "store", l, NULL, s, order, site);
    mc_commit(t, &(deed){.kind = OP_STORE, .effects = effects, .written = s});
    mc_tick(t);
}

static uint64_t apply(mc_rmw how, uint64_t old, uint64_t operand)
{
    switch (how) {
    case MC_ADD:
        return old + operand;
    case MC_SUB:
        return old - operand;
    case MC_AND:
        return old & operand;
    case MC_OR:
        return old | operand;
    case MC_XOR:
        return old ^ operand;
    default:
        return operand;
    }
}

/* A read-modify-write of store i. */
static uint64_t replace(thread *t, location *l, uint32_t i, mc_rmw how, uint64_t operand, int order,
                        mc_site site)
{
    const store *old = read_store(t, l, i, order, site);
    store *s = write_store(t, l, i, apply(how, old->value, operand), order, old, site);

    trace_write(t, how == MC_EXCHANGE ? "exchange" : "modify", l, old, s, order, site);
    mc_commit(t, &(deed){.kind = OP_RMW,
                         .effects = READS | WRITES | (is_sc(order) ? SC_ACCESS : 0),
                         .written = s});
    mc_tick(t);
    return old->value;
}

uint64_t mc_modify(volatile void *address, uint32_t size, mc_rmw how, uint64_t operand, int order,
                   mc_site site)
{
    unsigned effects = READS | WRITES | (is_sc(order) ? SC_ACCESS : 0);

    mc_announce(&(operation){
        .kind = OP_RMW, .effects = effects, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate((uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, true, site);
    return replace(t, l, choose_replaced(t, l, order), how, operand, order, site);
}

bool mc_cas(volatile void *address, uint32_t size, uint64_t *expected, uint64_t value, int order,
            int failure_order, mc_site site)
{
    unsigned sc = is_sc(order) || is_sc(failure_order) ? SC_ACCESS : 0;

    mc_announce(&(operation){.kind = OP_CAS,
                             .effects = READS | WRITES | sc,
                             .address = (uintptr_t)address,
                             .site = site});
    thread *t = mc.current;
    location *l = mc_locate((uintptr_t)address, size, site);
    uint64_t wanted = truncate_to(size, *expected);
    uint32_t i = choose_compared(t, l, wanted, order, failure_order);

    if (l->stores[i]->value == wanted) {
        mc_check_plain(t, l->address, size, true, site);
        replace(t, l, i, MC_EXCHANGE, value, order, site);
        return true;
    }
    mc_check_plain(t, l->address, size, false, site);
    trace_read(t, "cas fails", l, i, failure_order, site);
    const store *s = read_store(t, l, i, failure_order, site);
    *expected = s->value;
    mc_commit(t, &(deed){.kind = OP_CAS,
                         .effects = READS | (is_sc(failure_order) ? SC_ACCESS : 0),
                         .read = s});
    mc_tick(t);
    return false;
}

/* A seq_cst fence learns what all earlier ones, and seq_cst stores, have made known, and adds what it knows. */
static void sc_fence(thread *t)
{
    mc.sc.seen[SC] = mc.sc_clock;
    for (int i = 0; i <= SC; i++) {
        uint32_t clock = t->now.seen[i] > mc.sc.seen[i] ? t->now.seen[i] : mc.sc.seen[i];
        t->now.seen[i] = mc.sc.seen[i] = clock;
    }
}

void mc_fence(int order, mc_site site)
{
    if (is_sc(order))
        mc_announce(&(operation){.kind = OP_FENCE, .effects = SC_FENCE, .site = site});
    thread *t = mc.current;
    if (mc_is_acquire(order))
        join_view(&t->now, &t->acquired);
    if (is_sc(order))
        sc_fence(t);
    if (mc_is_release(order))
        t->released = t->now;
    mc_trace(t, site, "fence %s", mc_order_name(order));
    if (is_sc(order))
        mc_commit(t, &(deed){.kind = OP_FENCE, .effects = SC_FENCE});
    mc_tick(t);
}
