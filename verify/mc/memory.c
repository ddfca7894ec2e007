/* SPDX-License-Identifier: MIT */
/*
 * The memory model: which store a load may read, and who knows what afterwards.
 *
 * A location is the list of its stores in modification order, which is the order of execution. A load reads the newest, or
 * an older one that nothing it knows of makes too old:
 *
 *     stores of x    0    1    2    3    4
 *                    too old   |  may be read
 *                              oldest_readable: the newest that this thread, or one it has synchronised
 *                              with before that synchronisation, has read or written
 *
 * README.md says how this relates to RC11.
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

/* ---- locations --------------------------------------------------------------------------------- */

static store *append(location *l, uint64_t value, int tid, mc_site site)
{
    if (l->count == l->capacity) {
        store **old = l->stores;
        l->capacity = l->capacity ? 2 * l->capacity : 8;
        l->stores = mc_scratch(l->capacity * sizeof *l->stores);
        if (old)
            memcpy(l->stores, old, l->count * sizeof *old);
    }
    store *s = mc_scratch(sizeof *s);
    s->value = truncate_to(l->size, value);
    s->tid = (uint8_t)tid;
    s->site = site;
    l->stores[l->count++] = s;
    return s;
}

static void log_access(location *l, int who, uint32_t clock, uint32_t index)
{
    visit *a = mc_scratch(sizeof *a);

    *a = (visit){clock, index, l->last[who]};
    l->last[who] = a;
}

static uint64_t value_in_memory(const location *l)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)l->address, l->size);
    return value;
}

/* A plain store to the word is a store like others; that everybody who comes later knows of it was checked. */
static void absorb_plain(location *l)
{
    l->is_overwritten = false;
    append(l, value_in_memory(l), l->plain_tid, MC_SITE("plain"));
    log_access(l, l->plain_tid, l->plain_clock, l->count - 1);
}

static location *create(uintptr_t address, uint32_t size, uint16_t *ids, mc_site site)
{
    if (mc.location_count == UINT16_MAX - 1)
        mc_fatal("limit", "more than %u atomic words", mc.location_count);
    if (address % size)
        mc_fail("%s:%d: %s is not aligned", site.file, site.line, site.text);
    location *l = &mc.locations[++mc.location_count];
    memset(l, 0, sizeof *l);
    l->address = address;
    l->size = size;
    append(l, value_in_memory(l), 0, MC_SITE("initial"))->is_uninitialised =
        !mc_is_initialised(address, size);
    for (uint32_t i = 0; i < size; i++)
        ids[i] = (uint16_t)mc.location_count;
    return l;
}

location *mc_locate(uintptr_t address, uint32_t size, mc_site site)
{
    size_t offset;

    if (!mc_offset(address, &offset))
        mc_fail("%s:%d: %s is atomic, but not in the program's memory", site.file, site.line,
                site.text);
    mc_check_live(address, size, NULL);
    uint16_t *ids = mc_location_ids(offset);
    for (uint32_t i = 0; i < size; i++) {
        location *l = &mc.locations[ids[i]];
        if (ids[i] == 0 || (l->address == address && l->size == size))
            continue;
        /* Another word was here before, on a stack that was left, and has been written over. */
        if (l->is_overwritten)
            ids[i] = 0;
        else
            mc_fail("%s:%d: %s has %u bytes, but was accessed with %u", site.file, site.line,
                    site.text, size, l->size);
    }
    location *l = ids[0] ? &mc.locations[ids[0]] : create(address, size, ids, site);
    if (l->is_overwritten)
        absorb_plain(l);
    return l;
}

uint64_t mc_newest(const location *l)
{
    return l->stores[l->count - 1]->value;
}

/* ---- which stores may be read ------------------------------------------------------------------ */

static uint32_t newest_known(const location *l, int who, uint32_t clock)
{
    const visit *a = l->last[who];

    while (a && a->clock > clock)
        a = a->before;
    return a ? a->index : 0;
}

static uint32_t oldest_readable(const thread *t, const location *l, int order)
{
    uint32_t oldest = 0;

    for (int who = 0; who <= SC; who++) {
        uint32_t clock = t->now.seen[who];
        if (is_sc(order))
            clock = who == SC || mc.sc.seen[who] > clock
                        ? (who == SC ? mc.sc_clock : mc.sc.seen[who])
                        : clock;
        if (who == t->id)
            clock = UINT32_MAX;
        uint32_t known = newest_known(l, who, clock);
        oldest = known > oldest ? known : oldest;
    }
    return oldest;
}

/* Choose the store to read: the newest, or an older one whose value differs from `unless`, if that is given. Where the
 * exploration is reduced, an older one is no choice when the load could as well have been done
 * before the next newer store: that order is tried, too. */
