/* SPDX-License-Identifier: MIT */
/*
 * Wake a worker: take the seat of a sleeping worker and call its thread, or start the thread.
 *
 * src/sleep/README.md has the protocol: which thread may take a seat, and why no task waits while a
 * worker sleeps.
 */
#include "base/fault.h"
#include "worker/worker.h"

/* Wake the thread of a seat, or start it. False: it cannot be started. */
static bool call(filch_pool *pool, filch_worker *worker)
{
    if (worker->has_thread) {
        filch_seat_call(&worker->seat, FILCH_BED_CALLED);
        return true;
    }
    /* Set it before the thread starts: once it runs, it may give the seat back, and the next taker
     * of the seat reads this. */
    worker->has_thread = true;
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&pool->thread_count, 1);
    /* A task may call fork(), and go on to fork tasks in the child. Start no thread there: once the
     * task has returned, the pool is rebuilt, and the thread would still use it. */
    if (filch_pool_is_alive(pool) && !filch_fault(FILCH_FAULT_THREAD) &&
        pthread_create(&worker->thread, NULL, filch_worker_main, worker) == 0) {
        /* relaxed: a hint for filch_pool_help, which is called again. */
        filch_store_relaxed(&pool->has_threads, 1);
        return true;
    }
    /* relaxed: a count. */
    filch_fetch_add_relaxed(&pool->thread_count, -1u);
    worker->has_thread = false;
    return false;
}

/* The seat has no thread, and will not get one. Guests may still take it. */
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
