/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake-up: no worker sleeps for good while there is work, whatever other workers do: go
 * to sleep, search or wake up.
 *
 * Workers go through the idle half of filch_worker_main, with the shipped functions (worker_loop.h:
 * the loop is part of this file). They take, else search, else announce sleep, look once more, and
 * sleep. A worker begins awake (a) or asleep (s). The script lists the steps of the thread with
 * work, before it notifies:
 *
 *     i  injects a job; p  two at once
 *     w  publishes a task on a strand; u  one after all before it were stolen
 *
 * Jobs are a number, the count of the inject queue; the queue has a client of its own.
 *
 * An execution ends when all workers sleep. Then no work may be left. The client generates all
 * scripts up to a length. In those of `busy`, a worker that has work is busy with it for ever, so
 * each task needs a worker of its own. They are small enough for an exhaustive search.
 */
#include "worker_loop.h"

#include <string.h>

#include "mc/mc.h"

#include <stdio.h>

#define WORKERS_MAX 3
#define LENGTH_MAX 4

static filch_pool *pool;
static const char *script, *beginnings;
static unsigned worker_count;
static bool is_busy_for_ever;
static bool is_busy[WORKERS_MAX];
static filch_seat *seats[WORKERS_MAX];
static filch_worker publisher; /* has no thread: only its strand is used */
static filch_strand *strand;

static void setup(void)
{
    pool = calloc(1, sizeof *pool);
    pool->worker_count = worker_count + 1;
    pool->workers = calloc(pool->worker_count, sizeof *pool->workers);
    pool->workers[worker_count] = &publisher;
    filch_timers_init(&pool->timers);
    filch_strands_init(&pool->strands, pool, (size_t)16 << 10);
    strand = filch_strand_take(&pool->strands);
    filch_store_relaxed(&publisher.strand, strand);
    pool->sleep.seats = seats;
    for (unsigned i = 0; i < worker_count; i++) {
        filch_worker *worker = pool->workers[i] = calloc(1, sizeof *worker);
        worker->pool = pool;
        worker->index = i;
        worker->has_thread = true;
        seats[i] = &worker->seat;
        if (beginnings[i] == 's')
            filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
    }
}

/* filch_queue_push and filch_queue_take do this under the lock. */
static void inject(uint32_t count)
{
    filch_fetch_add_seq_cst(&pool->inject.count, count);
}

static bool take_injected_job(void)
{
    uint32_t count = filch_load_relaxed(&pool->inject.count);

    while (count > 0)
        if (filch_cas_acq_rel(&pool->inject.count, &count, count - 1))
            return true;
    return false;
}

static bool take(void)
{
    filch_slot *task;
    filch_steal_result result;

    if (*script == 'i' || *script == 'p')
        return take_injected_job();
    do
        result = filch_split_steal(&strand->split, &task);
    while (result == FILCH_STEAL_LOST);
    return result == FILCH_STEAL_WON;
}

/* The idle half of filch_worker_main. */
static void work(void)
{
    filch_worker *worker = pool->workers[mc_self() - 1];
    bool searching = false, is_asleep = beginnings[worker->index] == 's';

    for (;;) {
        if (!is_asleep && take()) {
            if (searching)
                stop_searching(worker);
            is_busy[worker->index] = is_busy_for_ever;
            if (is_busy_for_ever)
                return;
            searching = false;
            continue;
        }
        if (!is_asleep && !searching) {
            searching = filch_sleep_search(&pool->sleep, 1);
            if (searching)
                continue;
        }
        if (!is_asleep) {
            filch_sleep_push(&pool->sleep, worker->index,
                             searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
            filch_pool_notify_if_work(pool);
        }
        is_asleep = false;
        if (filch_seat_nap(&worker->seat, NULL) == FILCH_BED_ENDED)
            return;
        searching = true;
    }
}

static void submit(void)
{
    for (const char *c = script; *c; c++) {
        if (*c == 'i' || *c == 'p')
            inject(*c == 'p' ? 2 : 1);
        if (*c == 'w')
            filch_split_publish(&strand->split, filch_split_now(&strand->split) + 1);
        filch_pool_notify(pool, NULL);
    }
}

static MC_OUTSIDE bool may_rest(void)
{
    uint64_t word = strand->split.word.filch_value;
    bool is_rest = false;

    for (unsigned i = 0; i < worker_count; i++)
        is_rest |= !is_busy[i];
    return !is_rest || (pool->inject.count.filch_value == 0 &&
                        filch_split_tail(word) == filch_split_split(word));
}

/* All initial states of `workers` workers, with all scripts of up to `length` of the two
 * letters. */
static int run_all(const char *name, mc_options options, unsigned workers, unsigned length,
                   const char *letters)
{
    mc_result total = {.name = name};
    char begin[WORKERS_MAX + 1] = "", text[LENGTH_MAX + 1], program_name[40];
    mc_program program = {.name = program_name, .setup = setup};

    options.may_rest = may_rest;
    for (unsigned i = 0; i < workers; i++)
        program.threads[i] = work;
    program.threads[workers] = submit;
    worker_count = workers;
    beginnings = begin;
    script = text;
    for (unsigned b = 0; b < 1u << workers; b++) {
        /* Left to --long: two workers that go to sleep at once, with millions of executions; and
         * three workers, unless those awake are the first. */
        bool is_first = (b & (b + 1)) == 0;
        if (((is_busy_for_ever && b == 3) || (workers == 3 && !is_first)) && !options.is_long)
            continue;
        for (unsigned k = 2; k < 2u << length; k++) { /* its highest bit is the length */
            unsigned at = 0;
            for (unsigned i = 0; i < workers; i++)
                begin[i] = b >> i & 1 ? 'a' : 's';
            for (unsigned rest = k; rest > 1; rest /= 2)
                text[at++] = letters[rest & 1];
            text[at] = '\0';
            snprintf(program_name, sizeof program_name, "sleep %s %s", begin, text);
            mc_run_and_add(&total, &program, &options);
        }
    }
    return mc_report(total);
}

int main(int argc, char **argv)
{
    mc_options options = mc_arguments(argc, argv);
    int code = 0;

    is_busy_for_ever = true;
    code |= run_all("sleep 2, jobs, busy", options, 2, 1, "ip");
    code |= run_all("sleep 2, tasks, busy", options, 2, 1, "wi");
    is_busy_for_ever = false;
    code |= run_all("sleep 1, jobs", options, 1, 1, "ip");
    code |= run_all("sleep 1, jobs", mc_bounded(options, 3, 1), 1, 2, "ip");
    code |= run_all("sleep 1, tasks", options, 1, 1, "wi");
    code |= run_all("sleep 2, jobs", mc_bounded(options, 2, 1), 2, 1, "ip");
    code |= run_all("sleep 2, tasks", mc_bounded(options, 2, 1), 2, 1, "wi");
    code |= run_all("sleep 3, jobs", mc_bounded(options, 1, 1), 3, 1, "ip");
    return code;
}
