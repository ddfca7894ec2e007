/* SPDX-License-Identifier: MIT */
/*
 * README.md has the rules and edges.
 */
#include "worker/crowd.h"

#include "base/clock.h"
#include "base/thread_clock.h"
#include "worker/keeper.h"

/* How often the keeper looks at a full pool: first after this time, then after twice the time, as
 * long as it finds nothing. */
#define FIRST_LOOK_NS 2000000
#define LAST_LOOK_NS 4000000

/* After a look that has found a worker blocked in the kernel, and at first if one is absent. */
#define NEAR_LOOK_NS 100000

/* A worker that has not come to its loop for this long may be waiting, in a loop of its own, for a
 * task that does not run. So another one may be awake in its place: one more after this time, the
 * next after twice the time, and so on. */
#define LONG_NS 20000000

/* The number of CPUs is read again after this time. */
#define CPUS_NS 1000000000

/* ---- any thread ------------------------------------------------------------------------------ */

static unsigned resting_count(filch_pool *pool)
{
    return filch_sleep_resting_count(&pool->sleep) + filch_sleep_resting_count(&pool->vacant);
}

bool filch_crowd_is_full(filch_pool *pool)
{
    /* seq_cst [crowd-or-wake] */
    if (filch_load_seq_cst(&pool->surplus) == 0)
        return false;
    return filch_crowd_wakeable(pool, resting_count(pool)) == 0;
}

/* Let the keeper look at the pool. */
static void call_keeper(filch_pool *pool)
{
    /* seq_cst [crowd-or-wake] */
    if (filch_load_seq_cst(&pool->is_crowd_watched))
        return;
    filch_store_seq_cst(&pool->is_crowd_watched, 1);
    filch_keeper_ring();
}

void filch_crowd_watch(filch_pool *pool)
{
    if (filch_crowd_is_full(pool))
        call_keeper(pool);
}

void filch_crowd_check_cpus(filch_pool *pool, uint64_t now_ns)
{
    /* relaxed: only a time. */
    uint64_t read_ns = filch_load_relaxed(&pool->cpus_read_ns);

    /* relaxed: the keeper reads the CPUs if it finds the same. */
    if (now_ns - read_ns >= CPUS_NS && pool->worker_count > 1 && pool->options.awake == 0)
        call_keeper(pool);
}

/* ---- a worker -------------------------------------------------------------------------------- */

/* Why a worker does not count, in worker->absence. */
enum { PRESENT, ABSENT_BLOCKED, ABSENT_FOR_LONG };

/* Returns why the worker was absent. */
static uint32_t make_present(filch_worker *worker)
{
    /* relaxed: a hint; the exchange decides. */
    if (filch_load_relaxed(&worker->absence) == PRESENT)
        return PRESENT;
    /* acquire [absence]: one of the worker and the keeper ends it. */
    uint32_t was = filch_exchange_acq_rel(&worker->absence, PRESENT);
    if (was != PRESENT)
        /* seq_cst [crowd-or-wake] */
        filch_fetch_add_seq_cst(&worker->pool->absent_count, -1u);
    return was;
}

static void count_turn(filch_worker *worker)
{
    /* relaxed: own variable; the keeper reads it as a hint. */
    filch_store_relaxed(&worker->turns, filch_load_relaxed(&worker->turns) + 1);
}

bool filch_crowd_enter_loop(filch_worker *worker)
{
    filch_pool *pool = worker->pool;

    count_turn(worker);
    /* relaxed: a hint. If it is wrong, the worker goes to sleep a round later. */
    if (__builtin_expect(filch_load_relaxed(&pool->surplus) == 0, 1))
        return false;
    uint32_t was = make_present(worker);
    if (was != PRESENT)
        filch_crowd_watch(pool);
    /* A worker whose task has blocked goes on: its next task may well block, too. */
    if (was == ABSENT_BLOCKED)
        return false;
    /* If it slept, might it be woken? */
    return filch_crowd_wakeable(pool, resting_count(pool) + 1) == 0;
}

