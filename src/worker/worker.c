/* SPDX-License-Identifier: MIT */
/*
 * The loop: find a strand and run it; else search, else sleep. Its steps are declared in steps.h.
 * README.md has the order of the steps, and the edges.
 */
#include "worker/steps.h"

#include "base/clock.h"
#include "worker/crowd.h"
#include "worker/lookout.h"
#include "worker/spin.h"
#include "worker/thread.h"

/* A searcher asks for work after this many rounds without any. A question costs the victim a cache
 * miss, and is not needed if work comes at once. */
#define ROUNDS_BEFORE_ASKING 6

static _Thread_local const filch_visit *self_visit;

/* Not inlined: a compiler may keep the address of a thread-local variable across a call in which
 * the strand moves to another thread. */
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

/* ---- search ---------------------------------------------------------------------------------- */

/* A searcher has found work. Other workers may have counted on it: to take tasks that they
 * published (and perhaps took back since), or to become the lookout. */
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

/* Spinning pays only while the workers that may produce work have CPUs to run on. */
static bool may_spin(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    /* relaxed: hints. */
    unsigned absent = filch_load_relaxed(&pool->absent_count), awake = awake_count(pool);
    return awake <= pool->topology.cpu_count + absent &&
           awake + filch_load_relaxed(&pool->surplus) <= pool->worker_count + absent;
}

/* Look for work until there is some, the spin time is over, `job` is complete, or (without a job)
 * the pool stops. */
static filch_strand *search(filch_worker *worker, filch_job *job)
{
    filch_strand *strand = filch_worker_find(worker, false);
    uint64_t since = strand ? 0 : filch_clock_ns();

    for (unsigned round = 1; !strand; round++) {
        /* relaxed: a hint; the sleep that follows looks again. */
        if (job ? filch_job_is_done(job) : filch_load_relaxed(&worker->pool->stopping))
            break;
        /* Only every fourth round: reading the clock takes as long as a round. */
        if (round % 4 == 1 && (!may_spin(worker) || filch_spin_is_over(worker, since)))
            break;
        filch_pause();
        strand = filch_worker_find(worker, round >= ROUNDS_BEFORE_ASKING);
    }
    if (strand && since)
        filch_spin_paid(worker);
    return strand;
}

/* This thread will not run worker->next, so queue it for other workers. */
static void pass_on(filch_worker *worker)
{
    filch_strand *next = worker->next;

    worker->next = NULL;
    filch_queue_push(&worker->pool->ready, &next->link);
    filch_pool_notify(worker->pool, worker);
}

/* ---- a pool's thread ------------------------------------------------------------------------- */

/* After a sleep this core's caches are cold. Prefetch the data that the first task needs, so that
 * these cache misses overlap. */
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

/* Call the user's hook. It may take long, or wait for a task that another worker must run. So no
 * thread may count on this worker meanwhile. */
static void call_on_start(filch_worker *worker, bool searching)
{
    const filch_options *options = &worker->pool->options;

    if (searching)
        stop_searching(worker);
    else
        pass_on(worker);
    filch_thread_call_hook(options->on_start, worker);
}

/* The thread acts as its worker again. */
static void begin_turn(filch_worker *worker)
{
    /* relaxed: a hint for the keeper. */
    filch_store_relaxed(&worker->clock, filch_load_relaxed(&worker->own_clock));
    filch_crowd_check_cpus(worker->pool, filch_clock_ns());
}

/* The loop, from the first call of the thread to the end of the pool. The waker has handed over a
 * strand, or has counted this worker as a searcher. */
