/* SPDX-License-Identifier: MIT */
#include "worker/keeper.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "worker/dump_signal.h"
#include "worker/listed.h"
#include "worker/worker.h"

#include <errno.h>
#include <unistd.h>

static filch_atomic_u32 bell;
static filch_atomic_u32 stopping;

/* Start and stop. */
static filch_lock lock;
static pthread_t thread; /* valid if is_running */
static bool is_running;
static bool is_held;

/* ---- the process ----------------------------------------------------------------------------- */

/* The process that uses these variables: its number, and whether it still resets them. A handler
 * of pthread_atfork would come too late: handlers that were registered before it may use pools. */
static filch_atomic_u32 process;

#define RESETTING ((uint32_t)1 << 31)

static void reset(void)
{
    filch_lock_init(&lock);
    is_running = false;
    filch_listed_forked();
    filch_dump_forked();
}

void filch_keeper_enter_process(void)
{
    uint32_t own = (uint32_t)getpid(), seen;

    /* acquire [new-process] */
    while ((seen = filch_load_acquire(&process)) != own) {
        if (seen == (own | RESETTING)) {
            filch_pause();
            continue;
        }
        /* acq_rel [new-process]: the load above and the store below would be enough. */
        if (filch_cas_acq_rel(&process, &seen, own | RESETTING)) {
            reset();
            /* release [new-process] */
            filch_store_release(&process, own);
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

void filch_keeper_ring(void)
{
    /* release [rung] */
    filch_fetch_add_release(&bell, 1);
    filch_futex_wake(&bell, 1);
}

/* Returns when the next thread is to be started. */
static uint64_t visit_pools(void)
{
    uint64_t next_ns = FILCH_NEVER_NS;
    filch_pool *pool;

    while ((pool = filch_listed_next())) {
        uint64_t ns = filch_pool_is_alive(pool) ? filch_pool_retry(pool) : FILCH_NEVER_NS;
        next_ns = ns < next_ns ? ns : next_ns;
    }
    return next_ns;
}

static void sleep_until(uint32_t rung, uint64_t until_ns)
{
    bool has_end = until_ns != FILCH_NEVER_NS;
    uint64_t now_ns = has_end ? filch_clock_ns() : 0;
    struct timespec timeout = filch_timespec(until_ns > now_ns ? until_ns - now_ns : 0);

    filch_futex_wait(&bell, rung, has_end ? &timeout : NULL);
}

static void *serve(void *argument)
{
    (void)argument;
    pthread_setname_np(pthread_self(), "filch/keeper");
    for (;;) {
        /* acquire [rung] */
        uint32_t rung = filch_load_acquire(&bell);
        /* relaxed: the bell carries it. */
        bool is_ending = filch_load_relaxed(&stopping);
        uint64_t write_ns = filch_dump_serve(is_ending);
        if (is_ending)
            return NULL;
        uint64_t start_ns = visit_pools();
        sleep_until(rung, write_ns < start_ns ? write_ns : start_ns);
    }
}

/* ---- start and stop: under the lock ---------------------------------------------------------- */

static bool is_needed(void)
{
    return is_held || filch_listed_has_many();
}

static int start_if_needed(void)
{
    if (is_running || !is_needed())
        return 0;
    /* relaxed: pthread_create carries it. */
    filch_store_relaxed(&stopping, 0);
    int err = filch_fault(FILCH_FAULT_THREAD) ? EAGAIN : pthread_create(&thread, NULL, serve, NULL);
    is_running = err == 0;
    return -err;
}

static void stop_if_unneeded(void)
{
    if (!is_running || is_needed())
        return;
    /* relaxed: the bell carries it. */
    filch_store_relaxed(&stopping, 1);
    filch_keeper_ring();
    pthread_join(thread, NULL);
    is_running = false;
}

int filch_keeper_add(filch_pool *pool)
{
    filch_keeper_enter_process();
    filch_dump_read_environment();
    filch_lock_acquire(&lock);
    filch_listed_add(pool);
    int err = start_if_needed();
    if (err)
        filch_listed_remove(pool);
    filch_lock_release(&lock);
    return err;
}

int filch_keeper_adopt(void)
{
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    int err = start_if_needed();
    filch_lock_release(&lock);
    return err;
}

void filch_keeper_remove(filch_pool *pool)
{
    filch_keeper_enter_process();
    filch_listed_remove(pool);
    filch_lock_acquire(&lock);
    stop_if_unneeded();
    filch_lock_release(&lock);
}

int filch_keeper_hold(void)
{
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    bool was_held = is_held;
    is_held = true;
    int err = start_if_needed();
    is_held = was_held || err == 0;
    filch_lock_release(&lock);
    return err;
}

void filch_keeper_release(void)
{
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    is_held = false;
    stop_if_unneeded();
    filch_lock_release(&lock);
}
