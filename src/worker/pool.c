/* SPDX-License-Identifier: MIT */
/*
 * A pool from its creation to its end, and the ways in from outside.
 *
 * Edges
 *   pending        filch_pool_end -> filch_pool_wait   carries all that the tasks did.
 *   rebuilt        check_process -> check_process      carries the pool, made anew after a fork().
 *   stop-or-sleep  stop_threads x filch_worker_main    src/sleep/README.md
 *   gave-seat      filch_worker_main -> stop_threads   carries the seat: who has seen the count finds it on the stack.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "worker/lookout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_STACK_BYTES ((size_t)8 << 20)
/* A larger size was never set. */
#define LARGEST_OPTIONS_BYTES 4096
#define SMALLEST_STACK_BYTES ((size_t)16 << 10)

/* ---- create and destroy ------------------------------------------------------------------------ */

/* A shorter struct comes from an older caller: the rest is zero. From a longer one, only zeros are
 * understood. */
static int copy_options(filch_options *to, const filch_options *from)
{
    size_t known = sizeof *to;

    memset(to, 0, sizeof *to);
    if (!from)
        return 0;
    if (from->size < sizeof from->size)
        return -EINVAL;
    if (from->size > LARGEST_OPTIONS_BYTES)
        return -E2BIG;
    for (size_t i = known; i < from->size; i++)
        if (((const unsigned char *)from)[i] != 0)
            return -E2BIG;
    memcpy(to, from, from->size < known ? from->size : known);
    to->size = known;
    return 0;
}

bool filch_is_verbose(void)
{
    const char *verbose = getenv("FILCH_VERBOSE");
    return verbose && strcmp(verbose, "0") != 0;
}

/* The environment may replace the default. */
static void choose_kind(filch_pool *pool)
{
    filch_options *options = &pool->options;
    const char *wish = options->deque == FILCH_DEQUE_SPLIT ? getenv("FILCH_DEQUE") : NULL;

    if (!wish)
        return;
    bool is_known =
        filch_kind_parse(wish, &pool->kind, &options->deque_capacity, &options->deque_block);
    if (filch_is_verbose())
        fprintf(stderr, "filch: pool '%s': deque '%.32s' %s\n", options->name, wish,
                is_known ? "set by FILCH_DEQUE" : "in FILCH_DEQUE ignored");
}

static int complete_options(filch_pool *pool)
{
    filch_options *options = &pool->options;
    static const uint64_t spin_ns[] = {
        [FILCH_WAIT_BALANCED] = 50 * 1000,
        [FILCH_WAIT_LATENCY] = 1000 * 1000,
        [FILCH_WAIT_POWER] = 0,
    };

    pool->policy = filch_policy_find(options->victim);
    if (!pool->policy || !filch_kind_find(options->deque, &pool->kind) ||
        (unsigned)options->wait >= sizeof spin_ns / sizeof spin_ns[0])
        return -EINVAL;
    if (options->stack_bytes == 0)
        options->stack_bytes = DEFAULT_STACK_BYTES;
    if (options->stack_bytes < SMALLEST_STACK_BYTES || options->stack_bytes > PTRDIFF_MAX / 2)
        return -EINVAL;
    if (!options->name)
        options->name = "filch";
    choose_kind(pool);
    pool->spin_ns = spin_ns[options->wait];
    return 0;
}

static unsigned choose_worker_count(const filch_pool *pool)
{
    unsigned count = pool->options.workers;
    char why[256];

    if (count > 0)
        snprintf(why, sizeof why, "%u workers: asked for by the program", count);
    else
        count = filch_topology_default_workers(&pool->topology, "", why, sizeof why);
    if (filch_is_verbose())
        fprintf(stderr, "filch: pool '%s': %s%s\n", pool->options.name, why,
                count > FILCH_SEATS_MAX ? "; more than 1000 are not supported" : "");
    return count < FILCH_SEATS_MAX ? count : FILCH_SEATS_MAX;
}

/* Everybody is asleep, and nobody has a thread. */
static void reset_seats(filch_pool *pool)
{
    /* relaxed: nobody else knows the pool. */
    filch_store_relaxed(&pool->sleep.word, 0);
    filch_store_relaxed(&pool->vacant.word, 0);
    filch_store_relaxed(&pool->vacant_count, 0);
    filch_store_relaxed(&pool->thread_count, 0);
    filch_store_relaxed(&pool->pending, 0);
    filch_store_relaxed(&pool->lookout, 0);
    for (unsigned i = pool->worker_count; i-- > 0;) {
        filch_worker *worker = pool->workers[i];
        memset(worker, 0, sizeof *worker);
        worker->pool = pool;
        worker->index = i;
        filch_victims_init(&worker->victims, i, pool->worker_count);
        filch_queue_init(&worker->ready);
        filch_queue_init(&worker->spawned);
        worker->seat.bell = -1;
        filch_sleep_push(&pool->sleep, i, FILCH_ROLE_RUNNING);
    }
}