static void run_loop(filch_worker *worker)
{
    filch_pool *pool = worker->pool;
    const filch_options *options = &pool->options;
    const filch_visit visit = {.worker = worker};
    bool searching = !worker->next;
    filch_overflow overflow;

    set_self(&visit);
    begin_turn(worker);
    if (options->report_overflow)
        filch_overflow_enter(&overflow);
    if (options->on_start) {
        call_on_start(worker, searching);
        searching = false;
    }
    for (;;) {
        bool is_over = filch_crowd_enter_loop(worker) && !worker->next;
        filch_strand *strand = is_over     ? NULL
                               : searching ? search(worker, NULL)
                                           : filch_worker_find(worker, false);
        if (strand) {
            if (searching)
                stop_searching(worker);
            searching = false;
            filch_worker_run(worker, strand);
            continue;
        }
        if (!searching && !is_over) {
            unsigned awake = awake_count(pool);
            searching = filch_sleep_search(&pool->sleep, awake > 3 ? awake / 2 : 1);
            if (searching)
                continue;
        }
        bool may_run = filch_worker_have_spare(worker);
        filch_worker_shelve_spare(worker);
        filch_crowd_leave(worker);
        filch_sleep_push(&pool->sleep, worker->index,
                         searching ? FILCH_ROLE_SEARCHING : FILCH_ROLE_RUNNING);
        uint64_t until_ns = filch_timers_watch(&pool->timers, worker);
        bool is_lookout = filch_lookout_begin(worker);
        if (!filch_worker_look_once_more(worker, may_run)) {
            /* Act as a thread from outside: another thread may hold the seat by now. */
            set_self(NULL);
            filch_pool_refuse(pool, 0);
            set_self(&visit);
        }
        filch_pool_gave_seat(pool); /* filch_pool_destroy ends a thread only in its bed */
        filch_count(worker, FILCH_COUNT_sleeps, 1);
        /* Return memory to the system, unless others count on the lookout's looks. relaxed: a hint;
         * filch_worker_sleep sees a call that this load misses. */
        while (!is_lookout && filch_strands_trim(&pool->strands) &&
               filch_load_relaxed(&worker->seat.bed) == FILCH_BED_EMPTY &&
               !filch_timers_are_due(&pool->timers))
            ;
        uint64_t asleep_since = filch_clock_ticks();
        if (!filch_worker_sleep(worker, until_ns, is_lookout))
            break;
        filch_spin_after_sleep(worker, asleep_since);
        begin_turn(worker);
        searching = !worker->next;
        if (searching)
            fetch_cold(worker);
        else
            filch_strand_fetch(worker->next);
    }
    filch_thread_call_hook(options->on_stop, worker);
    if (options->report_overflow)
        filch_overflow_leave(&overflow);
}

void *filch_worker_main(void *argument)
{
    filch_worker *worker = argument;

    filch_thread_start(worker);
    /* relaxed: a hint for the keeper. */
    filch_store_relaxed(&worker->own_clock, filch_thread_clock_self());
    if (!worker->starts_in_bed || filch_worker_sleep(worker, FILCH_NEVER_NS, false))
        run_loop(worker);
    return NULL;
}

/* ---- a guest --------------------------------------------------------------------------------- */

bool filch_worker_visit(filch_worker *worker, filch_job *job)
{
    filch_pool *pool = worker->pool;
    const filch_visit visit = {worker, filch_visit_self()};
    bool is_guest = filch_worker_self_in(pool) != worker;

    /* If this thread holds the seat already, an outer loop on this stack goes on when we return.
     * Save the outer loop's variables. */
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
        strand = filch_worker_prepare_job(worker, &job->link, FILCH_COUNT_injected);
    }
    worker->has_waited = false;
    while (strand) {
        filch_worker_run(worker, strand);
        bool is_over = job && (worker->has_waited || filch_job_is_done(job));
        /* Pass the next strand on if the guest leaves. Also do so if the strand belongs to another
         * filch_run: by a rare race the guest may have completed a task that this strand waited
         * for. relaxed: the strand is ours. */
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
    /* Thieves that looked meanwhile did not see the tasks of the outer strand. */
    if (outer_strand && filch_strand_has_tasks(outer_strand))
        filch_pool_notify(pool, worker);
    /* In a hook there is no outer strand: the caller will block, and will not come to its loop. */
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
