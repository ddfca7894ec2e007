/* SPDX-License-Identifier: MIT */
/*
 * One run of the queue benchmark: a worker fills a queue until it is full and drains it until it is
 * empty, again and again, while stealers take entries at a given pace.
 *
 *     race.c     the threads, the end, the check
 *     loops.c    what they do; compiled once per queue and payload, so that all of it is inlined
 *     queues.c   which queues there are
 *
 * Entries are numbered: the n-th push pushes n. So after a run it is known how many entries there
 * were and what their sum must be, whoever took them.
 */
#ifndef BENCH_RACE_H
#define BENCH_RACE_H

#include "latency.h"

#include <filch/atomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTCOMES = 3 }; /* by filch_steal_result: empty, lost, won */

typedef struct bench_setting {
    int stealer_count;
    uint64_t steals_per_s; /* of each stealer; 0: as fast as it can */
    uint64_t duration_ms;
    int payload; /* bytes of an entry: 4 or 8 */
    size_t capacity;
    size_t block_count, block_size; /* of queues that have blocks */
    bool is_in_turns; /* the stealer empties a full queue while the worker waits, and in turn */
} bench_setting;

/* ---- what the threads share ------------------------------------------------------------------ */

typedef enum bench_turn { TURN_WORKER, TURN_STEALER, TURN_NOBODY } bench_turn;

typedef struct bench_race {
    const bench_setting *setting; /* constant, like the queue and what a period is */
    void *queue;
    bool is_growing;       /* the queue is never full: it is when it has `capacity` entries */
    uint64_t period_ticks; /* from the begin of a steal to that of the next; 0: none */

    /* Set by the main thread, read by all between two operations. */
    filch_atomic_u32 is_over __attribute__((aligned(FILCH_CACHE_LINE)));
    /* How many threads have come to the start, and whether it is open. */
    filch_atomic_u32 ready_count __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_atomic_u32 is_open;
    /* A bench_turn, where they take turns. */
    filch_atomic_u32 turn __attribute__((aligned(FILCH_CACHE_LINE)));
} bench_race;

/* What one thread did. The others look when it has ended. */
typedef struct bench_worker {
    bench_race *race;
    uint64_t pushes, pops;
    uint64_t popped_sum;
    uint64_t wall_ns, cpu_ns;
} bench_worker;

typedef struct bench_stealer {
    bench_race *race;
    uint64_t outcomes[OUTCOMES];
    uint64_t stolen_sum;
    bench_latency latency; /* of steals that got something */
} bench_stealer;

static inline bool race_is_over(bench_race *race)
{
    /* relaxed: it carries nothing; who counts joins the threads first. */
    return filch_load_relaxed(&race->is_over) != 0;
}

/* Wait until it is `turn`, or nobody's. False: nobody's. */
bool race_await(bench_race *race, bench_turn turn);
void race_pass(bench_race *race, bench_turn turn);

/* ---- the loops of one queue ------------------------------------------------------------------ */

typedef struct bench_loops {
    int (*create)(const bench_setting *setting, void **queue); /* 0 or -errno */
    void (*work)(bench_worker *worker);
    void (*steal)(bench_stealer *stealer); /* NULL: the queue is for one thread */
    /* Until nothing is left: how many there were, and their sum. */
    uint64_t (*empty)(void *queue, uint64_t *sum);
    void (*destroy)(void *queue);
} bench_loops;

typedef struct bench_queue {
    const char *name;
    const char *title;
    bool is_growing;
    const bench_loops *loops[2]; /* with 4 and with 8 bytes */
} bench_queue;

extern const bench_queue queues[];
extern const int queue_count;

const char *queue_name(int index); /* NULL at the end */

static inline bool queue_has_stealers(const bench_queue *queue)
{
    return queue->loops[0]->steal != NULL;
}

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct bench_tally {
    uint64_t pushes, pops, rest;
    uint64_t outcomes[OUTCOMES];
    uint64_t pushed_sum, taken_sum; /* modulo what a payload can count */
    uint64_t wall_ns, cpu_ns;       /* of the worker */
    bench_latency latency;
} bench_tally;

/* Run `queue` for the duration of the setting. Returns 0 or -errno. */
int race_run(const bench_queue *queue, const bench_setting *setting, bench_tally *tally);

/* Whether every entry that was pushed was taken once. */
bool tally_is_right(const bench_tally *tally);

#endif
