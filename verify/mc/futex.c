/* SPDX-License-Identifier: MIT */
/*
 * Waiting: for a futex, and in a spin loop.
 *
 * A futex wait compares with the newest value and falls asleep in one step. It orders nothing else:
 * a woken thread knows no more than before, so edges have to come from the word itself.
 *
 * If a wake finds more sleepers than it may wake, it chooses among them: the kernel promises no
 * order. A wait chooses at its beginning whether it times out or wakes for no reason. Such a waiter
 * does not count as asleep, and returns when it is scheduled.
 *
 * A pause waits for news at the words that the thread has read since its last pause. News is a
 * store newer than the one that the thread has read. The pause chooses the word. The thread then
 * does not read the older store again. So every round of a spin loop reads something new, and loops
 * end.
 */
#include "mc/engine.h"

#include <errno.h>
#include <linux/futex.h>

/* ---- futexes --------------------------------------------------------------------------------- */

static bool may_fail(unsigned *budget)
{
    if (*budget == 0 || mc_pick(2) == 0)
        return false;
    --*budget;
    return true;
}

static uint64_t ns_of(const struct timespec *timeout)
{
    return (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;
}

/* 0: sleep. Otherwise return, with the result in *result. After a time-out, the thread's clock is
 * later by it. */
static bool returns_at_once(thread *t, location *l, uint32_t expected,
                            const struct timespec *timeout, int *result)
{
    *result = 0;
    if (mc_newest(l)->value != expected) {
        *result = -EAGAIN;
    } else if (timeout && may_fail(&t->timeouts)) {
        t->clock_ns += ns_of(timeout);
        *result = -ETIMEDOUT;
    } else {
        return may_fail(&t->spurious);
    }
    return true;
}

static int futex_wait(uintptr_t address, uint32_t expected, const struct timespec *timeout,
                      const void *pc)
{
    const mc_site site = {.text = "futex wait", .pc = pc};
    int result;

    mc_announce(
        &(operation){.kind = OP_WAIT, .effects = READS | WAITS, .address = address, .site = site});
    thread *t = mc.current;
    location *l = mc_locate(t, address, sizeof(uint32_t), site);
    mc_check_plain(t, address, sizeof(uint32_t), false, site);
    bool returns = returns_at_once(t, l, expected, timeout, &result);
    mc_spin_note(t, l, mc_newest(l)->rank);
    mc_visit(t, l, mc_newest(l)->rank, VISIT_READ, __ATOMIC_RELAXED);
    if (mc.is_traced)
        mc_trace(t, site, "futex wait while %u: %s", expected,
                 result == -EAGAIN      ? mc_value_name(mc_newest(l)->value, 4)
                 : result == -ETIMEDOUT ? "times out"
                 : returns              ? "returns for no reason"
                                        : "sleeps");
    mc_commit(t, &(deed){.kind = OP_WAIT, .effects = READS | WAITS, .read = mc_newest(l)});
    mc_tick(t);
    if (!returns) {
        t->waits_on = address;
        t->has_timeout = timeout != NULL;
        mc_block();
    }
    return result;
}

/* The k-th thread that sleeps on the word, or NULL. */
static thread *find_waiter(uintptr_t address, unsigned k)
{
    for (int i = 0; i < mc.thread_count; i++) {
        thread *t = &mc.threads[i];
        if (t->state == THREAD_BLOCKED && t->waits_on == address && k-- == 0)
            return t;
    }
    return NULL;
}

static void wake(const thread *waker, thread *t)
{
    for (int i = 0; i < MC_THREADS_MAX; i++)
        t->past[i] = waker->past[i] > t->past[i] ? waker->past[i] : t->past[i];
    t->state = THREAD_LOCAL;
}

static int futex_wake(uintptr_t address, uint32_t limit, const void *pc)
{
    const mc_site site = {.text = "futex wake", .pc = pc};
    thread *chosen[MC_THREADS_MAX];
    unsigned count = 0, woken = 0;

    mc_announce(&(operation){.kind = OP_WAKE, .effects = WAKES, .address = address, .site = site});
    thread *t = mc.current;
    while (find_waiter(address, count))
        count++;
    while (woken < limit && woken < count) {
        unsigned left = count - woken;
        thread *waiter = find_waiter(address, left > limit - woken ? mc_pick(left) : 0);
        waiter->state = THREAD_LOCAL;
        chosen[woken++] = waiter;
    }
    if (mc.is_traced)
        mc_trace(t, site, "futex wake: %s T%d", woken ? "wakes" : "nobody, says",
                 woken ? chosen[0]->id : t->id);
    mc_commit(t, &(deed){.kind = OP_WAKE, .effects = WAKES});
    for (unsigned i = 0; i < woken; i++)
        wake(t, chosen[i]);
    mc_tick(t);
    return (int)woken;
}

int mc_futex(volatile void *address, long op, uint32_t value, const struct timespec *timeout)
{
    const void *pc = __builtin_return_address(0);

    switch (op & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        return futex_wait((uintptr_t)address, value, timeout, pc);
    case FUTEX_WAKE:
        return futex_wake((uintptr_t)address, value, pc);
    default:
        mc_fatal("limit", "futex operation %ld", op);
    }
}

/* ---- spin loops ------------------------------------------------------------------------------ */

/* The thread has read, or made, this store since its last pause. */
void mc_spin_note(thread *t, location *l, uint64_t rank)
{
    if (l->spun[t->id].round == t->round) {
        t->spinning[l->spun[t->id].place].rank = rank;
        return;
    }
    if (t->spin_count == t->spin_capacity) {
        const spin *old = t->spinning;
        t->spin_capacity = t->spin_capacity ? 2 * t->spin_capacity : 16;
        t->spinning = mc_scratch(t->spin_capacity * sizeof *t->spinning);
        if (old)
            memcpy(t->spinning, old, t->spin_count * sizeof *old);
    }
    l->spun[t->id].round = t->round;
    l->spun[t->id].place = t->spin_count;
    t->spinning[t->spin_count++] = (spin){l, rank};
}

static bool is_news(const spin *s)
{
    return mc_newest(s->location)->rank > s->rank;
}

bool mc_has_news(const spin *spins, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (is_news(&spins[i]))
            return true;
    return false;
}

/* One of the words that have news. */
static const spin *choose_news(const thread *t)
{
    unsigned count = 0, k = 0;

    for (unsigned i = 0; i < t->spin_count; i++)
        count += is_news(&t->spinning[i]);
    unsigned chosen = mc_pick(count);
    for (unsigned i = 0;; i++)
        if (is_news(&t->spinning[i]) && k++ == chosen)
            return &t->spinning[i];
}

/* The rank of the store right behind the one that the thread has read. */
static uint64_t next_rank(const spin *s)
{
    uint32_t i = s->location->count;

    while (i > 0 && s->location->stores[i - 1]->rank > s->rank)
        i--;
    return s->location->stores[i]->rank;
}

static void begin_round(thread *t)
{
    t->round++;
    t->spinning = NULL;
    t->spin_count = t->spin_capacity = 0;
}

void mc_pause(mc_site site)
{
    thread *t = mc.current;

    if (t->spin_count == 0)
        return;
    if (t->spins > 0) {
        t->spins -= t->spins != MC_ALWAYS;
        begin_round(t);
        return;
    }
    mc_announce(&(operation){.kind = OP_PAUSE, .site = site});
    const spin *news = choose_news(t);
    mc_visit(t, (location *)(uintptr_t)news->location, next_rank(news), VISIT_NONE,
             __ATOMIC_RELAXED);
    mc_trace(t, site, "pause, until there is news");
    mc_commit(t, &(deed){.kind = OP_PAUSE});
    begin_round(t);
}
