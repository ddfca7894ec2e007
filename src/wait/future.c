/* SPDX-License-Identifier: MIT */
/*
 * A future: a state, and under a lock its waiters. future.h says why there are no edges.
 */
#include "wait/future.h"

#include "base/memory.h"
#include "strand/unwind.h"
#include "wait/spawn.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdlib.h>

void filch_future_init(filch_future *future)
{
    *future = (filch_future)FILCH_FUTURE_INIT;
}

bool filch_future_set(filch_future *future, void *value, int err)
{
    filch_wakes wakes = {NULL, NULL};

    filch_lock_acquire(filch_future_lock(future));
    /* relaxed: written under the lock. */
    bool is_first = filch_load_relaxed(&future->state) == FILCH_FUTURE_PENDING;
    if (is_first) {
        future->value = value;
        future->err = err;
        /* relaxed: future.h. */
        filch_store_relaxed(&future->state, FILCH_FUTURE_READY);
        filch_waiters_wake_all(filch_future_waiters(future), &wakes);
    }
    /* Each waiter acquires the lock once more before it returns: then it may free the future. */
    filch_lock_release(filch_future_lock(future));
    filch_wakes_go(&wakes);
    return is_first;
}

static int result_of(filch_future *future, void **value)
{
    if (value)
        *value = future->value;
    return future->err;
}

int filch_future_try_get(filch_future *future, void **value)
{
    if (!future)
        return -EINVAL;
    if (!filch_future_is_ready(future))
        return -EAGAIN;
    /* filch_future_set must have released the lock: the caller may free the future. */
    filch_lock_acquire(filch_future_lock(future));
    filch_lock_release(filch_future_lock(future));
    return result_of(future, value);
}

int filch_future_get_until(filch_frame *f, filch_future *future, void **value, uint64_t deadline_ns)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};
    int outcome = 0;

    if (!future)
        return -EINVAL;
    if (!filch_future_is_ready(future)) {
        filch_waiting_begin(&waiting, f, FILCH_WAITS_FUTURE, future);
        filch_lock_acquire(filch_future_lock(future));
        bool is_late = filch_future_is_ready(future);
        if (!is_late)
            filch_waiters_push(filch_future_waiters(future), &waiter);
        filch_lock_release(filch_future_lock(future));
        if (is_late)
            filch_waiting_drop(&waiting);
        else
            outcome = filch_waiting_wait(&waiting, deadline_ns);
    }
    /* filch_future_set must have released the lock. A waiter whose wait ended early removes
     * itself. */
    filch_lock_acquire(filch_future_lock(future));
    if (outcome < 0)
        filch_waiters_remove(filch_future_waiters(future), &waiter);
    filch_lock_release(filch_future_lock(future));
    return outcome < 0 ? outcome : result_of(future, value);
}

int filch_future_get(filch_frame *f, filch_future *future, void **value)
{
    return filch_future_get_until(f, future, value, FILCH_NEVER_NS);
}

static FILCH_NOT_INLINED void run_async(filch_frame *f, filch_spawned *spawned, int refused)
{
    void *value = NULL;
    int err = refused ? refused : spawned->async(f, spawned->arg, &value);
    FILCH_STOP_UNWIND();

    filch_future_set(spawned->future, value, err);
}

int filch_future_spawn(filch_frame *f, filch_scope *scope, filch_future *future,
                       filch_future_fn *fn, void *arg)
{
    filch_spawned *spawned;

    if (!scope || !future || !fn)
        return -EINVAL;
    int err = filch_spawn_task(f, scope, run_async, 0, &spawned);
    if (err)
        return err;
    spawned->async = fn;
    spawned->job.named = (uintptr_t)fn;
    spawned->arg = arg;
    spawned->future = future;
    filch_spawn_go(spawned);
    return 0;
}

/* ---- without a scope ------------------------------------------------------------------------- */

typedef struct submitted {
    filch_job job; /* first: its functions get the job */
    filch_future_fn *fn;
    void *arg;
    filch_future *future;
} submitted;

static FILCH_NOT_INLINED void run_submitted(filch_frame *f, void *arg)
{
    submitted *task = arg;
    void *value = NULL;
    int err = task->fn(f, task->arg, &value);
    FILCH_STOP_UNWIND();

    filch_future_set(task->future, value, err);
}

static void end_submitted(filch_job *job, filch_pool *pool)
{
    free(job);
    filch_pool_end(pool);
}

static void refuse_submitted(filch_job *job, filch_pool *pool)
{
    filch_future_set(((submitted *)job)->future, NULL, -ENOMEM);
    end_submitted(job, pool);
}

int filch_future_submit(filch_pool *pool, filch_future *future, filch_future_fn *fn, void *arg)
{
    int err = pool && future && fn ? filch_pool_check(pool) : -EINVAL;

    if (err)
        return err;
    submitted *task = filch_calloc(1, sizeof *task);
    if (!task)
        return -ENOMEM;
    *task = (submitted){.job = {.fn = run_submitted,
                                .arg = task,
                                .named = (uintptr_t)fn,
                                .end = end_submitted,
                                .refuse = refuse_submitted},
                        .fn = fn,
                        .arg = arg,
                        .future = future};
    /* Once for the job, and once for this call. Otherwise, if the job completes at once, another
     * thread might destroy the pool during this call. */
    filch_pool_begin(pool);
    filch_pool_begin(pool);
    filch_pool_inject(pool, &task->job);
    filch_pool_end(pool);
    return 0;
}
