/* SPDX-License-Identifier: MIT */
/*
 * Waking: a publisher takes the seat of a sleeping worker and calls its thread, or starts one.
 *
 * src/sleep/README.md has the protocol: who may take a seat, and why no task waits while a worker
 * sleeps.
 */
#include "base/fault.h"
#include "worker/worker.h"

/* Wake the thread of a seat, or start it. False: there is none to be had. */
static bool call(filch_pool *pool, filch_worker *worker)
{
    if (worker->has_thread) {
        filch_seat_call(&worker->seat, FILCH_BED_CALLED);
        return true;
    }
    /* Before it starts: the next to look is whoever takes the seat after the thread gave it back. */
    worker->has_thread = true;
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&pool->thread_count, 1);
    /* In the child of a fork() made by a task, which goes on forking, none: when it returns, the pool is made anew under the thread. */
    if (filch_pool_is_alive(pool) && !filch_fault(FILCH_FAULT_THREAD) &&
        pthread_create(&worker->thread, NULL, filch_worker_main, worker) == 0) {
        /* relaxed: a hint for who waits, and looks again. */
        filch_store_relaxed(&pool->has_threads, 1);
        return true;
    }
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&pool->thread_count, -1u);
    worker->has_thread = false;
    return false;
}

/* Do without this worker from now on; a guest may still sit there. */
static void vacate(filch_pool *pool, unsigned seat)
{
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&pool->vacant_count, 1);
    filch_sleep_push(&pool->vacant, seat, FILCH_ROLE_RUNNING);
    filch_pool_gave_seat(pool);
}

void filch_pool_notify(filch_pool *pool, filch_worker *worker)
{
    int seat;

    while ((seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_SEARCHING, true)) >= 0) {
        if (worker)
            filch_count(worker, FILCH_COUNT_wakes);
        if (call(pool, pool->workers[seat]))
            return;
        filch_sleep_found(&pool->sleep);
        vacate(pool, (unsigned)seat);
    }
}

bool filch_pool_hand_over(filch_pool *pool, filch_strand *strand)
{
    int seat;

    while ((seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_RUNNING, true)) >= 0) {
        filch_worker *worker = pool->workers[seat];
        worker->next = strand;
        if (call(pool, worker))
            return true;
        worker->next = NULL;
        vacate(pool, (unsigned)seat);
    }
    return false;
}
