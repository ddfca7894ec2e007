/* SPDX-License-Identifier: MIT */
/*
 * The memory model: which store a load may read, where a store may go, and which stores threads
 * know afterwards.
 *
 *     stores of x    0    1    2    3    4
 *                    too old   |  may be read; a new store may go behind each of them
 *                              mc_oldest: the newest store that this thread has read or written; or
 *                              that another thread had, before this one synchronised with it
 *
 * A read-modify-write goes right behind the store that it reads, and no store goes between them.
 * README.md relates this to RC11.
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

static uint64_t truncate_to(uint32_t size, uint64_t value)
{
    return size == 8 ? value : value & (((uint64_t)1 << 8 * size) - 1);
}

/* End an operation: all later ones of its thread have a later clock. */
void mc_tick(thread *t)
{
    t->now.hb[t->id]++;
}

/* ---- which stores may be read, and where a store may go -------------------------------------- */

/* Whether a store may go between store i and the next. */
static bool has_room_behind(const location *l, uint32_t i)
{
    return i + 1 == l->count || !l->stores[i + 1]->is_rmw;
}

typedef struct choice {
    uint32_t *candidates; /* besides the newest */
    unsigned count;
} choice;

/* Whether there are alternatives in principle; the choice of candidates decides it. */
static bool begin_choice(const location *l, uint64_t oldest, choice *c)
{
    *c = (choice){.candidates = NULL};
    if (mc_newest(l)->rank == oldest)
        return false;
    c->candidates = mc_scratch(l->count * sizeof *c->candidates);
    return true;
}

/* Add store i, which is not the newest: to read it, or to write behind it. */
static void add_candidate(choice *c, const thread *t, location *l, uint32_t i, bool is_write,
                          int order)
{
    if (is_write && !(mc.has_places && has_room_behind(l, i)))
        return;
    if (mc_is_needed(t, l, i, is_write) && mc_sc_allows(t, l, i, is_write, order))
        c->candidates[c->count++] = i;
}

/* Choose the store to read, or to write behind; a read-modify-write reads it. */
static uint32_t choose(const thread *t, location *l, bool is_write, int order)
{
    uint64_t oldest = mc_oldest(t, l);
    uint32_t newest = l->count - 1;
    choice c;

    if ((is_write && !mc.has_places) || !begin_choice(l, oldest, &c))
        return newest;
    for (uint32_t i = newest; i-- > 0 && l->stores[i]->rank >= oldest;)
        add_candidate(&c, t, l, i, is_write, order);
    return mc_pick_store(newest, c.candidates, c.count);
}

/* Choose the store that a compare and swap reads: it has another value, or can be replaced. */
static uint32_t choose_compared(const thread *t, location *l, uint64_t wanted, int order,
                                int failure_order)
{
    uint64_t oldest = mc_oldest(t, l);
    uint32_t newest = l->count - 1;
    choice c;

    if (!begin_choice(l, oldest, &c))
        return newest;
    for (uint32_t i = newest; i-- > 0 && l->stores[i]->rank >= oldest;) {
        bool is_equal = l->stores[i]->value == wanted;
        add_candidate(&c, t, l, i, is_equal, is_equal ? order : failure_order);
    }
    return mc_pick_store(newest, c.candidates, c.count);
}

/*
 * The possible effects of t's next operation, whichever store it chooses. A compare and swap that
 * cannot succeed only reads. If it could succeed but chooses to fail, it counts as a success.
 */
unsigned mc_next_effects(const thread *t)
{
    const location *l = t->op.kind == OP_CAS ? mc_find(t->op.address) : NULL;

    if (!l)
        return t->op.effects;
    uint64_t oldest = mc_oldest(t, l);
    for (uint32_t i = l->count; i-- > 0 && l->stores[i]->rank >= oldest;)
        if (l->stores[i]->value == t->op.wanted && has_room_behind(l, i))
            return READS | WRITES;
    return READS;
}

/* ---- reading and writing --------------------------------------------------------------------- */

/* A load or a read-modify-write learns from store i. */
static const store *read_store(thread *t, location *l, uint32_t i, int order, mc_site site)
{
    const store *s = l->stores[i];

    if (s->is_uninitialised)
        mc_fail("%s:%d: T%d reads %s before anybody has written it", site.file, site.line, t->id,
                site.text);
    join_view(&t->acquired, &s->view);
    if (mc_is_acquire(order))
        join_view(&t->now, &s->view);
    mc_spin_note(t, l, s->rank);
    return s;
}

