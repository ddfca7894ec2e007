/* SPDX-License-Identifier: MIT */
/*
 * The threads of a run: they start together, stop when the main thread says so, and are evaluated
 * after they have ended.
 *
 * Edges
 *   open   race_run: is_open -> await_start: is_open
 *          carries nothing beyond pthread_create: no thread begins before all have arrived.
 *   turn   race_pass: turn -> race_await: turn
 *          carries all that the other thread did in its turn.
 */
#include "race.h"

#include "../workloads/probe.h"

#include <errno.h>
#include <filch/deque.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SPINS = 1000 }; /* before a waiting thread yields its core */

/* ---- threads --------------------------------------------------------------------------------- */

static void spin(int *spins)
{
    if (++*spins < SPINS)
        filch_pause();
    else
        sched_yield();
}

bool race_await(bench_race *race, bench_turn turn)
{
    int spins = 0;

    for (;;) {
        /* acquire [turn] */
        uint32_t now = filch_load_acquire(&race->turn);
        if (now == turn || now == TURN_NOBODY)
            return now == turn;
        spin(&spins);
    }
}

void race_pass(bench_race *race, bench_turn turn)
{
    /* release [turn] */
    filch_store_release(&race->turn, (uint32_t)turn);
}

static void await_start(bench_race *race)
{
    int spins = 0;

    /* relaxed: a count. */
    filch_fetch_add_relaxed(&race->ready_count, 1);
    /* acquire [open] */
    while (!filch_load_acquire(&race->is_open))
        spin(&spins);
}

static uint64_t cpu_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The argument of a thread. */
typedef struct bench_thread {
    pthread_t id;
    const bench_loops *loops;
    bench_worker *worker; /* or a stealer */
    bench_stealer *stealer;
} bench_thread;

static void *run_worker(void *argument)
{
    bench_thread *thread = argument;
    bench_worker *worker = thread->worker;

    await_start(worker->race);
    uint64_t wall_ns = probe_clock_ns(), cpu_ns = cpu_clock_ns();
    thread->loops->work(worker);
    worker->cpu_ns = cpu_clock_ns() - cpu_ns;
    worker->wall_ns = probe_clock_ns() - wall_ns;
    return NULL;
}

static void *run_stealer(void *argument)
{
    bench_thread *thread = argument;

    await_start(thread->stealer->race);
    thread->loops->steal(thread->stealer);
    return NULL;
}

/* Let all threads begin, wait for `duration_ms`, stop them. */
static void run_threads(bench_race *race, bench_thread *threads, int count, uint64_t duration_ms)
{
    struct timespec left = {
        .tv_sec = (time_t)(duration_ms / 1000),
        .tv_nsec = (long)(duration_ms % 1000 * 1000000),
    };

    /* relaxed: a count. */
    while (filch_load_relaxed(&race->ready_count) < (uint32_t)count)
        sched_yield();
    /* release [open] */
    filch_store_release(&race->is_open, 1);
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
    /* relaxed: a flag that carries nothing. */
    filch_store_relaxed(&race->is_over, 1);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].id, NULL);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* 0 + 1 + ... + (count - 1). Entries wrap, and so does their sum. */
static uint64_t sum_of_numbers(uint64_t count)
{
    return count % 2 ? count * ((count - 1) / 2) : count / 2 * (count - 1);
}

static void count_up(bench_tally *tally, const bench_worker *worker, const bench_stealer *stealers,
                     const bench_setting *setting)
{
    uint64_t mask = setting->payload == 4 ? UINT32_MAX : UINT64_MAX;

    tally->pushes = worker->pushes;
    tally->pops = worker->pops;
    tally->wall_ns = worker->wall_ns;
    tally->cpu_ns = worker->cpu_ns;
    tally->pushed_sum = sum_of_numbers(worker->pushes) & mask;
    tally->taken_sum += worker->popped_sum;
    for (int i = 0; i < setting->stealer_count; i++) {
        for (int o = 0; o < OUTCOMES; o++)
            tally->outcomes[o] += stealers[i].outcomes[o];
        tally->taken_sum += stealers[i].stolen_sum;
        latency_merge(&tally->latency, &stealers[i].latency);
    }
    tally->taken_sum &= mask;
}

bool tally_is_right(const bench_tally *tally)
{
    return tally->pushes == tally->pops + tally->outcomes[FILCH_STEAL_WON] + tally->rest &&
           tally->pushed_sum == tally->taken_sum;
}

int race_run(const bench_queue *queue, const bench_setting *setting, bench_tally *tally)
{
    const bench_loops *loops = queue->loops[setting->payload == 8];
    const uint64_t period_ns =
        setting->steals_per_s > 0 ? UINT64_C(1000000000) / setting->steals_per_s : 0;
    int stealer_count = setting->stealer_count, started = 0;
    bench_race race = {
        .setting = setting,
        .is_growing = queue->is_growing,
        .period_ticks = latency_ns_to_ticks(period_ns),
    };
    bench_worker worker = {.race = &race};
    bench_stealer *stealers = calloc((size_t)stealer_count + 1, sizeof *stealers);
    bench_thread *threads = calloc((size_t)stealer_count + 1, sizeof *threads);
    int err = -ENOMEM;

    memset(tally, 0, sizeof *tally);
    if (!stealers || !threads)
        goto free_threads;
    err = loops->create(setting, &race.queue);
    if (err)
        goto free_threads;

    for (; started <= stealer_count && !err; started += !err) {
        bench_thread *thread = &threads[started];
        bool is_worker = started == stealer_count;
        *thread = (bench_thread){.loops = loops};
        if (is_worker) {
            thread->worker = &worker;
        } else {
            thread->stealer = &stealers[started];
            thread->stealer->race = &race;
        }
        err = -pthread_create(&thread->id, NULL, is_worker ? run_worker : run_stealer, thread);
    }
    if (err) {
        /* The stealers already started must not wait for a worker. */
        race_pass(&race, TURN_NOBODY);
        run_threads(&race, threads, started, 0);
        goto destroy_queue;
    }
    run_threads(&race, threads, started, setting->duration_ms);
    tally->rest = loops->empty(race.queue, &tally->taken_sum);
    count_up(tally, &worker, stealers, setting);

destroy_queue:
    loops->destroy(race.queue);
free_threads:
    free(threads);
    free(stealers);
    return err;
}
