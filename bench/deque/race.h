/* SPDX-License-Identifier: MIT */
/*
 * One run of the queue benchmark: a worker fills a queue and drains it, again and again, while
 * stealers take entries at a given pace.
 *
 *     race.c     the threads, the end of the run, the check
 *     loops.c    the loops of the threads; compiled once per queue and payload, to inline them
 *     queues.c   the list of queues
 *
 * The n-th push pushes n. So the number of pushes gives the sum of all entries, whichever threads
 * took them.
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
    uint64_t steals_per_s; /* by each stealer; 0: without a pause */
    uint64_t duration_ms;
    int payload; /* bytes of an entry: 4 or 8 */
    size_t capacity;
    size_t block_count, block_size; /* of queues that have blocks */
    bool is_in_turns; /* worker and stealer alternate: the stealer empties the full queue */
} bench_setting;

/* ---- shared by the threads ------------------------------------------------------------------- */

typedef enum bench_turn { TURN_WORKER, TURN_STEALER, TURN_NOBODY } bench_turn;

typedef struct bench_race {
    const bench_setting *setting; /* constant, like the three members below */
    void *queue;
    bool is_growing;       /* never full: `capacity` entries count as full */
    uint64_t period_ticks; /* from the start of a steal to the next start; 0: no pause */

    /* Set by the main thread; all threads read it between two operations. */
    filch_atomic_u32 is_over __attribute__((aligned(FILCH_CACHE_LINE)));
    /* The number of threads that wait for the start, and whether they may begin. */
    filch_atomic_u32 ready_count __attribute__((aligned(FILCH_CACHE_LINE)));
    filch_atomic_u32 is_open;
    /* A bench_turn; for settings with is_in_turns. */
    filch_atomic_u32 turn __attribute__((aligned(FILCH_CACHE_LINE)));
} bench_race;

/* The results of one thread. Other threads read them after it has ended. */
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
    bench_latency latency; /* of successful steals */
} bench_stealer;

static inline bool race_is_over(bench_race *race)
{
    /* relaxed: a flag that carries nothing; the results are read after pthread_join. */
    return filch_load_relaxed(&race->is_over) != 0;
}

/* Wait for `turn`. False: the run is over (TURN_NOBODY). */
bool race_await(bench_race *race, bench_turn turn);
void race_pass(bench_race *race, bench_turn turn);

/* ---- the loops of one queue ------------------------------------------------------------------ */

typedef struct bench_loops {
    int (*create)(const bench_setting *setting, void **queue); /* 0 or -errno */
    void (*work)(bench_worker *worker);
    void (*steal)(bench_stealer *stealer); /* NULL: the queue is for one thread only */
    /* Drain the queue: returns the number of entries, and their sum. */
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
    uint64_t pushed_sum, taken_sum; /* modulo 2^32 or 2^64, by payload */
    uint64_t wall_ns, cpu_ns;       /* of the worker */
    bench_latency latency;
} bench_tally;

/* Run `queue` for the duration of the setting. Returns 0 or -errno. */
int race_run(const bench_queue *queue, const bench_setting *setting, bench_tally *tally);

/* Whether every pushed entry was taken exactly once. */
bool tally_is_right(const bench_tally *tally);

#endif
