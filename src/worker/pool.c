/* SPDX-License-Identifier: MIT */
/*
 * Create and destroy a pool, and rebuild it in the child of a fork(). wake.c starts its threads.
 *
 * Edges
 *   rebuilt        filch_pool_check -> filch_pool_check, filch_pool_is_alive
 *                  carries the pool, rebuilt after a fork().
 *   stop-or-sleep  stop_threads x filch_pool_gave_seat    see src/sleep/README.md
 *   gave-seat      filch_pool_gave_seat -> stop_threads
 *                  carries the push of the seat: after it has read the count, the destroyer finds
 *                  the seat on the stack.
 */
#include "base/cancel.h"
#include "base/memory.h"
#include "base/options.h"
#include "worker/crowd.h"
#include "worker/keeper.h"
#include "worker/spin.h"
#include "worker/thread.h"
#include "worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_STACK_BYTES ((size_t)8 << 20)
#define SMALLEST_STACK_BYTES ((size_t)16 << 10)

/* ---- create ---------------------------------------------------------------------------------- */

bool filch_is_verbose(void)
{
    const char *verbose = getenv("FILCH_VERBOSE");
    return verbose && strcmp(verbose, "0") != 0;
}

/* FILCH_DEQUE replaces the default deque. */
static void choose_kind(filch_pool *pool)
{
    filch_options *options = &pool->options;
    const char *wish = options->deque == FILCH_DEQUE_SPLIT ? getenv("FILCH_DEQUE") : NULL;

    if (!wish)
        return;
    bool is_known =
        filch_kind_parse(wish, &pool->kind, &options->deque_capacity, &options->deque_block);
    if (!filch_is_verbose())
        return;
    fprintf(stderr, "filch: pool '%s': deque '%.32s' ", options->name, wish);
    if (is_known)
        fputs("set by FILCH_DEQUE\n", stderr);
    else
        fprintf(stderr,
                "in FILCH_DEQUE ignored; there are %s, each of them alone, or with a capacity and "
                "a block: abp:1000, bwos_lifo:8:32\n",
                filch_kind_names);
}

static int complete_options(filch_pool *pool)
{
    filch_options *options = &pool->options;

    pool->policy = filch_policy_find(options->victim);
    if (!pool->policy || !filch_kind_find(options->deque, &pool->kind) ||
        !filch_spin_find(options->spin, &pool->spin_ns))
        return -EINVAL;
    if (options->stack_bytes == 0)
        options->stack_bytes = DEFAULT_STACK_BYTES;
    if (options->stack_bytes < SMALLEST_STACK_BYTES || options->stack_bytes > PTRDIFF_MAX / 2)
        return -EINVAL;
    if (!options->name)
        options->name = "filch";
    choose_kind(pool);
    return 0;
}

/* FILCH_AWAKE replaces the default of options.awake. */
static void choose_awake(filch_pool *pool, char *why, size_t why_size)
{
    const char *wish = pool->options.awake == 0 ? getenv("FILCH_AWAKE") : NULL;
    unsigned awake = wish ? filch_topology_parse_count(wish) : 0;

    if (awake > 0)
        pool->options.awake = awake;
    snprintf(why, why_size, "%s", awake > 0 ? ", set by FILCH_AWAKE" : "");
    if (wish && awake == 0)
        snprintf(why, why_size, "; FILCH_AWAKE='%.32s' ignored", wish);
}

static void choose_worker_count(filch_pool *pool)
{
    unsigned count = pool->options.workers, at_hand = 0;
    char why[256], why_awake[64];

    if (count > 0)
        snprintf(why, sizeof why, "%u worker%s: asked for by the program", count,
                 count == 1 ? "" : "s");
    else
        count = filch_topology_default_workers(&pool->topology, "", &at_hand, why, sizeof why);
    pool->worker_count = count < FILCH_SEATS_MAX ? count : FILCH_SEATS_MAX;
    choose_awake(pool, why_awake, sizeof why_awake);
    unsigned cpu_count = pool->topology.cpu_count;
    if (at_hand == 0 && pool->worker_count > 1)
        at_hand = filch_topology_limit(cpu_count, "");
    pool->has_quota = at_hand > 0 && at_hand < cpu_count;
    filch_crowd_set_cpus(pool, at_hand ? at_hand : cpu_count);
    if (!filch_is_verbose())
        return;
    fprintf(stderr, "filch: pool '%s': %s%s\n", pool->options.name, why,
            count > FILCH_SEATS_MAX ? ", of which it has 1000, the most there can be" : "");
    /* relaxed: no other thread knows the pool. */
    unsigned surplus = filch_load_relaxed(&pool->surplus);
    if (surplus > 0 || why_awake[0])
        fprintf(stderr, "filch: pool '%s': %u awake at a time%s\n", pool->options.name,
                pool->worker_count - surplus, why_awake);
}

