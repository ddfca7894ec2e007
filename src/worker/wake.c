/* SPDX-License-Identifier: MIT */
/*
 * Wake a worker: take the seat of a sleeping worker and call its thread, or start the thread of a
 * vacant seat.
 *
 * src/sleep/README.md has the protocol: which thread may take a seat, and why no task waits while a
 * worker sleeps. README.md says what happens if a thread cannot be started.
 */
#include "base/clock.h"
#include "base/fault.h"
#include "worker/crowd.h"
#include "worker/keeper.h"
#include "worker/second_look.h"
#include "worker/worker.h"

#include <errno.h>

/* After a failure, the keeper waits a millisecond before the next attempt to start a thread. Each
 * further failure in a row doubles the time, ten times at most: to a second. */
#define FIRST_RETRY_NS 1000000
#define RETRY_DOUBLINGS 10

/* ---- start a thread -------------------------------------------------------------------------- */

/* By the holder of the seat. Returns 0 or -errno. */
static int start(filch_worker *worker)
{
    /* Set this before the thread starts: a running thread may give the seat back. The thread that
     * destroys the pool then takes the seat, and reads this. */
    worker->has_thread = true;
    int err = filch_fault(FILCH_FAULT_THREAD)
                  ? EAGAIN
                  : pthread_create(&worker->thread, NULL, filch_worker_main, worker);
    if (err)
        worker->has_thread = false;
    return -err;
}

int filch_pool_start_first(filch_pool *pool)
{
    filch_worker *worker = pool->workers[0];

    worker->starts_in_bed = true;
    int err = start(worker);
    filch_sleep_push(err ? &pool->vacant : &pool->sleep, 0, FILCH_ROLE_RUNNING);
    return err;
}

/* By a thread that has pushed back the seat whose thread could not be started. Until the keeper
 * tries again, no other thread does: it would only fail, too. */
static void put_off(filch_pool *pool)
{
    /* relaxed: only the time of the next attempt depends on it. */
    filch_fetch_add_relaxed(&pool->failed_starts, 1);
    /* seq_cst [put-off-or-look] */
    filch_store_seq_cst(&pool->put_off, 1);
    filch_keeper_ring();
}

static uint64_t retry_after_ns(filch_pool *pool)
{
    /* relaxed: see put_off. */
    uint32_t failed = filch_load_relaxed(&pool->failed_starts), more = failed ? failed - 1 : 0;

    return (uint64_t)FIRST_RETRY_NS << (more < RETRY_DOUBLINGS ? more : RETRY_DOUBLINGS);
}

uint64_t filch_pool_retry(filch_pool *pool)
{
    /* relaxed: the bell carries it. */
    if (!filch_load_relaxed(&pool->put_off))
        return FILCH_NEVER_NS;
    uint64_t now_ns = filch_clock_ns();
    if (pool->retry_ns == 0)
        pool->retry_ns = now_ns + retry_after_ns(pool);
    if (now_ns < pool->retry_ns)
        return pool->retry_ns;
    pool->retry_ns = 0;
    /* seq_cst [put-off-or-look]: publishers so far have counted on the look that follows. */
    filch_store_seq_cst(&pool->put_off, 0);
    if (filch_pool_needs_worker(pool, NULL) || filch_second_look_is_needed(pool, NULL))
        filch_pool_notify(pool, NULL);
    else
        /* relaxed: see put_off. The next failure is not one in a row with the last. */
        filch_store_relaxed(&pool->failed_starts, 0);
    return FILCH_NEVER_NS; /* after another failure, the bell has been rung */
}

/* How many vacant seats may get a thread now. */
static unsigned startable_count(filch_pool *pool)
{
    unsigned count = filch_sleep_idle_count(&pool->vacant);
    /* seq_cst [put-off-or-look] */
    return count > 0 && !filch_load_seq_cst(&pool->put_off) ? count : 0;
}

/* Start the thread of a vacant seat. The thread first runs `next`. If that is NULL, it begins as a
 * searcher, which the caller has counted. False: no seat is vacant, or its thread cannot be
 * started. */
static bool start_vacant(filch_pool *pool, filch_strand *next)
{
    int seat = filch_sleep_pop(&pool->vacant, FILCH_ROLE_RUNNING, false);

    if (seat < 0)
        return false;
    filch_worker *worker = pool->workers[seat];
    worker->next = next;
    filch_crowd_watch(pool);
    /* A task may call fork(), and go on to fork tasks in the child. Start no thread there: once the
     * task has returned, the pool is rebuilt, and the thread would still use it. */
    if (filch_pool_is_alive(pool) && start(worker) == 0) {
        /* relaxed: see put_off. */
        filch_store_relaxed(&pool->failed_starts, 0);
        return true;
    }
    worker->next = NULL;
    filch_sleep_push(&pool->vacant, (unsigned)seat, FILCH_ROLE_RUNNING);
    put_off(pool);
    filch_pool_gave_seat(pool);
    return false;
}

/* ---- wake a worker --------------------------------------------------------------------------- */

/* Vacant seats count also while starts are put off: the keeper will start threads, and they must
 * find the tasks that were forked meanwhile, even if their forker computes or blocks by then. */
unsigned filch_pool_idle_count(filch_pool *pool)
{
    unsigned idle = filch_sleep_idle_count(&pool->sleep) + filch_sleep_idle_count(&pool->vacant);
    unsigned searching = filch_sleep_searcher_count(&pool->sleep);

    /* A worker that begins to search, or stops, in between is counted all the same. */
    return searching + filch_crowd_wakeable(pool, idle > searching ? idle - searching : 0);
}

unsigned filch_pool_sleeper_count(filch_pool *pool)
{
    return filch_crowd_is_full(pool)
               ? 0
               : filch_sleep_sleeper_count(&pool->sleep) + startable_count(pool);
}

void filch_pool_notify(filch_pool *pool, filch_worker *worker)
{
    for (;;) {
        if (filch_crowd_is_full(pool))
            return;
        int seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_SEARCHING, true);
        bool is_asleep = seat >= 0;
        if (!is_asleep && (startable_count(pool) == 0 || !filch_sleep_search(&pool->sleep, 1)))
            return;
        if (is_asleep) {
            filch_crowd_watch(pool);
            filch_seat_call(&pool->workers[seat]->seat, FILCH_BED_CALLED);
        }
        if (is_asleep || start_vacant(pool, NULL)) {
            if (worker)
                filch_count(worker, FILCH_COUNT_wakes, 1);
            return;
        }
        /* No thread could be started, but publishers may have counted on it as a searcher. A worker
         * may have gone to sleep meanwhile: look again. */
        filch_sleep_found(&pool->sleep);
    }
}

bool filch_pool_hand_over(filch_pool *pool, filch_strand *strand)
{
    if (filch_crowd_is_full(pool))
        return false;
    int seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_RUNNING, true);

    if (seat >= 0) {
        filch_worker *worker = pool->workers[seat];
        worker->next = strand;
        filch_crowd_watch(pool);
        filch_seat_call(&worker->seat, FILCH_BED_CALLED);
        return true;
    }
    return filch_sleep_searcher_count(&pool->sleep) == 0 && startable_count(pool) > 0 &&
           start_vacant(pool, strand);
}