static void free_workers(filch_pool *pool)
{
    for (unsigned i = 0; pool->workers && i < pool->worker_count; i++)
        free(pool->workers[i]);
    free(pool->workers);
    free(pool->sleep.seats);
}

static int create_workers(filch_pool *pool)
{
    unsigned count = pool->worker_count;
    size_t bytes = (sizeof(filch_worker) + FILCH_CACHE_LINE - 1) / FILCH_CACHE_LINE * FILCH_CACHE_LINE;

    pool->workers = filch_calloc(count, sizeof pool->workers[0]);
    pool->sleep.seats = filch_calloc(count, sizeof pool->sleep.seats[0]);
    if (!pool->workers || !pool->sleep.seats)
        goto free_workers;
    for (unsigned i = 0; i < count; i++) {
        pool->workers[i] =
            filch_fault(FILCH_FAULT_MALLOC) ? NULL : aligned_alloc(FILCH_CACHE_LINE, bytes);
        if (!pool->workers[i])
            goto free_workers;
        pool->sleep.seats[i] = &pool->workers[i]->seat;
    }
    pool->vacant.seats = pool->sleep.seats;
    return 0;

free_workers:
    free_workers(pool);
    return -ENOMEM;
}

/* A page that the kernel clears in the child of a fork(), so that the child knows without being told. */
static int create_alive(filch_pool *pool)
{
    size_t page = filch_page_bytes();
    void *memory = filch_fault(FILCH_FAULT_MAP) ? MAP_FAILED
                                                : mmap(NULL, page, PROT_READ | PROT_WRITE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    if (!filch_wipe_on_fork(memory, page))
        pool->process = getpid();
    pool->alive = memory;
    /* relaxed: nobody else knows the pool. */
    filch_store_relaxed(pool->alive, 1);
    return 0;
}

int filch_pool_create_abi(filch_pool **out, const filch_options *options, unsigned abi)
{
    filch_options copy;
    int err = out ? copy_options(&copy, options) : -EINVAL;

    if (err)
        return err;
    if (abi != FILCH_ABI)
        return -ENOEXEC;
    filch_pool *pool =
        filch_fault(FILCH_FAULT_MALLOC) ? NULL : aligned_alloc(FILCH_CACHE_LINE, sizeof *pool);
    if (!pool)
        return -ENOMEM;
    memset(pool, 0, sizeof *pool);
    pool->options = copy;
    err = complete_options(pool);
    if (err)
        goto free_pool;
    /* The name is the caller's, and threads start late. */
    pool->options.name = filch_fault(FILCH_FAULT_MALLOC) ? NULL : strdup(pool->options.name);
    err = pool->options.name ? filch_topology_init(&pool->topology) : -ENOMEM;
    if (err)
        goto free_name;
    if (pool->options.pin)
        filch_topology_explore(&pool->topology, "");
    pool->worker_count = choose_worker_count(pool);
    err = create_workers(pool);
    if (err)
        goto fini_topology;
    err = create_alive(pool);
    if (err)
        goto free_workers;
    filch_queue_init(&pool->inject);
    filch_queue_init(&pool->ready);
    filch_timers_init(&pool->timers);
    filch_strands_init(&pool->strands, pool, pool->options.stack_bytes);
    err = filch_strands_use(&pool->strands, pool->kind, pool->options.deque_capacity,
                            pool->options.deque_block);
    if (err)
        goto unmap_alive;
    reset_seats(pool);
    /* One strand is there from the beginning: with it, every task can be run, if need be one by one. */
    filch_strand *first = filch_strand_take(&pool->strands);
    if (!first) {
        err = -ENOMEM;
        goto fini_strands;
    }
    filch_strand_give(&pool->strands, first);
    err = pool->options.report_overflow ? filch_overflow_install() : 0;
    if (err)
        goto fini_strands;
    *out = pool;
    return 0;

fini_strands:
    filch_strands_fini(&pool->strands);
unmap_alive:
    munmap(pool->alive, filch_page_bytes());
free_workers:
    free_workers(pool);
fini_topology:
    filch_topology_fini(&pool->topology);
free_name:
    free((char *)pool->options.name);
free_pool:
    free(pool);
    return err;
}

/* Once we have every seat, no thread is running, about to be woken or being started. */
static void stop_threads(filch_pool *pool)
{
    unsigned seat_count = 0;
    int seat;

    /* seq_cst [stop-or-sleep] */
    filch_store_seq_cst(&pool->stopping, 1);
    for (;;) {
        /* acquire [gave-seat] */
        uint32_t seen = filch_load_acquire(&pool->stopping);
        while ((seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_RUNNING, false)) >= 0 ||
               (seat = filch_sleep_pop(&pool->vacant, FILCH_ROLE_RUNNING, false)) >= 0) {
            seat_count++;
            if (pool->workers[seat]->has_thread)
                filch_seat_call(&pool->workers[seat]->seat, FILCH_BED_ENDED);
        }
        if (seat_count == pool->worker_count)
            break;
        filch_futex_wait(&pool->stopping, seen, NULL);
    }
    for (unsigned i = 0; i < pool->worker_count; i++)
        if (pool->workers[i]->has_thread)
            pthread_join(pool->workers[i]->thread, NULL);
}

