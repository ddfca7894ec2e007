/* SPDX-License-Identifier: MIT */
/*
 * The loop: resume, else take from outside, else steal, else search, else sleep. Its parts are in loop.h.
 *
 * Edges (src/sleep/README.md and src/wait/README.md say more)
 *   strand-shown     filch_worker_visit -> steal in find.c, filch_pool_look_everywhere in look.c
 *   strand-or-sleep  filch_worker_visit x filch_pool_look_everywhere in look.c
 */
#include "worker/steps.h"

#include "base/clock.h"
#include "worker/lookout.h"
#include "worker/spin.h"
#include "worker/thread.h"

/* A searcher asks for work after this many rounds without any: a question costs the victim a cache miss, and work
 * that comes in the next moment needs none. */
#define ROUNDS_BEFORE_ASKING 6

static _Thread_local const filch_visit *self_visit;

/* Not inlined: a compiler keeps the address of a thread-local variable over a switch to a strand that comes back
 * on another thread. */
__attribute__((noinline)) const filch_visit *filch_visit_self(void)
{
    const filch_visit *visit = self_visit;
    __asm__ volatile("" : "+r"(visit));
    return visit;
}

static __attribute__((noinline)) void set_self(const filch_visit *visit)
{
    self_visit = visit;
}

filch_worker *filch_worker_self_in(const filch_pool *pool)
{
    const filch_visit *visit = filch_visit_self();
    while (visit && visit->worker->pool != pool)
        visit = visit->outer;
    return visit ? visit->worker : NULL;
}

/* ---- search ------------------------------------------------------------------------------------ */

/* A searcher has found something. Others may have published meanwhile and counted on it, and taken back what they published; or they count on it to become the lookout. */
static void stop_searching(filch_worker *worker)
{
    if (filch_sleep_found(&worker->pool->sleep))
        filch_worker_leave_rest(worker);
}

static unsigned awake_count(filch_pool *pool)
{
    return pool->worker_count - filch_sleep_sleeper_count(&pool->sleep) -
           filch_sleep_sleeper_count(&pool->vacant);
}

/* Spinning pays only while the one we wait for has a CPU to run on. */
static bool may_spin(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    return awake_count(pool) <= pool->topology.cpu_count;
}

/* Look for work until there is some, or time is up, or `job` is complete. */
static filch_strand *search(filch_worker *worker, filch_job *job)
{
    filch_strand *strand = filch_worker_find(worker, false);
    uint64_t since = strand ? 0 : filch_clock_ns();

    for (unsigned round = 1; !strand; round++) {
        /* relaxed: a hint; the sleep that follows looks again. */
        if (job ? filch_job_is_done(job) : filch_load_relaxed(&worker->pool->stopping))
            break;
        /* Now and then: the clock takes as long as a round. */
        if (round % 4 == 1 && (!may_spin(worker) || filch_spin_is_over(worker, since)))
            break;
        filch_pause();
        strand = filch_worker_find(worker, round >= ROUNDS_BEFORE_ASKING);
    }
    if (strand && since)
        filch_spin_paid(worker);
    return strand;
}

/* Who sits here does not go on with what it should run next. */
static void pass_on(filch_worker *worker)
{
    filch_strand *next = worker->next;

    worker->next = NULL;
    filch_queue_push(&worker->pool->ready, &next->link);
    filch_pool_notify(worker->pool, worker);
}

/* ---- a pool's thread --------------------------------------------------------------------------- */

/* After a sleep nothing is in this core's caches. Fetch what the first task needs all at once, and not one after the other. */
static void fetch_cold(filch_worker *worker)
{
    /* relaxed: a guess. */
    filch_strand *strand = filch_load_relaxed(&worker->shelf);

    __builtin_prefetch(&worker->pool->inject);
    __builtin_prefetch(&worker->strand, 1);
    __builtin_prefetch(&worker->pool->ready);
    if (strand) {
        __builtin_prefetch(strand, 1);
        __builtin_prefetch(&strand->worker, 1);
        __builtin_prefetch(filch_split_slots(&strand->split), 1);
        __builtin_prefetch((char *)strand - 64, 1);
    }
}