void filch_crowd_leave(filch_worker *worker)
{
    make_present(worker);
    /* relaxed: a hint for the keeper. */
    filch_store_relaxed(&worker->clock, FILCH_NO_THREAD);
}

bool filch_crowd_count_guest(filch_pool *pool)
{
    /* relaxed: if the CPUs become fewer later, this guest counts as a worker until it leaves. */
    if (filch_load_relaxed(&pool->surplus) == 0)
        return false;
    /* seq_cst [crowd-or-wake] */
    filch_fetch_add_seq_cst(&pool->guest_count, 1);
    return true;
}

void filch_crowd_uncount_guest(filch_pool *pool)
{
    /* seq_cst [crowd-or-wake] */
    filch_fetch_add_seq_cst(&pool->guest_count, -1u);
    filch_crowd_watch(pool);
}

void filch_crowd_enter_guest(filch_worker *worker)
{
    count_turn(worker);
    /* relaxed: a hint for the keeper. */
    filch_store_relaxed(&worker->clock, filch_thread_clock_self());
    filch_crowd_watch(worker->pool);
}

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Another worker may be awake instead of this one. */
static void make_absent(filch_worker *worker, uint32_t why)
{
    filch_pool *pool = worker->pool;

    /* seq_cst [crowd-or-wake] */
    filch_fetch_add_seq_cst(&pool->absent_count, 1);
    /* release [absence]: from now on the worker may lower the count. */
    filch_store_release(&worker->absence, why);
}

/* All CPUs on which the keeper or a thread of the pool may run. (A thread may be pinned.) */
static unsigned read_cpus(filch_pool *pool)
{
    filch_thread_cpus cpus = {0};

    filch_thread_clock_add_cpus(filch_thread_clock_self(), &cpus);
    for (unsigned i = 0; i < pool->worker_count; i++)
        /* relaxed: a thread that has not stored it yet is left out. */
        filch_thread_clock_add_cpus(filch_load_relaxed(&pool->workers[i]->own_clock), &cpus);
    unsigned count = filch_thread_cpus_count(&cpus);
    if (count == 0)
        count = pool->topology.cpu_count;
    /* Later a process may no longer be allowed to open files: read them only if there is need. */
    return pool->has_quota ? filch_topology_limit(count, "") : count;
}

bool filch_crowd_set_cpus(filch_pool *pool, unsigned at_hand)
{
    unsigned limit = pool->options.awake ? pool->options.awake : at_hand;

    /* relaxed: only a time. */
    filch_store_relaxed(&pool->cpus_read_ns, filch_clock_ns());
    /* relaxed: only the keeper writes it, once the pool is created. */
    unsigned before = filch_load_relaxed(&pool->surplus);
    unsigned surplus = pool->worker_count > limit ? pool->worker_count - limit : 0;
    /* seq_cst [crowd-or-wake] */
    filch_store_seq_cst(&pool->surplus, surplus);
    return surplus < before;
}

/* How many workers are absent because they are away for long. */
static unsigned long_count(filch_pool *pool)
{
    unsigned count = 0;

    for (unsigned i = 0; i < pool->worker_count; i++)
        /* relaxed: only the keeper sets it. */
        count += filch_load_relaxed(&pool->workers[i]->absence) == ABSENT_FOR_LONG;
    return count;
}

/* Stop watching, unless the pool is full. */
static bool end_watch(filch_pool *pool)
{
    /* seq_cst [crowd-or-wake]: a thread that takes a seat from now on calls the keeper. */
    filch_store_seq_cst(&pool->is_crowd_watched, 0);
    if (!filch_crowd_is_full(pool))
        return true;
    /* relaxed: the keeper's own from here on; others only store the same. */
    filch_store_relaxed(&pool->is_crowd_watched, 1);
    return false;
}

/* One look at a pool. */
typedef struct look {
    uint64_t now_ns;
    bool may_be_long; /* a worker that has been away for long may become absent: one in a look */
    bool found;       /* a worker has become absent */
    bool is_near;     /* look again soon */
} look;