int filch_pool_destroy(filch_pool *pool)
{
    int err = filch_pool_wait(pool);

    if (err)
        return err;
    stop_threads(pool);
    filch_parts_end(&pool->parts, false);
    if (pool->options.report_overflow)
        filch_overflow_remove();
    filch_strands_fini(&pool->strands);
    munmap(pool->alive, filch_page_bytes());
    free_workers(pool);
    filch_topology_fini(&pool->topology);
    free((char *)pool->options.name);
    free(pool);
    return 0;
}

/* ---- fork() ------------------------------------------------------------------------------------ */

/* In the child of a fork() the pool's threads are gone, and what they worked on is the parent's. Start anew,
 * with the memory that was inherited. */
static void rebuild(filch_pool *pool)
{
    /* What was queued is the parent's, and may lie on stacks that are gone. */
    filch_queue_init(&pool->inject);
    filch_queue_init(&pool->ready);
    filch_timers_init(&pool->timers);
    filch_parts_end(&pool->parts, true);
    filch_strands_rebuild(&pool->strands);
    reset_seats(pool);
}

enum { PROCESS_FORKED, PROCESS_ALIVE, PROCESS_REBUILDING };

bool filch_pool_is_alive(const filch_pool *pool)
{
    /* acquire [rebuilt] */
    return filch_load_acquire(pool->alive) == PROCESS_ALIVE &&
           (!pool->process || pool->process == getpid());
}

static int check_process(filch_pool *pool)
{
    uint32_t state = PROCESS_FORKED;

    /* Where the kernel does not wipe the page, ask who we are. The first to notice is alone, or in a race that
     * ends with the same value. */
    if (pool->process && pool->process != getpid()) {
        pool->process = getpid();
        /* relaxed: nobody else is left of the old process. */
        filch_store_relaxed(pool->alive, PROCESS_FORKED);
    }
    /* acquire [rebuilt] */
    if (filch_load_acquire(pool->alive) == PROCESS_ALIVE)
        return 0;
    if (filch_worker_self_in(pool))
        return -EOWNERDEAD;
    /* acq_rel [rebuilt] */
    if (filch_cas_acq_rel(pool->alive, &state, PROCESS_REBUILDING)) {
        rebuild(pool);
        /* release [rebuilt] */
        filch_store_release(pool->alive, PROCESS_ALIVE);
    }
    /* acquire [rebuilt] */
    while (filch_load_acquire(pool->alive) != PROCESS_ALIVE)
        filch_pause();
    return 0;
}

/* ---- waking ------------------------------------------------------------------------------------ */

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
    if (!filch_fault(FILCH_FAULT_THREAD) &&
        pthread_create(&worker->thread, NULL, filch_worker_main, worker) == 0)
        return true;
    filch_fetch_add_relaxed(&pool->thread_count, -1u);
    worker->has_thread = false;
    return false;
}

void filch_pool_notify(filch_pool *pool, filch_worker *worker)
{
    int seat;

    while ((seat = filch_sleep_pop(&pool->sleep, FILCH_ROLE_SEARCHING, true)) >= 0) {
        if (worker)
            filch_count(worker, FILCH_COUNT_wakes);
        if (call(pool, pool->workers[seat]))
            return;
        /* Do without this worker from now on; a guest may still sit there. */
        filch_sleep_found(&pool->sleep);
        /* relaxed: a count. */
        filch_fetch_add_relaxed(&pool->vacant_count, 1);
        filch_sleep_push(&pool->vacant, (unsigned)seat, FILCH_ROLE_RUNNING);
    }
}

