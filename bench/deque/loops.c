/* SPDX-License-Identifier: MIT */
/*
 * The loops of worker and stealers for one queue, compiled once per queue and payload:
 *
 *     BENCH_QUEUE           type of the queue and prefix of its functions: filch_abp
 *     BENCH_QUEUE_HEADER    the header that defines them: <filch/deque/abp.h>
 *     BENCH_LOOPS           name of the resulting bench_loops: loops_abp_4
 *     BENCH_HAS_BLOCKS      init takes blocks instead of a capacity
 *     BENCH_IS_SEQUENTIAL   the queue has no steal
 *     FILCH_ENTRY           uint32_t or uint64_t
 */
#include "race.h"

#include BENCH_QUEUE_HEADER

#include <errno.h>
#include <filch/deque.h>
#include <stdlib.h>

#define PASTE(queue, name) queue##_##name
#define NAME(queue, name) PASTE(queue, name)

typedef BENCH_QUEUE queue;
#define queue_init NAME(BENCH_QUEUE, init)
#define queue_init_blocks NAME(BENCH_QUEUE, init_blocks)
#define queue_push NAME(BENCH_QUEUE, push)
#define queue_pop NAME(BENCH_QUEUE, pop)
#define queue_steal NAME(BENCH_QUEUE, steal)
#define queue_size_hint NAME(BENCH_QUEUE, size_hint)
#define queue_fini NAME(BENCH_QUEUE, fini)

/* After this many pushes, the worker checks whether the run is over. */
enum { PUSHES_AT_ONCE = 1024 };

/* Make the compiler reload the queue, as it must after a real program has run a popped task.
 * Otherwise it keeps the state of a plain stack in registers for a whole loop. */
static inline void forget(void)
{
    __asm__ volatile("" ::: "memory");
}

/* ---- worker ---------------------------------------------------------------------------------- */

/* The number of entries to push before asking for the size again. */
static uint64_t room(queue *q, const bench_race *race)
{
    if (!race->is_growing)
        return PUSHES_AT_ONCE;
    size_t size = queue_size_hint(q), capacity = race->setting->capacity;
    uint64_t left = size < capacity ? capacity - size : 0;
    return left < PUSHES_AT_ONCE ? left : PUSHES_AT_ONCE;
}

/* Push until the queue is full or the run is over. */
static void fill(queue *q, bench_worker *worker)
{
    bench_race *race = worker->race;
    uint64_t number = worker->pushes, begin, end;

    do {
        begin = number;
        end = begin + room(q, race);
        while (number < end && queue_push(q, (filch_entry)number) == 0) {
            number++;
            forget();
        }
    } while (begin < end && number == end && !race_is_over(race));
    worker->pushes = number;
}

/* Pop until the queue is empty. Returns the number of entries. */
static uint64_t drain(queue *q, uint64_t *sum)
{
    uint64_t count = 0, total = 0;
    filch_entry entry;

    while (queue_pop(q, &entry)) {
        total += entry;
        count++;
        forget();
    }
    *sum += total;
    return count;
}

static void work(bench_worker *worker)
{
    bench_race *race = worker->race;
    queue *q = race->queue;

    do {
        fill(q, worker);
        if (race->setting->is_in_turns) {
            race_pass(race, TURN_STEALER);
            race_await(race, TURN_WORKER);
        }
        worker->pops += drain(q, &worker->popped_sum);
    } while (!race_is_over(race));
    race_pass(race, TURN_NOBODY);
}

/* ---- stealers -------------------------------------------------------------------------------- */

#ifndef BENCH_IS_SEQUENTIAL
/* Start one steal per period; its duration is part of the period. */
static void steal_at_pace(bench_stealer *stealer)
{
    bench_race *race = stealer->race;
    queue *q = race->queue;
    const uint64_t period_ticks = race->period_ticks;

    while (!race_is_over(race)) {
        filch_entry entry;
        uint64_t start = latency_ticks();
        filch_steal_result result = queue_steal(q, &entry);
        uint64_t ticks = latency_ticks() - start;

        stealer->outcomes[result]++;
        if (result == FILCH_STEAL_WON) {
            stealer->stolen_sum += entry;
            latency_add(&stealer->latency, ticks, 1);
        }
        while (latency_ticks() - start < period_ticks && !race_is_over(race))
            filch_pause();
    }
}

/* Steal until the queue is empty, while no other thread uses it. A single steal is shorter than the
 * resolution of the clock, so the mean of one turn is one sample. */
static void steal_in_turn(bench_stealer *stealer)
{
    bench_race *race = stealer->race;
    queue *q = race->queue;

    while (race_await(race, TURN_STEALER)) {
        filch_steal_result result;
        filch_entry entry;
        uint64_t count = 0, sum = 0, start = latency_ticks();
        while ((result = queue_steal(q, &entry)) == FILCH_STEAL_WON) {
            sum += entry;
            count++;
        }
        uint64_t ticks = latency_ticks() - start;

        stealer->outcomes[result]++;
        stealer->outcomes[FILCH_STEAL_WON] += count;
        stealer->stolen_sum += sum;
        if (count > 0)
            latency_add(&stealer->latency, ticks, count);
        race_pass(race, TURN_WORKER);
    }
}

static void steal(bench_stealer *stealer)
{
    if (stealer->race->setting->is_in_turns)
        steal_in_turn(stealer);
    else
        steal_at_pace(stealer);
}
#endif

/* ---- start, stop ----------------------------------------------------------------------------- */

static int create(const bench_setting *setting, void **out)
{
    const size_t line = FILCH_CACHE_LINE;
    queue *q = aligned_alloc(line, (sizeof *q + line - 1) / line * line);
    int err;

    if (!q)
        return -ENOMEM;
#ifdef BENCH_HAS_BLOCKS
    err = queue_init_blocks(q, setting->block_size, setting->block_count);
#else
    err = queue_init(q, setting->capacity);
#endif
    if (err)
        free(q);
    else
        *out = q;
    return err;
}

static uint64_t empty(void *q, uint64_t *sum)
{
    return drain(q, sum);
}

static void destroy(void *q)
{
    queue_fini(q);
    free(q);
}

extern const bench_loops BENCH_LOOPS;
const bench_loops BENCH_LOOPS = {
    .create = create,
    .work = work,
#ifndef BENCH_IS_SEQUENTIAL
    .steal = steal,
#endif
    .empty = empty,
    .destroy = destroy,
};
