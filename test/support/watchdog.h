/* SPDX-License-Identifier: MIT */
/*
 * The watchdog ends a test program that hangs. When the program makes no progress for
 * WATCHDOG_SECONDS, the watchdog prints the counters of all watched pools and the state of their
 * strands, and aborts.
 *
 *     filch_pool *pool = watched_pool_create(&options);            is progress
 *     watchdog_kick();                                             is progress
 *     cmocka_run_group_tests_name("x", tests, watchdog_start, watchdog_stop)
 *
 * The limit is so long that a correct test never reaches it, however loaded the machine is.
 */
#ifndef FILCH_TEST_WATCHDOG_H
#define FILCH_TEST_WATCHDOG_H

#include "worker/worker.h"

#include "support.h"

#include <signal.h>

#define WATCHDOG_SECONDS 900
#define WATCHED_POOLS 8

static struct {
    pthread_t thread;
    unsigned limit_seconds;
    filch_atomic_u32 stop;
    filch_atomic_u32 progress;
    FILCH_ATOMIC(filch_pool *) pools[WATCHED_POOLS];
} watchdog = {.limit_seconds = WATCHDOG_SECONDS};

static TEST_UNUSED void watchdog_kick(void)
{
    /* relaxed: a sign of life. */
    filch_fetch_add_relaxed(&watchdog.progress, 1);
}

/* The report takes no locks: the holder of a lock may be the reason for the hang. */

static void watchdog_report_strand(filch_strand *strand, void *context)
{
    filch_pool *pool = context;
    filch_split *split = &strand->split;
    filch_slot *slots = filch_split_slots(split);
    /* relaxed: see above. */
    uint64_t word = filch_load_relaxed(&split->word);

    fprintf(stderr, "  strand %u:", strand->id);
    for (unsigned i = 0; i < pool->worker_count; i++) {
        filch_worker *worker = pool->workers[i];
        /* relaxed: see above. */
        if (filch_load_relaxed(&worker->strand) == strand)
            fprintf(stderr, " runs on worker %u,", i);
        if (worker->spare == strand || filch_load_relaxed(&worker->shelf) == strand)
            fprintf(stderr, " is a spare of worker %u,", i);
        if (worker->next == strand)
            fprintf(stderr, " is next on worker %u,", i);
    }
    for (filch_strand *free = strand->slab->free; free; free = free->next_free)
        if (free == strand)
            fprintf(stderr, " is free,");
    for (filch_link *ready = pool->ready.first; ready; ready = ready->next)
        if (ready == &strand->link)
            fprintf(stderr, " may go on,");
    for (uint32_t i = 0; i < (strand->kind ? 64 : filch_split_tail(word)) && slots + i < split->end;
         i++)
        /* relaxed: see above. */
        if (filch_load_relaxed(&slots[i].state) & FILCH_TASK_AWAITED)
            fprintf(stderr, " waits for the task stolen from its slot %u,", i);
    if (strand->kind)
        fprintf(stderr, " %s with %zu entries,", strand->kind->name,
                strand->kind->size_hint(strand->deque));
    fprintf(stderr, " split %u, tail %u, known %u, %s, root %p\n", filch_split_split(word),
            filch_split_tail(word), filch_split_known(split),
            filch_split_is_armed(split) ? "asked" : "not asked", filch_load_relaxed(&strand->root));
}

static void watchdog_report(filch_pool *pool)
{
    filch_counters c = {.size = sizeof c};

    /* relaxed: see above. */
    fprintf(stderr, "pool %p, %u workers: sleep word %#llx, %u injected, %u ready, %u pending\n",
            (const void *)pool, filch_pool_worker_count(pool),
            (unsigned long long)filch_load_relaxed(&pool->sleep.word),
            filch_load_relaxed(&pool->inject.count), filch_load_relaxed(&pool->ready.count),
            filch_load_relaxed(&pool->pending));
    filch_slabs_each(&pool->strands.slabs, watchdog_report_strand, pool);
    for (unsigned i = 0; filch_worker_counters(pool, i, &c) == 0; i++) {
        fprintf(stderr, "  worker %u:", i);
#define WATCHDOG_PRINT(name) fprintf(stderr, " %s %llu", #name, (unsigned long long)c.name);
        FILCH_COUNTERS(WATCHDOG_PRINT)
#undef WATCHDOG_PRINT
        fputc('\n', stderr);
    }
}