/* ---- from outside ------------------------------------------------------------------------------ */

void filch_pool_begin(filch_pool *pool)
{
    /* relaxed: the caller may use the pool, so it is not being destroyed. */
    filch_fetch_add_relaxed(&pool->pending, 1);
}

void filch_pool_end(filch_pool *pool)
{
    /* release [pending]. The pool may be gone after this; waking needs only its address. */
    if (filch_fetch_add_release(&pool->pending, -1u) == (FILCH_POOL_AWAITED | 1))
        filch_futex_wake(&pool->pending, INT_MAX);
}

/* Sit down on a free seat and work on `job`, or with NULL on what is in the inject queue. False: there is no seat,
 * or no strand. */
static bool visit(filch_pool *pool, filch_job *job)
{
    filch_sleep *stack = &pool->vacant;
    int seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    if (seat < 0) {
        stack = &pool->sleep;
        seat = filch_sleep_pop(stack, FILCH_ROLE_RUNNING, false);
    }
    if (seat < 0)
        return false;
    bool has_strand = filch_worker_visit(pool->workers[seat], job);
    filch_sleep_push(stack, (unsigned)seat, FILCH_ROLE_RUNNING);
    filch_pool_notify_if_work(pool);
    return has_strand;
}

static bool has_no_threads(filch_pool *pool)
{
    /* relaxed: both only grow in the direction that matters; whoever leaves a seat looks again. */
    return filch_load_relaxed(&pool->thread_count) == 0 &&
           filch_sleep_sleeper_count(&pool->sleep) == 0;
}

bool filch_pool_may_have_threads(filch_pool *pool)
{
    /* relaxed: it only grows. */
    return filch_load_relaxed(&pool->vacant_count) < pool->worker_count;
}

/* Where no thread can be started, those who come from outside do the work. */
static void visit_if_no_threads(filch_pool *pool)
{
    if (has_no_threads(pool) && !filch_worker_self_in(pool))
        while (filch_pool_has_queued(pool) && visit(pool, NULL))
            ;
}

uint64_t filch_pool_help(filch_pool *pool)
{
    /* relaxed: it only grows in the direction that matters. */
    if (filch_load_relaxed(&pool->thread_count) > 0 || filch_visit_self())
        return FILCH_NEVER_NS;
    filch_pool_fire_timers(pool);
    visit_if_no_threads(pool);
    return has_no_threads(pool) ? 1000000 : 100000000;
}

/* Wait until the job is done. Where there are no threads, nobody else watches the timers. */
static void wait_outside(filch_pool *pool, filch_job *job)
{
    uint64_t ns;

    while (!filch_job_is_done(job) && (ns = filch_pool_help(pool)) != FILCH_NEVER_NS)
        filch_job_wait_for(job, ns);
    filch_worker_wait(job);
}

void filch_pool_inject(filch_pool *pool, filch_job *job)
{
    filch_queue_push(&pool->inject, &job->link);
    filch_pool_notify(pool, NULL);
    visit_if_no_threads(pool);
}

void filch_pool_resume(filch_pool *pool, filch_link *strands)
{
    if (!strands)
        return;
    filch_queue_push_list(&pool->ready, strands);
    filch_pool_notify(pool, NULL);
    visit_if_no_threads(pool);
}

void filch_strand_resume(filch_strand *strand)
{
    filch_pool *pool = strand->pool;
    filch_worker *worker = filch_worker_self_in(pool);

    if (worker) {
        filch_lookout_notify(worker, filch_queue_push(&worker->ready, &strand->link));
        return;
    }
    /* The waiter keeps its pool alive until it goes on; from then on we do, until we have let go of it. */
    strand->link.next = NULL;
    filch_pool_begin(pool);
    filch_pool_resume(pool, &strand->link);
    filch_pool_end(pool);
}

void filch_pool_spawn(filch_pool *pool, filch_job *job)
{
    filch_worker *worker = filch_worker_self_in(pool);

    if (worker) {
        filch_queue_push(&worker->spawned, &job->link);
        filch_pool_notify(pool, worker);
    } else {
        filch_pool_begin(pool);
        filch_pool_inject(pool, job);
        filch_pool_end(pool);
    }
}

/* Run a task of a task of this pool, whose seat we hold, so that nobody else might ever come to run it. Without a strand
 * for it the current one has to do: from its end on forks have no slots, and run when they are joined. */
