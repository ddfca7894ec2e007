/* SPDX-License-Identifier: MIT */
/*
 * A scope counts its tasks, plus one until filch_scope_close begins. The caller that counts down to
 * zero notifies the closer under the lock. The closer acquires the lock once more before it
 * returns, so no task touches a scope that is gone.
 *
 * A strand that runs a task of the scope enters the scope's list at its first wait. There
 * filch_scope_cancel finds the strand. If the strand is closing a scope of its own, that scope is
 * cancelled, too.
 *
 * Edges
 *   scope-done      end_task -> filch_scope_close
 *                   carries all that the tasks did.
 *   cancel-or-wait  filch_scope_cancel x filch_waiting_wait
 *                   forbids that the waiter misses the mark and the canceller misses the wait.
 */
#include "wait/scope.h"

#include "base/fault.h"
#include "base/options.h"
#include "strand/inherit.h"
#include "strand/notes.h"
#include "strand/unwind.h"
#include "wait/spawn.h"
#include "wait/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(filch_timer) <= sizeof((filch_scope *)0)->timer, "the timer has room");
_Static_assert(sizeof(filch_waiters) == sizeof(filch_list), "a list of the public headers");
_Static_assert(sizeof(filch_lock) == sizeof(filch_atomic_u32), "a lock of the public headers");

static filch_lock *lock_of(filch_scope *scope)
{
    return (filch_lock *)&scope->lock;
}

/* False: this is the child of a fork(). The threads that hold the lock, or run the tasks, are in
 * the parent. */
static bool is_ours(const filch_scope *scope)
{
    return filch_pool_is_alive(scope->pool) && scope->generation == scope->pool->generation;
}

static void set_life(filch_scope *scope, enum filch_scope_life life)
{
    /* relaxed: read only to find misuse. */
    filch_store_relaxed(&scope->life, filch_scope_life(scope, life));
}