static void watchdog_report_all(void)
{
    for (int i = 0; i < WATCHED_POOLS; i++) {
        /* relaxed: the program hangs, so it does not destroy the pool now. */
        filch_pool *pool = filch_load_relaxed(&watchdog.pools[i]);
        if (pool)
            watchdog_report(pool);
    }
}

static void *watchdog_main(void *argument TEST_UNUSED)
{
    const struct timespec second = {.tv_sec = 1};
    uint32_t last = 0;
    unsigned idle_seconds = 0;
    sigset_t all;

    /* Signals that the test sends must not cut a second short. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);

    /* relaxed: the join of this thread orders everything. */
    while (!filch_load_relaxed(&watchdog.stop)) {
        filch_futex_wait(&watchdog.stop, 0, &second);
        /* relaxed: a sign of life. */
        uint32_t now = filch_load_relaxed(&watchdog.progress);
        idle_seconds = now == last ? idle_seconds + 1 : 0;
        last = now;
        if (idle_seconds < watchdog.limit_seconds)
            continue;
        fprintf(stderr, "watchdog: no progress for %u seconds (FILCH_TEST_SEED=%llu)\n",
                idle_seconds, (unsigned long long)test_seed());
        watchdog_report_all();
        abort();
    }
    return NULL;
}

static TEST_UNUSED int watchdog_start(void **state TEST_UNUSED)
{
    test_seed();
    /* relaxed: the watchdog thread does not exist yet. */
    filch_store_relaxed(&watchdog.stop, 0);
    return pthread_create(&watchdog.thread, NULL, watchdog_main, NULL);
}

static TEST_UNUSED int watchdog_stop(void **state TEST_UNUSED)
{
    /* relaxed: the join below orders everything. */
    filch_store_relaxed(&watchdog.stop, 1);
    filch_futex_wake(&watchdog.stop, 1);
    return pthread_join(watchdog.thread, NULL);
}

/* Add the pool to the report. Only the test's own thread may call this. */
static TEST_UNUSED void watchdog_watch(filch_pool *pool)
{
    for (int i = 0; i < WATCHED_POOLS; i++) {
        /* relaxed: only the test's thread writes it. */
        if (!filch_load_relaxed(&watchdog.pools[i])) {
            filch_store_relaxed(&watchdog.pools[i], pool);
            break;
        }
    }
}

/* The test's own thread calls these instead of filch_pool_create and filch_pool_destroy. */
static TEST_UNUSED filch_pool *watched_pool_create(const filch_options *options)
{
    filch_pool *pool = NULL;

    watchdog_kick();
    assert_int_equal(filch_pool_create(&pool, options), 0);
    watchdog_watch(pool);
    return pool;
}

static TEST_UNUSED filch_pool *watched_pool_of(unsigned workers)
{
    filch_options options = {.size = sizeof options, .workers = workers};
    return watched_pool_create(&options);
}

static TEST_UNUSED void watched_pool_destroy(filch_pool *pool)
{
    watchdog_kick();
    assert_int_equal(filch_pool_destroy(pool), 0);
    for (int i = 0; i < WATCHED_POOLS; i++)
        /* relaxed: only the test's thread writes it. */
        if (filch_load_relaxed(&watchdog.pools[i]) == pool)
            filch_store_relaxed(&watchdog.pools[i], NULL);
    watchdog_kick();
}

#endif
