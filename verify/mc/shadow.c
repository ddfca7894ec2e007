/* SPDX-License-Identifier: MIT */
/*
 * Plain accesses: the last reads and the last write of each byte must happen before a conflicting
 * access.
 *
 * The compiler calls __tsan_read4() and the like before each plain access, as for ThreadSanitizer,
 * whose library is not linked. Eight bytes share one granule of shadow memory:
 *
 *     write[8]                 which thread wrote the byte last, and its clock then
 *     read[thread][8]          the clock of each thread's last read
 *
 * Clocks grow from execution to execution, so entries of earlier executions come before everything.
 */
#include "mc/engine.h"

#include <stdio.h>
#include <sys/mman.h>

#define WRITER_SHIFT 28
#define CLOCK_MASK (((uint32_t)1 << WRITER_SHIFT) - 1)

typedef struct granule {
    uint32_t write[8];
    uint32_t read[MC_THREADS_MAX][8];
    const void *write_pc, *read_pc[MC_THREADS_MAX];
} granule;

static MC_KEEP granule *shadow;
static MC_KEEP size_t shadow_bytes;
static MC_KEEP uint16_t *location_ids; /* of each byte; 0: it is in no atomic word */

void mc_shadow_init(size_t watched_bytes)
{
    shadow_bytes = (watched_bytes / 8 + 1) * sizeof *shadow;
    shadow = mc_reserve(shadow_bytes);
    location_ids = mc_reserve((watched_bytes + 8) * sizeof *location_ids);
}

uint16_t *mc_location_ids(size_t offset)
{
    return &location_ids[offset];
}

/* Before a new execution: restart clocks that no longer fit. */
void mc_shadow_reset_clocks(void)
{
    if (mc.base_clock < CLOCK_MASK - 2 * MC_STEPS_MAX)
        return;
    madvise(shadow, shadow_bytes, MADV_DONTNEED);
    mc.base_clock = 0;
}

/* ---- plain against plain --------------------------------------------------------------------- */

static void fail_race(const void *pc, const void *other_pc, plain how, int other,
                      const char *other_how)
{
    static const char *const verbs[] = {"reads", "copies", "writes", "frees"};

    mc_fail_at(
        pc, other_pc,
        "data race: T%d %s, at {0}, what T%d has %s, at {1}, and neither comes before the other",
        mc.current->id, verbs[how], other, other_how);
}

static void check_writes(const thread *t, const granule *g, unsigned first, unsigned end, plain how,
                         const void *pc)
{
    for (unsigned i = first; i < end; i++) {
        uint32_t w = g->write[i];
        if ((w & CLOCK_MASK) > t->now.hb[w >> WRITER_SHIFT])
            fail_race(pc, g->write_pc, how, (int)(w >> WRITER_SHIFT), "written");
    }
}

static void check_reads(const thread *t, const granule *g, unsigned first, unsigned end, plain how,
                        const void *pc)
{
    for (int who = 0; who < mc.thread_count; who++)
        for (unsigned i = first; i < end; i++)
            if (g->read[who][i] > t->now.hb[who] && who != t->id)
                fail_race(pc, g->read_pc[who], how, who, "read");
}

static void note(const thread *t, granule *g, unsigned first, unsigned end, plain how,
                 const void *pc)
{
    uint32_t clock = t->now.hb[t->id];

    if (how >= PLAIN_WRITE) {
        g->write_pc = pc;
        for (unsigned i = first; i < end; i++)
            g->write[i] = clock | (uint32_t)t->id << WRITER_SHIFT;
    } else {
        g->read_pc[t->id] = pc;
        for (unsigned i = first; i < end; i++)
            g->read[t->id][i] = clock;
    }
}

/* ---- plain against atomic -------------------------------------------------------------------- */

/* All conflicting atomic accesses must happen before a plain access of the word. */
static void check_atomic(const thread *t, location *l, plain how, const void *pc)
{
    for (int who = 0; who < mc.thread_count; who++) {
        const visit *a = l->last[who];
        while (a && a->kind == VISIT_NONE)
            a = a->before;
        if (who != t->id && l->last_write[who] > t->now.hb[who])
            fail_race(pc, NULL, how, who, "stored atomically");
        if (who != t->id && how >= PLAIN_WRITE && a && a->clock > t->now.hb[who])
            fail_race(pc, NULL, how, who, "accessed atomically");
    }
    if (how != PLAIN_WRITE)
        return;
    l->is_overwritten = true;
    l->plain_tid = (uint8_t)t->id;
    l->plain_clock = t->now.hb[t->id];
}