/* Put all seats but the first on the stack of vacant seats: no worker has a thread. */
static void reset_seats(filch_pool *pool)
{
    /* relaxed: no other thread knows the pool. */
    filch_store_relaxed(&pool->sleep.word, 0);
    filch_store_relaxed(&pool->vacant.word, 0);
    filch_store_relaxed(&pool->put_off, 0);
    filch_store_relaxed(&pool->failed_starts, 0);
    pool->retry_ns = 0;
    filch_store_relaxed(&pool->pending, 0);
    filch_store_relaxed(&pool->scopes, 0);
    filch_store_relaxed(&pool->lookout, 0);
    filch_store_relaxed(&pool->absent_count, 0);
    filch_store_relaxed(&pool->guest_count, 0);
    filch_store_relaxed(&pool->has_rest, 0);
    pool->rest_look_ns = 0;
    filch_store_relaxed(&pool->is_crowd_watched, 0);
    pool->crowd_look_ns = 0;
    for (unsigned i = pool->worker_count; i-- > 0;) {
        filch_worker *worker = pool->workers[i];
        memset(worker, 0, sizeof *worker);
        worker->pool = pool;
        worker->index = i;
        filch_victims_init(&worker->victims, i, pool->worker_count);
        filch_queue_init(&worker->ready);
        filch_queue_init(&worker->spawned);
        worker->seat.bell = -1;
        if (i > 0)
            filch_sleep_push(&pool->vacant, i, FILCH_ROLE_RUNNING);
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
    size_t bytes =
        (sizeof(filch_worker) + FILCH_CACHE_LINE - 1) / FILCH_CACHE_LINE * FILCH_CACHE_LINE;

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

/* The states of a pool in a process. `alive` has the state. Where the kernel does not clear `alive`
 * in the child of a fork(), the number of the process is added. */
enum { PROCESS_FORKED, PROCESS_ALIVE, PROCESS_REBUILDING };

static uint32_t here(const filch_pool *pool, uint32_t state)
{
    return (pool->tells_process ? (uint32_t)getpid() << 2 : 0) | state;
}

/* Map a page that the kernel clears in the child of a fork(). So a process can tell that it is a
 * child. */
static int create_alive(filch_pool *pool)
{
    size_t page = filch_page_bytes();
    void *memory = filch_fault(FILCH_FAULT_MAP) ? MAP_FAILED
                                                : mmap(NULL, page, PROT_READ | PROT_WRITE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    pool->tells_process = !filch_wipe_on_fork(memory, page);
    pool->alive = memory;
    /* relaxed: no other thread knows the pool. */
    filch_store_relaxed(pool->alive, here(pool, PROCESS_ALIVE));
    return 0;
}

static int create(filch_pool **out, const filch_options *options, unsigned abi)
{
    filch_options copy;
    int err = out ? filch_options_copy(&copy, sizeof copy, options) : -EINVAL;

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
    /* Copy the name: threads start late, and the caller may have freed it. */
    pool->options.name = filch_fault(FILCH_FAULT_MALLOC) ? NULL : strdup(pool->options.name);
    err = pool->options.name ? filch_topology_init(&pool->topology) : -ENOMEM;
    if (err)
        goto free_name;
    if (pool->options.pin)
        filch_topology_explore(&pool->topology, "");
    choose_worker_count(pool);
    filch_thread_note_creator(pool);
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
    /* Make one strand now: one strand is enough to run all tasks, if need be one by one. */
    filch_strand *first = filch_strand_take(&pool->strands);
    if (!first) {
        err = -ENOMEM;
        goto fini_strands;
    }
    filch_strand_give(&pool->strands, first);
    err = pool->options.report_overflow ? filch_overflow_install() : 0;
    if (err)
        goto fini_strands;
    err = filch_keeper_add(pool);
    if (err)
        goto remove_overflow;
    err = filch_pool_start_first(pool);
    if (err)
        goto remove_from_keeper;
    *out = pool;
    return 0;

remove_from_keeper:
    filch_keeper_remove(pool);
remove_overflow:
    if (pool->options.report_overflow)
        filch_overflow_remove();
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

int filch_pool_create_abi(filch_pool **out, const filch_options *options, unsigned abi)
{
    int cancelling = filch_cancel_disable();
    int err = create(out, options, abi);
    filch_cancel_restore(cancelling);
    return err;
}

/* ---- fork() ---------------------------------------------------------------------------------- */

/* In the child of a fork() the pool's threads are gone, and their work belongs to the parent. Start
 * again with the inherited memory. */
static void rebuild(filch_pool *pool)
{
    /* Queued jobs and strands belong to the parent, and may be on stacks that are gone. */
    filch_queue_init(&pool->inject);
    filch_queue_init(&pool->ready);
    filch_timers_init(&pool->timers);
    filch_parts_end(&pool->parts, true);
    filch_strands_rebuild(&pool->strands);
    reset_seats(pool);
    pool->generation++;
}

bool filch_pool_is_alive(const filch_pool *pool)
{
    /* acquire [rebuilt] */
    return filch_load_acquire(pool->alive) == here(pool, PROCESS_ALIVE);
}

bool filch_pool_is_used(const filch_pool *pool)
{
    /* relaxed: the keeper's lock carries REBUILDING. It is held here, and filch_keeper_adopt takes
     * it after the store. */
    uint32_t seen = filch_load_relaxed(pool->alive);
    return seen == here(pool, PROCESS_ALIVE) || seen == here(pool, PROCESS_REBUILDING);
}

int filch_pool_check(filch_pool *pool)
{
    for (;;) {
        /* acquire [rebuilt] */
        uint32_t seen = filch_load_acquire(pool->alive);
        if (seen == here(pool, PROCESS_ALIVE))
            return 0;
        if (filch_worker_self_in(pool))
            return -EOWNERDEAD;
        if (seen == here(pool, PROCESS_REBUILDING)) {
            filch_pause();
            continue;
        }
        /* acq_rel [rebuilt] */
        if (!filch_cas_acq_rel(pool->alive, &seen, here(pool, PROCESS_REBUILDING)))
            continue;
        int cancelling = filch_cancel_disable();
        rebuild(pool);
        int err = filch_keeper_adopt();
        if (!err)
            err = filch_pool_start_first(pool);
        /* release [rebuilt]. After an error the next call tries again. */
        filch_store_release(pool->alive, here(pool, err ? PROCESS_FORKED : PROCESS_ALIVE));
        if (err)
            filch_keeper_disown();
        filch_cancel_restore(cancelling);
        return err;
    }
}

/* ---- destroy --------------------------------------------------------------------------------- */

void filch_pool_gave_seat(filch_pool *pool)
{
    /* seq_cst [stop-or-sleep] */
    if (!filch_load_seq_cst(&pool->stopping))
        return;
    /* release [gave-seat]: the destroyer waits for a change of this word. */
    filch_fetch_add_release(&pool->stopping, 1);
    filch_futex_wake(&pool->stopping, 1);
}

/* Take all seats. Once the caller has them, no thread runs, is about to be woken or is being
 * started. */
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
    /* relaxed: as in filch_scope_open. In a forked child, open scopes belong to the parent. */
    unsigned scope_count = filch_pool_is_alive(pool) ? filch_load_relaxed(&pool->scopes) : 0;
    if (scope_count > 0) {
        if (filch_is_verbose())
            fprintf(stderr, "filch: pool '%s' is not destroyed: %u of its scopes are not closed\n",
                    pool->options.name, scope_count);
        return -EBUSY;
    }
    int cancelling = filch_cancel_disable();
    if (!filch_pool_is_alive(pool)) {
        rebuild(pool);
        filch_sleep_push(&pool->vacant, 0, FILCH_ROLE_RUNNING);
    }
    stop_threads(pool);
    filch_keeper_remove(pool);
    filch_parts_end(&pool->parts, false);
    if (pool->options.report_overflow)
        filch_overflow_remove();
    filch_strands_fini(&pool->strands);
    munmap(pool->alive, filch_page_bytes());
    free_workers(pool);
    filch_topology_fini(&pool->topology);
    free((char *)pool->options.name);
    free(pool);
    filch_cancel_restore(cancelling);
    return 0;
}

unsigned filch_pool_worker_count(const filch_pool *pool)
{
    return pool ? pool->worker_count : 0;
}