/* Write behind store i. For a read-modify-write, `replaced` is that store: its release sequence
 * goes on. */
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
    mc_visit(t, l, s->rank, VISIT_WRITE, order);
    l->last_write[t->id] = t->now.hb[t->id];
    if (l->spun[t->id].round == t->round)
        mc_spin_note(t, l, s->rank); /* the thread's own store is no news */
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

/* ---- operations ------------------------------------------------------------------------------ */

/* A load, or a compare and swap that fails, of store i. */
static uint64_t load(thread *t, location *l, uint32_t i, unsigned effects, int order, mc_site site)
{
    trace_read(t, t->op.kind == OP_LOAD ? "load" : "cas fails", l, i, order, site);
    const store *s = read_store(t, l, i, order, site);
    mc_visit(t, l, s->rank, VISIT_READ, order);
    mc_commit(t, &(deed){.kind = t->op.kind, .effects = effects, .read = s});
    mc_tick(t);
    return s->value;
}

uint64_t mc_load(const volatile void *address, uint32_t size, int order, mc_site site)
{
    mc_announce(&(operation){
        .kind = OP_LOAD, .effects = READS, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate(t, (uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, false, site);
    return load(t, l, choose(t, l, false, order), READS, order, site);
}

void mc_store(volatile void *address, uint32_t size, uint64_t value, int order, mc_site site)
{
    mc_announce(&(operation){
        .kind = OP_STORE, .effects = WRITES, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate(t, (uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, true, site);
    uint32_t i = choose(t, l, true, order);
    store *s = write_store(t, l, i, value, order, NULL, site);
    trace_write(t, "store", l, NULL, s, order, site);
    mc_commit(t, &(deed){.kind = OP_STORE, .effects = WRITES, .written = s});
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
    mc_commit(t, &(deed){.kind = OP_RMW, .effects = READS | WRITES, .written = s});
    mc_tick(t);
    return old->value;
}

uint64_t mc_modify(volatile void *address, uint32_t size, mc_rmw how, uint64_t operand, int order,
                   mc_site site)
{
    mc_announce(&(operation){
        .kind = OP_RMW, .effects = READS | WRITES, .address = (uintptr_t)address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate(t, (uintptr_t)address, size, site);
    mc_check_plain(t, l->address, size, true, site);
    return replace(t, l, choose(t, l, true, order), how, operand, order, site);
}

bool mc_cas(volatile void *address, uint32_t size, uint64_t *expected, uint64_t value, int order,
            int failure_order, mc_site site)
{
    uint64_t wanted = truncate_to(size, *expected);

    mc_announce(&(operation){.kind = OP_CAS,
                             .effects = READS | WRITES,
                             .address = (uintptr_t)address,
                             .wanted = wanted,
                             .site = site});
    thread *t = mc.current;
    location *l = mc_locate(t, (uintptr_t)address, size, site);
    unsigned effects = mc_next_effects(t);
    uint32_t i = choose_compared(t, l, wanted, order, failure_order);

    if (l->stores[i]->value == wanted) {
        mc_check_plain(t, l->address, size, true, site);
        replace(t, l, i, MC_EXCHANGE, value, order, site);
        return true;
    }
    mc_check_plain(t, l->address, size, false, site);
    *expected = load(t, l, i, effects, failure_order, site);
    return false;
}

/* The point of each other thread is where it stands. Not for MC_FULL: its search leaves out orders
 * of events that the barrier could tell apart. */
void mc_barrier_all(void)
{
    thread *t = mc.current;

    mc_stay(t, NULL);
    for (int i = 0; i < mc.thread_count; i++)
        join_view(&t->now, &mc.threads[i].now);
    for (int i = 0; i < mc.thread_count; i++)
        join_view(&mc.threads[i].now, &t->now);
    mc_tick(t);
}

/* A fence is no step: it changes only how later operations of its own thread act. */
void mc_fence(int order, mc_site site)
{
    thread *t = mc.current;

    mc_stay(t, NULL);
    if (mc_is_acquire(order))
        join_view(&t->now, &t->acquired);
    if (mc_is_release(order))
        t->released = t->now;
    if (order == __ATOMIC_SEQ_CST)
        mc_sc_fence(t);
    mc_trace(t, site, "fence %s", mc_order_name(order));
    mc_tick(t);
}