static int run_inside(filch_worker *own, filch_job *job)
{
    if (filch_worker_visit(own, job)) {
        filch_worker_wait(job);
        return 0;
    }
    /* relaxed: own variable. */
    filch_strand *strand = filch_load_relaxed(&own->strand);
    if (!strand) /* called by a hook */
        return -ENOMEM;
    bool keeps_all = strand->keeps_all;
    strand->keeps_all = true;
    job->fn(strand->split.end, job->arg);
    strand->keeps_all = keeps_all;
    return 0;
}

int filch_run(filch_pool *pool, filch_fn *fn, void *arg)
{
    int err = pool && fn ? check_process(pool) : -EINVAL;
    if (err)
        return err;

    filch_job job = {.fn = fn, .arg = arg};
    filch_worker *own = filch_worker_self_in(pool);
    filch_pool_begin(pool);
    if (own) {
        err = run_inside(own, &job);
    } else {
        if (!visit(pool, &job))
            filch_pool_inject(pool, &job);
        else
            visit_if_no_threads(pool);
        wait_outside(pool, &job);
    }
    filch_pool_end(pool);
    return err;
}

/* A submitted job, and what was submitted by value. */
typedef struct submitted_job {
    filch_job job; /* first: end_submitted frees the job */
    _Alignas(max_align_t) unsigned char copy[];
} submitted_job;

static void end_submitted(filch_job *job, filch_pool *pool)
{
    free(job);
    filch_pool_end(pool);
}

/* With a copy of `bytes`, or without (0) and with the argument itself. */
static int submit(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes)
{
    int err = pool && fn ? check_process(pool) : -EINVAL;
    if (err)
        return err;
    if (bytes > PTRDIFF_MAX - sizeof(submitted_job))
        return -ENOMEM;
    submitted_job *submitted = filch_calloc(1, sizeof *submitted + bytes);
    if (!submitted)
        return -ENOMEM;
    if (bytes > 0)
        memcpy(submitted->copy, arg, bytes);
    submitted->job =
        (filch_job){.fn = fn, .arg = bytes > 0 ? submitted->copy : (void *)arg, .end = end_submitted};
    filch_pool_begin(pool);
    filch_pool_inject(pool, &submitted->job);
    return 0;
}

int filch_submit(filch_pool *pool, filch_fn *fn, void *arg)
{
    return submit(pool, fn, arg, 0);
}

int filch_submit_copy(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes)
{
    return arg || bytes == 0 ? submit(pool, fn, arg, bytes) : -EINVAL;
}

int filch_pool_wait(filch_pool *pool)
{
    if (!pool)
        return -EINVAL;
    if (filch_worker_self_in(pool))
        return -EDEADLK;
    check_process(pool);
    for (;;) {
        /* relaxed: a cas follows, and only after one that acquires do we return. */
        uint32_t pending = filch_load_relaxed(&pool->pending);
        if ((pending & ~FILCH_POOL_AWAITED) == 0) {
            /* acquire [pending]: the last one out puts the mark away, or a new task does not mind it. */
            filch_cas_acq_rel(&pool->pending, &pending, 0);
            return 0;
        }
        /* acq_rel [pending]: says only that somebody sleeps. */
        if ((pending & FILCH_POOL_AWAITED) ||
            filch_cas_acq_rel(&pool->pending, &pending, pending | FILCH_POOL_AWAITED))
            filch_futex_wait(&pool->pending, pending | FILCH_POOL_AWAITED, NULL);
    }
}

unsigned filch_pool_workers(const filch_pool *pool)
{
    return pool ? pool->worker_count : 0;
}

/* ---- counters ---------------------------------------------------------------------------------- */

static void add_counters(filch_counters *sum, const filch_worker *worker)
{
    /* relaxed: a count that its worker goes on changing. */
#define FILCH_COUNTER_ADD(name) sum->name += filch_load_relaxed(&worker->counters[FILCH_COUNT_##name]);
    FILCH_COUNTERS(FILCH_COUNTER_ADD)
}

int filch_worker_counters(const filch_pool *pool, unsigned worker_index, filch_counters *counters)
{
    if (!pool || !counters || worker_index >= pool->worker_count)
        return -EINVAL;
    memset(counters, 0, sizeof *counters);
    add_counters(counters, pool->workers[worker_index]);
    return 0;
}

int filch_pool_counters(const filch_pool *pool, filch_counters *counters)
{
    if (!pool || !counters)
        return -EINVAL;
    memset(counters, 0, sizeof *counters);
    for (unsigned i = 0; i < pool->worker_count; i++)
        add_counters(counters, pool->workers[i]);
    return 0;
}
