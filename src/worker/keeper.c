/* SPDX-License-Identifier: MIT */
#include "worker/keeper.h"

#include "base/barrier.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/memory.h"
#include "worker/crowd.h"
#include "worker/dump_signal.h"
#include "worker/listed.h"
#include "worker/overflow.h"
#include "worker/second_look.h"
#include "worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* A dump reads the symbol tables of files. */
#define STACK_BYTES ((size_t)512 << 10)

static filch_atomic_u32 bell;
static filch_atomic_u32 stopping;

/* Start and stop. */
static filch_lock lock;
static pthread_t thread; /* valid if is_running */
static bool is_running;
static bool is_held; /* by filch_keeper_hold */

static FILCH_ATOMIC(filch_forget *) forget_above; /* of a higher layer, or NULL */

/* ---- the process ----------------------------------------------------------------------------- */

/*
 * Does the process that uses these variables still reset them, or has it done so? The kernel clears
 * the page in the child of a fork(). A handler of pthread_atfork would come too late: handlers that
 * were registered before it may use pools.
 *
 * Until the kernel has been told to clear the page, and if it cannot, the word also has the number
 * of the process. That is not as good: in a new PID namespace a child may have its parent's number.
 */
enum { PROCESS_OTHER, PROCESS_RESETTING, PROCESS_OWN, PROCESS_BITS = 2 };

#if defined(__x86_64__)
#define LARGEST_PAGE_BYTES 4096
#else
#define LARGEST_PAGE_BYTES 65536
#endif

static union {
    filch_atomic_u32 word;
    char page[LARGEST_PAGE_BYTES];
} process __attribute__((aligned(LARGEST_PAGE_BYTES)));

static void reset(void)
{
    filch_lock_init(&lock);
    is_running = false;
    filch_listed_forked();
    filch_overflow_forked();
    is_held = filch_dump_forked();
    /* relaxed: fork() carries it. */
    filch_forget *forget = filch_load_relaxed(&forget_above);
    if (forget)
        forget();
}

void filch_keeper_enter_process(void)
{
    uint32_t seen;

    /* acquire [new-process] */
    while ((seen = filch_load_acquire(&process.word)) != PROCESS_OWN) {
        uint32_t number = (uint32_t)getpid() << PROCESS_BITS;
        if (seen == (number | PROCESS_OWN))
            return;
        if (seen == (number | PROCESS_RESETTING)) {
            filch_pause();
            continue;
        }
        /* acq_rel [new-process]: the load above and the store below would be enough. */
        if (!filch_cas_acq_rel(&process.word, &seen, number | PROCESS_RESETTING))
            continue;
        reset();
        bool is_wiped = filch_wipe_on_fork(&process, sizeof process);
        /* release [new-process] */
        filch_store_release(&process.word, is_wiped ? PROCESS_OWN : number | PROCESS_OWN);
    }
}

void filch_keeper_on_fork(filch_forget *forget)
{
    /* relaxed: fork() carries it. */
    filch_store_relaxed(&forget_above, forget);
    filch_keeper_enter_process();
}

/* ---- the thread ------------------------------------------------------------------------------ */

void filch_keeper_ring(void)
{
    /* release [rung] */
    filch_fetch_add_release(&bell, 1);
    filch_futex_wake(&bell, 1);
}

/* Returns when to visit the pools again: for the next try to start a thread, or the next look at a
 * pool that is full. */
static uint64_t visit_pools(void)
{
    uint64_t next_ns = FILCH_NEVER_NS;
    filch_pool *pool;

    while ((pool = filch_listed_next())) {
        if (!filch_pool_is_alive(pool))
            continue;
        const uint64_t times_ns[] = {filch_pool_retry(pool), filch_crowd_look(pool),
                                     filch_second_look_for_rest(pool)};
        for (unsigned i = 0; i < sizeof times_ns / sizeof times_ns[0]; i++)
            next_ns = times_ns[i] < next_ns ? times_ns[i] : next_ns;
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
    filch_barrier_prepare(); /* unless `start` has done that */
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

/* Start the thread with all signals blocked, and with a stack that is large enough for a dump. */
static int start(void)
{
    pthread_attr_t attributes;
    sigset_t all, callers;

    if (filch_fault(FILCH_FAULT_THREAD))
        return -EAGAIN;
    filch_barrier_prepare_early();
    /* relaxed: pthread_create carries it. */
    filch_store_relaxed(&stopping, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int err = pthread_create(&thread, &attributes, serve, NULL);
    if (err == EINVAL) /* too small for the thread-local variables of this program */
        err = pthread_create(&thread, NULL, serve, NULL);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    is_running = err == 0;
    return -err;
}

/* A pool that a thread rebuilds counts: this thread counts on the keeper that it found or started
 * (filch_keeper_adopt). */
static bool is_needed(void)
{
    return is_held || filch_listed_has_many();
}

static int start_if_needed(void)
{
    return is_running || !is_needed() ? 0 : start();
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

void filch_keeper_disown(void)
{
    filch_keeper_enter_process();
    filch_lock_acquire(&lock);
    stop_if_unneeded();
    filch_lock_release(&lock);
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