static void look_at(filch_worker *worker, look *l)
{
    filch_crowd_note *note = &worker->crowd;
    /* relaxed: hints. A mistake wakes a worker too many, or one look too late. */
    filch_thread_clock clock = filch_load_relaxed(&worker->clock);
    uint32_t turns = filch_load_relaxed(&worker->turns);
    bool is_absent = filch_load_relaxed(&worker->absence) != PRESENT;

    if (clock == FILCH_NO_THREAD) {
        make_present(worker);
        return;
    }
    uint64_t cpu_ns = filch_thread_clock_ns(clock), used_ns = cpu_ns - note->cpu_ns;
    uint64_t passed_ns = l->now_ns - note->looked_ns;
    if (clock != note->clock || cpu_ns == 0)
        used_ns = passed_ns; /* unknown */
    if (turns != note->turns || clock != note->clock)
        *note = (filch_crowd_note){.turns = turns, .clock = clock, .since_ns = l->now_ns};
    note->cpu_ns = cpu_ns;
    note->looked_ns = l->now_ns;
    bool is_long = l->now_ns - note->since_ns >= LONG_NS;

    if (is_absent && used_ns > 0 && !is_long)
        make_present(worker);
    if (is_absent || !filch_crowd_is_full(worker->pool))
        return;
    /* Its tasks may block for less than the time between two looks. So if it has used little CPU
     * time, and is blocked now, look again soon. */
    if (used_ns < passed_ns / 4 && filch_thread_clock_is_blocked(clock)) {
        l->is_near = true;
        if (used_ns == 0) {
            make_absent(worker, ABSENT_BLOCKED);
            l->found = true;
            return;
        }
    }
    if (is_long && l->may_be_long) {
        make_absent(worker, ABSENT_FOR_LONG);
        worker->pool->crowd_long_ns = l->now_ns;
        l->may_be_long = false;
        l->found = true;
    }
}

uint64_t filch_crowd_look(filch_pool *pool)
{
    /* relaxed: the bell carries it. */
    if (!filch_load_relaxed(&pool->is_crowd_watched))
        return FILCH_NEVER_NS;
    uint64_t now_ns = filch_clock_ns();
    /* relaxed: only a time. */
    bool is_due = now_ns - filch_load_relaxed(&pool->cpus_read_ns) >= CPUS_NS;
    if (is_due && filch_crowd_set_cpus(pool, read_cpus(pool)))
        filch_pool_notify(pool, NULL); /* for all that was left while the pool was full */
    if (pool->crowd_look_ns == 0) {    /* the watch begins */
        /* relaxed: only the keeper raises it. If some workers are absent, others may soon be. */
        bool is_near = filch_load_relaxed(&pool->absent_count) > 0;
        pool->crowd_period_ns = is_near ? NEAR_LOOK_NS : FIRST_LOOK_NS;
        pool->crowd_look_ns = now_ns + pool->crowd_period_ns;
    }
    if (now_ns < pool->crowd_look_ns)
        return pool->crowd_look_ns;
    if (end_watch(pool)) {
        pool->crowd_look_ns = 0;
        return FILCH_NEVER_NS;
    }

    uint64_t patience_ns = LONG_NS * (1 + (uint64_t)long_count(pool));
    look l = {.now_ns = now_ns, .may_be_long = now_ns - pool->crowd_long_ns >= patience_ns};
    for (unsigned i = 0; i < pool->worker_count; i++)
        look_at(pool->workers[i], &l);
    if (l.found)
        filch_pool_notify(pool, NULL);
    uint64_t longer_ns = pool->crowd_period_ns * 2;
    pool->crowd_period_ns = l.is_near                  ? NEAR_LOOK_NS
                            : longer_ns < LAST_LOOK_NS ? longer_ns
                                                       : LAST_LOOK_NS;
    return pool->crowd_look_ns = now_ns + pool->crowd_period_ns;
}