void *filch_worker_main(void *argument)
{
    filch_worker *worker = argument;
    filch_pool *pool = worker->pool;
    bool searching =
        !worker->next; /* whoever started us has a strand for us, or counted us as searcher */

    const filch_visit visit = {.worker = worker};
    filch_overflow overflow;
    set_self(&visit);
    if (pool->options.on_start) {
        /* It may take long, or wait for a task that another worker has: nobody may count on this one meanwhile. */
        if (searching)
            stop_searching(worker);
        else
            pass_on(worker);
        searching = false;
    }
    filch_thread_start(worker, &overflow);
    for (;;) {
        filch_strand *strand = searching ? search(worker, NULL) : filch_worker_find(worker, false);
        if (strand) {
            if (searching)
                stop_searching(worker);
            searching = false;
            filch_worker_run(worker, strand);
            continue;
        }
        if (!searching) {
            unsigned awake = awake_count(pool);
            searching = filch_sleep_search(&pool->sleep, awake > 3 ? awake / 2 : 1);
            if (searching)
                continue;
        }
        bool may_run = filch_worker_have_spare(worker);
        filch_worker_shelve_spare(worker);
        filch_sleep_push(&pool->sleep, worker->index,
                         searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
        uint64_t until_ns = filch_timers_watch(&pool->timers, worker);
        bool is_lookout = filch_lookout_begin(worker);
        if (!filch_worker_look_once_more(worker, may_run)) {
            /* As somebody from outside: the seat may be another's by now. */
            set_self(NULL);
            filch_pool_refuse(pool, 0);
            set_self(&visit);
        }
        filch_pool_gave_seat(pool); /* a destroyer ends us in bed */
        filch_count(worker, FILCH_COUNT_sleeps);
        /* There is time to tidy up, unless others count on our looks; relaxed: until we are called, at the latest when we would sleep. */
        while (!is_lookout && filch_strands_trim(&pool->strands) &&
               filch_load_relaxed(&worker->seat.bed) == FILCH_BED_EMPTY &&
               !filch_timers_are_due(&pool->timers))
            ;
        uint64_t asleep_since = filch_clock_ticks();
        if (!filch_worker_sleep(worker, until_ns, is_lookout))
            break;
        filch_spin_after_sleep(worker, asleep_since);
        searching = !worker->next;
        if (searching)
            fetch_cold(worker);
        else
            filch_strand_fetch(worker->next);
    }
    filch_thread_stop(worker, &overflow);
    return NULL;
}

/* ---- a guest ----------------------------------------------------------------------------------- */

bool filch_worker_visit(filch_worker *worker, filch_job *job)
{
    filch_pool *pool = worker->pool;
    const filch_visit visit = {worker, filch_visit_self()};
    bool is_guest = filch_worker_self_in(pool) != worker;

    /* The seat may be ours already, further out on this stack: its loop goes on when we return. */
    filch_context native = worker->native;
    /* relaxed: own variable. */
    filch_strand *outer_strand = filch_load_relaxed(&worker->strand);
    void *outer_root = worker->root;
    filch_overflow overflow;
    if (is_guest && pool->options.report_overflow)
        filch_overflow_enter(&overflow);
    set_self(&visit);

    worker->root = job;
    worker->is_visited |= is_guest;
    filch_strand *strand = filch_worker_have_spare(worker);
    bool has_strand = strand != NULL;
    if (!has_strand || !job) {
        strand = filch_worker_find(worker, true);
        if (!strand && !has_strand && !job) {
            filch_pool_refuse(pool, 1);
            strand = filch_worker_find(worker, true);
        }
    } else {
        strand = filch_worker_prepare_job(worker, &job->link);
    }
    worker->has_waited = false;
    while (strand) {
        filch_worker_run(worker, strand);
        bool is_over = job && (worker->has_waited || filch_job_is_done(job));
        /* By a rare race it has run a task of somebody else, whose forker waited for it; or it leaves. relaxed: the strand is ours. */
        if (worker->next && job &&
            (worker->has_waited || filch_load_relaxed(&worker->next->root) != job))
            pass_on(worker);
        if (!worker->next && is_over)
            break;
        strand = search(worker, job);
    }

    worker->root = outer_root;
    worker->native = native;
    if (outer_strand)
        filch_strand_arm(outer_strand);
    /* release [strand-shown], seq_cst [strand-or-sleep] */
    filch_store_seq_cst(&worker->strand, outer_strand);
    /* Who looked meanwhile did not see what it had public before. */
    if (outer_strand && filch_strand_has_public(outer_strand))
        filch_pool_notify(pool, worker);
    /* In a hook the caller will block, and come to no loop. */
    if (!is_guest && !outer_strand)
        filch_worker_pay_watch(worker);
    if (is_guest) {
        worker->is_visited = false;
        filch_worker_shelve_spare(worker);
    }
    if (is_guest && pool->options.report_overflow)
        filch_overflow_leave(&overflow);
    set_self(visit.outer);
    return has_strand;
}