static uint32_t choose_store(const thread *t, const location *l, int order, const uint64_t *unless)
{
    uint32_t newest = l->count - 1, oldest = oldest_readable(t, l, order);
    unsigned count = 0;

    if (newest == oldest)
        return newest;
    uint32_t *candidates = mc_scratch((newest - oldest) * sizeof *candidates);
    for (uint32_t i = newest; i-- > oldest;) {
        if (mc.is_reduced && !mc_is_past(t, l->stores[i + 1]))
            continue;
        if (!unless || l->stores[i]->value != *unless)
            candidates[count++] = i;
    }
    return mc_pick_store(newest, candidates, count);
}

/* ---- reading and writing ----------------------------------------------------------------------- */

/* The thread, and who synchronises with it, does not read anything older from now on. */
void mc_know(thread *t, location *l, uint32_t index)
{
    log_access(l, t->id, t->now.hb[t->id], index);
}

void mc_note_read(thread *t, location *l, uint32_t index)
{
    mc_spin_note(t, l, index);
    mc_know(t, l, index);
}

static const store *read_store(thread *t, location *l, uint32_t index, int order, mc_site site)
{
    const store *s = l->stores[index];

    if (s->is_uninitialised)
        mc_fail("%s:%d: T%d reads %s before anybody has written it", site.file, site.line, t->id,
                site.text);
    mc_note_read(t, l, index);
    join_view(&t->acquired, &s->view);
    if (mc_is_acquire(order))
        join_view(&t->now, &s->view);
    return s;
}

/* `inherited`: the store that a read-modify-write replaces; it continues that one's release sequence. */
static void write_store(thread *t, location *l, uint64_t value, int order, const store *inherited,
                        mc_site site)
{
    store *s = append(l, value, t->id, site);
    uint32_t index = l->count - 1;
    size_t offset;

    s->view = mc_is_release(order) ? t->now : t->released;
    if (inherited)
        join_view(&s->view, &inherited->view);
    s->seq = t->seq + 1;
    log_access(l, t->id, t->now.hb[t->id], index);
    l->last_write[t->id] = t->now.hb[t->id];
    if (is_sc(order))
        log_access(l, SC, ++mc.sc_clock, index);
    if (l->spun[t->id].round == t->round)
        mc_spin_note(t, l, index); /* one's own store is no news */
    memcpy((void *)l->address, &s->value, l->size);
    if (mc_offset(l->address, &offset))
        mc_mark_written(offset, l->size);
}

static void trace_read(const thread *t, const char *what, const location *l, uint32_t index,
                       int order, mc_site site)
{
    if (!mc.is_traced)
        return;
    const store *s = l->stores[index], *newest = l->stores[l->count - 1];
    if (s == newest)
        mc_trace(t, site, "%s %s %s: %s", what, mc_order_name(order), site.text,
                 mc_value_name(s->value, l->size));
    else
        mc_trace(t, site, "%s %s %s: %s, STALE: the newest is %s, by T%d at line %d", what,
                 mc_order_name(order), site.text, mc_value_name(s->value, l->size),
                 mc_value_name(newest->value, l->size), newest->tid, newest->site.line);
}

static void trace_write(const thread *t, const char *what, const location *l, int order,
                        mc_site site)
{
    if (mc.is_traced)
        mc_trace(t, site, "%s %s %s = %s", what, mc_order_name(order), site.text,
                 mc_value_name(mc_newest(l), l->size));
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
    uint32_t index = choose_store(t, l, order, NULL);
    trace_read(t, "load", l, index, order, site);
    const store *s = read_store(t, l, index, order, site);
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
    write_store(t, l, value, order, NULL, site);
    trace_write(t, "store", l, order, site);
    mc_commit(t, &(deed){.kind = OP_STORE, .effects = effects, .written = l});
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

/* A read-modify-write that succeeds: it reads the newest store. */
static uint64_t replace(thread *t, location *l, mc_rmw how, uint64_t operand, int order,
                        mc_site site)
{
    const store *old = read_store(t, l, l->count - 1, order, site);

    write_store(t, l, apply(how, old->value, operand), order, old, site);
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
    uint64_t old = replace(t, l, how, operand, order, site);
    if (mc.is_traced)
        mc_trace(t, site, "%s %s %s: %s -> %s", how == MC_EXCHANGE ? "exchange" : "modify",
                 mc_order_name(order), site.text, mc_value_name(old, size),
                 mc_value_name(mc_newest(l), size));
    mc_commit(t, &(deed){.kind = OP_RMW, .effects = effects, .written = l});
    mc_tick(t);
    return old;
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
    uint32_t newest = l->count - 1, index = choose_store(t, l, failure_order, &wanted);

    if (index == newest && mc_newest(l) == wanted) {
        mc_check_plain(t, l->address, size, true, site);
        replace(t, l, MC_EXCHANGE, value, order, site);
        trace_write(t, "cas", l, order, site);
        mc_commit(t, &(deed){.kind = OP_RMW,
                             .effects = READS | WRITES | (is_sc(order) ? SC_ACCESS : 0),
                             .written = l});
        mc_tick(t);
        return true;
    }
    mc_check_plain(t, l->address, size, false, site);
    trace_read(t, "cas fails", l, index, failure_order, site);
    const store *s = read_store(t, l, index, failure_order, site);
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