/* All plain accesses must happen before an atomic access. */
void mc_check_plain(thread *t, uintptr_t address, size_t size, bool is_write, mc_site site)
{
    size_t offset;
    if (!mc_offset(address, &offset))
        return;
    const granule *g = &shadow[offset / 8];
    unsigned first = offset % 8, end = first + (unsigned)size;

    for (int who = 0; who < mc.thread_count; who++)
        for (unsigned i = first; who != t->id && i < end; i++) {
            uint32_t w = g->write[i];
            bool is_race = (w & CLOCK_MASK) > t->now.hb[w >> WRITER_SHIFT];
            if (is_race || (is_write && g->read[who][i] > t->now.hb[who]))
                mc_fail_at(is_race ? g->write_pc : g->read_pc[who], NULL,
                           "data race: T%d accesses %s atomically, at %s:%d, T%d plainly, at {0}, "
                           "and neither "
                           "comes before the other",
                           t->id, site.text, site.file, site.line,
                           is_race ? (int)(w >> WRITER_SHIFT) : who);
        }
}

/* ---- from the instrumentation ---------------------------------------------------------------- */

void mc_plain(uintptr_t address, size_t size, plain how, const void *pc)
{
    const thread *t = mc.current;
    size_t offset;

    if (!t || !mc_offset(address, &offset) || size == 0)
        return;
    mc_check_live(address, size, pc);
    if (how == PLAIN_READ && !mc_is_initialised(address, size))
        mc_fail_at(pc, NULL, "T%d reads, at {0}, memory that nobody has written", t->id);
    if (how == PLAIN_WRITE)
        mc_mark_written(offset, size);
    for (size_t at = offset, end = offset + size; at < end;) {
        unsigned first = at % 8, last = (unsigned)(end - at < 8 - first ? first + end - at : 8);
        granule *g = &shadow[at / 8];
        check_writes(t, g, first, last, how, pc);
        if (how >= PLAIN_WRITE)
            check_reads(t, g, first, last, how, pc);
        for (unsigned i = first; i < last; i++)
            if (location_ids[at - first + i])
                check_atomic(t, &mc.locations[location_ids[at - first + i]], how, pc);
        note(t, g, first, last, how, pc);
        at += last - first;
    }
}

#define PC __builtin_return_address(0)
#define HOOKS(size)                                                                                \
    void __tsan_read##size(void *p)                                                                \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_READ, PC);                                              \
    }                                                                                              \
    void __tsan_write##size(void *p)                                                               \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_WRITE, PC);                                             \
    }                                                                                              \
    void __tsan_unaligned_read##size(void *p)                                                      \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_READ, PC);                                              \
    }                                                                                              \
    void __tsan_unaligned_write##size(void *p)                                                     \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_WRITE, PC);                                             \
    }                                                                                              \
    void __tsan_volatile_read##size(void *p)                                                       \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_READ, PC);                                              \
    }                                                                                              \
    void __tsan_volatile_write##size(void *p)                                                      \
    {                                                                                              \
        mc_plain((uintptr_t)p, size, PLAIN_WRITE, PC);                                             \
    }
/* clang-format off */
HOOKS(1) HOOKS(2) HOOKS(4) HOOKS(8) HOOKS(16)
    /* clang-format on */

    /* Whole structs: some of their bytes may be padding, which no thread writes. */
    void __tsan_read_range(void *p, size_t size)
{
    mc_plain((uintptr_t)p, size, PLAIN_COPY, PC);
}

void __tsan_write_range(void *p, size_t size)
{
    mc_plain((uintptr_t)p, size, PLAIN_WRITE, PC);
}

void __tsan_init(void)
{
}

/* The model has only atomics that go through filch/atomic.h. */
#define UNMODELLED(name)                                                                           \
    void __tsan_atomic##name(void)                                                                 \
    {                                                                                              \
        mc_fail_at(PC, NULL, "an atomic operation, at {0}, does not go through filch/atomic.h");   \
    }
#define UNMODELLED_SIZE(bits)                                                                      \
    UNMODELLED(bits##_load)                                                                        \
    UNMODELLED(bits##_store)                                                                       \
    UNMODELLED(bits##_exchange)                                                                    \
    UNMODELLED(bits##_fetch_add)                                                                   \
    UNMODELLED(bits##_fetch_sub)                                                                   \
    UNMODELLED(bits##_fetch_and)                                                                   \
    UNMODELLED(bits##_fetch_or)                                                                    \
    UNMODELLED(bits##_fetch_xor)                                                                   \
    UNMODELLED(bits##_fetch_nand)                                                                  \
    UNMODELLED(bits##_compare_exchange_strong) UNMODELLED(bits##_compare_exchange_weak)
/* clang-format off */
UNMODELLED_SIZE(8) UNMODELLED_SIZE(16) UNMODELLED_SIZE(32) UNMODELLED_SIZE(64) UNMODELLED_SIZE(128)
UNMODELLED(_thread_fence) UNMODELLED(_signal_fence)
    /* clang-format on */
