/* SPDX-License-Identifier: MIT */
/*
 * Atomic words and their history.
 *
 * Stores are kept in modification order, which may differ from the order of execution. So each
 * store has a rank, and a thread that reads or writes a store knows its rank from then on.
 */
#include "mc/engine.h"

#define RANK_STEP ((uint64_t)1 << 40)

uint64_t mc_rank_behind(const location *l, uint32_t i)
{
    uint64_t below = l->stores[i]->rank;

    return i + 1 < l->count ? below + (l->stores[i + 1]->rank - below) / 2 : below + RANK_STEP;
}

store *mc_insert(location *l, uint32_t at, uint64_t value, int tid, mc_site site)
{
    if (l->count == l->capacity) {
        store **old = l->stores;
        l->capacity = l->capacity ? 2 * l->capacity : 8;
        l->stores = mc_scratch(l->capacity * sizeof *l->stores);
        if (old)
            memcpy(l->stores, old, l->count * sizeof *old);
    }
    store *s = mc_scratch(sizeof *s);
    s->value = l->size == 8 ? value : value & (((uint64_t)1 << 8 * l->size) - 1);
    s->rank = at > 0 ? mc_rank_behind(l, at - 1) : RANK_STEP;
    s->tid = (uint8_t)tid;
    s->site = site;
    memmove(&l->stores[at + 1], &l->stores[at], (l->count - at) * sizeof *l->stores);
    l->stores[at] = s;
    l->count++;
    return s;
}

static visit *add_visit(location *l, int tid, uint32_t clock, uint64_t rank)
{
    visit *v = mc_scratch(sizeof *v);

    v->tid = (uint8_t)tid;
    v->clock = clock;
    v->rank = rank;
    v->before = l->last[tid];
    return l->last[tid] = v;
}

void mc_visit(const thread *t, location *l, uint64_t rank, visit_kind how, int order)
{
    visit *v = add_visit(l, t->id, t->now.hb[t->id], rank);

    v->kind = how;
    v->now = t->now;
    v->stay = t->stay;
    if (order == __ATOMIC_SEQ_CST)
        mc_sc_add(v);
}

/* ---- finding them ---------------------------------------------------------------------------- */

static uint64_t value_in_memory(const location *l)
{
    uint64_t value = 0;

    memcpy(&value, (const void *)l->address, l->size);
    return value;
}

/* A plain store to the word counts as a store. The checker has made sure that it happens before all
 * later visits. */
static void absorb_plain(location *l)
{
    l->is_overwritten = false;
    const store *s = mc_insert(l, l->count, value_in_memory(l), l->plain_tid, MC_SITE("plain"));
    add_visit(l, l->plain_tid, l->plain_clock, s->rank);
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
    mc_insert(l, 0, value_in_memory(l), 0, MC_SITE("initial"))->is_uninitialised =
        !mc_is_initialised(address, size);
    for (uint32_t i = 0; i < size; i++)
        ids[i] = (uint16_t)mc.location_count;
    return l;
}

location *mc_locate(thread *t, uintptr_t address, uint32_t size, mc_site site)
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
        /* Another word was here before, on a stack that was left, and has been overwritten. */
        if (l->is_overwritten)
            ids[i] = 0;
        else
            mc_fail("%s:%d: %s has %u bytes, but was accessed with %u", site.file, site.line,
                    site.text, size, l->size);
    }
    location *l = ids[0] ? &mc.locations[ids[0]] : create(address, size, ids, site);
    if (l->is_overwritten)
        absorb_plain(l);
    mc_stay(t, l);
    return l;
}

const location *mc_find(uintptr_t address)
{
    size_t offset;

    if (!mc_offset(address, &offset))
        return NULL;
    const location *l = &mc.locations[*mc_location_ids(offset)];
    return l->address == address && !l->is_overwritten ? l : NULL;
}

/* ---- how old is too old ---------------------------------------------------------------------- */

static uint64_t newest_known(const location *l, int who, uint32_t clock)
{
    const visit *v = l->last[who];

    while (v && v->clock > clock)
        v = v->before;
    return v ? v->rank : 0;
}

uint64_t mc_oldest(const thread *t, const location *l)
{
    uint64_t oldest = l->stores[0]->rank;

    for (int who = 0; who < mc.thread_count; who++) {
        uint64_t known = newest_known(l, who, who == t->id ? UINT32_MAX : t->now.hb[who]);
        oldest = known > oldest ? known : oldest;
    }
    return oldest;
}