static filch_waiters *spawners_of(filch_scope *scope)
{
    return (filch_waiters *)&scope->spawners;
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void delist(filch_strand *strand)
{
    filch_scope *scope = strand->scope;

    filch_lock_acquire(lock_of(scope));
    *strand->scope_to = strand->scope_next;
    if (strand->scope_next)
        strand->scope_next->scope_to = strand->scope_to;
    strand->scope_to = NULL;
    filch_lock_release(lock_of(scope));
}

void filch_scope_enlist(filch_scope *scope, filch_strand *strand)
{
    /* Once per task. Do not test scope_to instead: neighbours in the list write to it. */
    if (strand->at_end == delist)
        return;
    /* In a checked program, at_end checks the notes first. */
    void (**at_end)(filch_strand *) = strand->notes ? &strand->notes->then : &strand->at_end;
    if (*at_end == delist)
        return;
    filch_lock_acquire(lock_of(scope));
    strand->scope_next = scope->strands;
    strand->scope_to = &scope->strands;
    if (strand->scope_next)
        strand->scope_next->scope_to = &strand->scope_next;
    scope->strands = strand;
    filch_lock_release(lock_of(scope));
    *at_end = delist;
}

/* Cancel the scope; the first reason counts. Strands to be resumed are appended at **last. */
static void cancel(filch_scope *scope, uint32_t why, filch_link ***last)
{
    filch_lock_acquire(lock_of(scope));
    /* relaxed: under the lock. */
    bool is_first = !filch_load_relaxed(&scope->mark);
    if (is_first)
        /* seq_cst [cancel-or-wait] */
        filch_store_seq_cst(&scope->mark, why);
    for (filch_strand *strand = is_first ? scope->strands : NULL; strand;
         strand = strand->scope_next) {
        if (filch_wait_cancel(&strand->wait) != FILCH_WAIT_RESUME)
            continue;
        **last = &strand->link;
        *last = &strand->link.next;
        /* The strand would cancel the scope that it is closing, but perhaps late: the tasks of that
         * scope may occupy all workers. Until the strand is resumed, it and that scope are ours.
         * Locks are acquired from the outer scope to the inner one. */
        if (strand->closes && strand->closes->pool == scope->pool)
            cancel(strand->closes, ECANCELED, last);
    }
    filch_lock_release(lock_of(scope));
}

/* Called by a worker of the pool, or by a caller that keeps the pool alive. A task keeps the pool
 * alive until it ends. */
static void cancel_and_resume(filch_scope *scope, uint32_t why)
{
    filch_pool *pool = scope->pool;
    filch_link *strands = NULL, **last = &strands;

    filch_pool_begin(pool);
    cancel(scope, why, &last);
    *last = NULL;
    filch_pool_resume(pool, strands);
    filch_pool_end(pool);
}

void filch_scope_cancel(filch_scope *scope)
{
    if (scope && is_ours(scope))
        cancel_and_resume(scope, ECANCELED);
}

static void pass_deadline(filch_timer *timer, filch_link ***last)
{
    cancel((filch_scope *)((char *)timer - offsetof(filch_scope, timer)), ETIMEDOUT, last);
}

bool filch_is_cancelled(filch_frame *f)
{
    filch_strand *strand = f ? filch_strand_of(f) : NULL;
    filch_scope *scope = strand && !filch_strand_is_shielded(strand, f) ? strand->scope : NULL;

    if (!scope)
        return false;
    /* relaxed: a task that learns of it late is cancelled in its next wait. */
    uint32_t mark = filch_load_relaxed(&scope->mark);
    if (mark || !filch_strand_can_leave(strand))
        return mark;
    /* While all workers compute, no other thread checks the timers. */
    filch_pool_fire_timers(strand->pool);
    /* relaxed: as above. */
    return filch_load_relaxed(&scope->mark);
}

filch_slot *filch_shield(filch_frame *f)
{
    if (!f)
        return NULL;
    filch_strand *strand = filch_strand_of(f);
    /* relaxed: [task-ready] carries it to the thieves of later forks. */
    filch_frame *shield = filch_load_relaxed(&strand->shield);
    if (!shield)
        filch_store_relaxed(&strand->shield, f);
    return shield;
}

void filch_unshield(filch_frame *f, filch_frame *shield)
{
    if (f)
        /* relaxed: all that was forked meanwhile has been joined. */
        filch_store_relaxed(&filch_strand_of(f)->shield, shield);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

int filch_scope_open(filch_frame *f, filch_scope *scope, filch_pool *pool,
                     const filch_scope_options *options)
{
    filch_scope_options o;
    int err = filch_options_copy(&o, sizeof o, options);

    if (!pool && f)
        pool = filch_strand_of(f)->pool;
    if (!scope || !pool)
        return -EINVAL;
    if (!err)
        err = filch_pool_check(pool);
    if (err)
        return err;
    /* relaxed: a count. Destroying a pool while a scope is being opened or closed is a race
     * anyway. */
    filch_fetch_add_relaxed(&pool->scopes, 1);
    *scope =
        (filch_scope){.pool = pool,
                      .generation = pool->generation,
                      .task_count = {1},
                      .task_limit = o.task_limit,
                      .life = {filch_scope_life(scope, FILCH_SCOPE_OPEN)},
                      .cancel_on_error = o.cancel_on_error,
                      .has_deadline = o.deadline_ns != 0 && o.deadline_ns != FILCH_NO_DEADLINE};
    if (scope->has_deadline) {
        filch_timer *timer = (filch_timer *)scope->timer;
        timer->fire = pass_deadline;
        if (filch_timer_start(&pool->timers, timer, o.deadline_ns)) {
            filch_pool_begin(pool);
            filch_pool_notify(pool, NULL);
            filch_pool_end(pool);
        }
    }
    return 0;
}

/* Count one more task if the limit allows it, or if the caller is a task of the scope. Otherwise
 * enter the list. */
static bool try_enter(filch_scope *scope, bool is_own, filch_waiter *waiter)
{
    filch_lock_acquire(lock_of(scope));
    bool is_in = is_own || scope->running_count < scope->task_limit;
    if (is_in)
        scope->running_count++;
    else if (waiter)
        filch_waiters_push(spawners_of(scope), waiter);
    filch_lock_release(lock_of(scope));
    return is_in;
}

/* Wait until there are fewer tasks than the limit, and count one more. A task of the scope does not
 * wait: it might wait for its own end. */
static int enter_limited(filch_frame *f, filch_scope *scope)
{
    filch_waiting waiting;
    filch_waiter waiter = {.waiting = &waiting};

    if (try_enter(scope, f && filch_strand_of(f)->scope == scope, NULL))
        return 0;
    filch_waiting_begin(&waiting, f, FILCH_WAITS_SCOPE_LIMIT, scope);
    if (try_enter(scope, false, &waiter)) {
        filch_waiting_drop(&waiting);
        return 0;
    }
    int outcome = filch_waiting_wait(&waiting, FILCH_NEVER_NS);
    if (outcome < 0) {
        filch_lock_acquire(lock_of(scope));
        filch_waiters_remove(spawners_of(scope), &waiter);
        filch_lock_release(lock_of(scope));
    }
    return outcome;
}

/* A task of a limited scope has ended. Its place goes to a waiting spawner, or becomes free. Tasks
 * spawned by tasks of the scope may have exceeded the limit. */
static void leave_limited(filch_scope *scope)
{
    filch_wakes wakes = {NULL, NULL};

    filch_lock_acquire(lock_of(scope));
    if (scope->running_count > scope->task_limit || !filch_waiters_wake(spawners_of(scope), &wakes))
        scope->running_count--;
    filch_lock_release(lock_of(scope));
    filch_wakes_go(&wakes);
}

/* The last access of a task to its scope. */
static void end_task(filch_scope *scope)
{
    filch_wakes wakes = {NULL, NULL};

    /* acq_rel [scope-done] */
    if (filch_fetch_add_acq_rel(&scope->task_count, -1u) != 1)
        return;
    filch_lock_acquire(lock_of(scope));
    scope->is_done = true;
    if (scope->closer)
        filch_waiting_end(scope->closer, 0, &wakes);
    filch_lock_release(lock_of(scope));
    filch_wakes_go(&wakes);
}

static void run_task(filch_frame *f, void *arg)
{
    filch_spawned *spawned = arg;
    /* relaxed: as in filch_is_cancelled. */
    bool is_cancelled = filch_load_relaxed(&spawned->job.scope->mark);

    spawned->run(f, spawned, is_cancelled ? -ECANCELED : 0);
}

/* The first error counts. */
static void keep_error(filch_scope *scope, int err)
{
    filch_lock_acquire(lock_of(scope));
    if (!scope->error)
        scope->error = err;
    filch_lock_release(lock_of(scope));
}

static void end_spawned(filch_job *job, filch_pool *pool)
{
    filch_spawned *spawned = (filch_spawned *)job;
    filch_scope *scope = job->scope;
    int err = spawned->err;

    (void)pool;
    free(spawned);
    /* relaxed: the -ECANCELED of a task in a cancelled scope does not count as an error. */
    if (err < 0 && !(err == -ECANCELED && filch_load_relaxed(&scope->mark))) {
        keep_error(scope, err);
        if (scope->cancel_on_error)
            cancel_and_resume(scope, ECANCELED);
    }
    if (scope->task_limit)
        leave_limited(scope);
    end_task(scope);
}

static void refuse_spawned(filch_job *job, filch_pool *pool)
{
    filch_spawned *spawned = (filch_spawned *)job;

    spawned->run(NULL, spawned, -ENOMEM);
    end_spawned(job, pool);
}

/* Copy the bindings that hold for `f` to `to`; with NULL, only count them. Returns how many there
 * are. */
static size_t copy_locals(filch_frame *f, filch_binding *to)
{
    size_t count = 0;

    for (filch_binding *b = f ? filch_locals_of(f) : NULL; b; b = b->outer) {
        if (to) {
            to[count] = *b;
            to[count].outer = b->outer ? &to[count + 1] : NULL;
            to[count].from = NULL; /* holds for the whole new strand */
        }
        count++;
    }
    return count;
}

int filch_spawn_task(filch_frame *f, filch_scope *scope, filch_spawned_fn *run, size_t bytes,
                     filch_spawned **out)
{
    size_t local_count = copy_locals(f, NULL);
    size_t local_bytes = local_count * sizeof(filch_binding);

    if (!is_ours(scope))
        return -EOWNERDEAD;
    /* relaxed: a task that is spawned at the last moment does not run. */
    if (filch_load_relaxed(&scope->mark))
        return -ECANCELED;
    if (bytes > PTRDIFF_MAX - local_bytes - sizeof(filch_spawned) - sizeof(max_align_t))
        return -ENOMEM;
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    filch_spawned *spawned =
        filch_fault(FILCH_FAULT_MALLOC) ? NULL : malloc(sizeof *spawned + local_bytes + bytes);
    if (!spawned)
        return -ENOMEM;
    int err = scope->task_limit ? enter_limited(f, scope) : 0;
    if (err) {
        free(spawned);
        return err;
    }
    filch_binding *locals = (filch_binding *)(void *)(spawned->room + bytes);
    copy_locals(f, locals);
    *spawned = (filch_spawned){.job = {.fn = run_task,
                                       .arg = spawned,
                                       .end = end_spawned,
                                       .refuse = refuse_spawned,
                                       .scope = scope,
                                       .locals = local_count > 0 ? locals : NULL},
                               .run = run};
    /* relaxed: the caller keeps the scope open; the queue carries the task. */
    filch_fetch_add_relaxed(&scope->task_count, 1);
    *out = spawned;
    return 0;
}

void filch_spawn_go(filch_spawned *spawned)
{
    filch_pool_spawn(spawned->job.scope->pool, &spawned->job);
}

static FILCH_NOT_INLINED void run_plain(filch_frame *f, filch_spawned *spawned, int refused)
{
    spawned->err = refused ? refused : spawned->task(f, spawned->arg);
    FILCH_STOP_UNWIND();
}

static int spawn(filch_frame *f, filch_scope *scope, filch_task_fn *fn, const void *arg,
                 size_t bytes)
{
    filch_spawned *spawned;

    if (!scope || !fn || (bytes > 0 && !arg))
        return -EINVAL;
    int err = filch_spawn_task(f, scope, run_plain, bytes, &spawned);
    if (err)
        return err;
    if (bytes > 0)
        memcpy(spawned->room, arg, bytes);
    spawned->task = fn;
    spawned->job.named = (uintptr_t)fn;
    spawned->arg = bytes > 0 ? spawned->room : (void *)arg;
    filch_spawn_go(spawned);
    return 0;
}

int filch_scope_spawn(filch_frame *f, filch_scope *scope, filch_task_fn *fn, void *arg)
{
    return spawn(f, scope, fn, arg, 0);
}

int filch_scope_spawn_copy(filch_frame *f, filch_scope *scope, filch_task_fn *fn, const void *arg,
                           size_t bytes)
{
    return spawn(f, scope, fn, arg, bytes);
}

/* ---- close ----------------------------------------------------------------------------------- */

/* A canceller of the waiter finds `closes`, and cancels that scope, too. */
static int wait_for_end(filch_waiting *waiting, filch_scope *scope)
{
    filch_strand *strand = waiting->strand;

    if (strand)
        strand->closes = scope;
    int outcome = filch_waiting_wait(waiting, FILCH_NEVER_NS);
    if (strand)
        strand->closes = NULL;
    return outcome;
}

/* Wait for the end of all tasks. Returns 0, or an error if the caller cannot go on waiting: it was
 * cancelled, or there was no memory to run its forks. */
static int wait_for_all(filch_frame *f, filch_scope *scope)
{
    filch_waiting waiting;
    int outcome = 0;

    filch_waiting_begin(&waiting, f, FILCH_WAITS_SCOPE, scope);
    filch_lock_acquire(lock_of(scope));
    bool is_done = scope->is_done;
    scope->closer = &waiting;
    filch_lock_release(lock_of(scope));
    if (is_done)
        filch_waiting_drop(&waiting);
    else
        outcome = wait_for_end(&waiting, scope);
    /* Also when the scope is done: the last task must have released the lock. */
    filch_lock_acquire(lock_of(scope));
    scope->closer = NULL;
    is_done = scope->is_done;
    filch_lock_release(lock_of(scope));
    return is_done ? 0 : outcome;
}

int filch_scope_close(filch_frame *f, filch_scope *scope)
{
    if (!scope)
        return -EINVAL;
    if (!is_ours(scope))
        return -EOWNERDEAD;
    if (f && filch_strand_of(f)->scope == scope)
        return -EDEADLK;
    set_life(scope, FILCH_SCOPE_CLOSING);
    /* acq_rel [scope-done] */
    int err = filch_fetch_add_acq_rel(&scope->task_count, -1u) != 1 ? wait_for_all(f, scope) : 0;
    if (err) {
        filch_frame *shield = filch_shield(f);
        if (err == -ENOMEM)
            keep_error(scope, err);
        filch_scope_cancel(scope);
        wait_for_all(f, scope);
        filch_unshield(f, shield);
    }
    if (scope->has_deadline)
        filch_timer_stop(&scope->pool->timers, (filch_timer *)scope->timer);
    /* relaxed: no task is left; a count. */
    uint32_t mark = filch_load_relaxed(&scope->mark);
    filch_fetch_add_relaxed(&scope->pool->scopes, -1u);
    set_life(scope, FILCH_SCOPE_CLOSED);
    return scope->error ? scope->error : -(int)mark;
}
