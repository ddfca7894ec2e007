/* SPDX-License-Identifier: MIT */
/*
 * Calls of checked programs on scopes, futures, local values and locks: they check the call, then
 * make it.
 */
#include "strand/notes.h"
#include "wait/future.h"
#include "wait/scope.h"
#include "wait/sync/sync.h"

#include <stdio.h>
#include <stdlib.h>

static _Noreturn void stop(const char *file, int line, const char *text)
{
    fprintf(stderr, "filch: %s:%d: %s\n", file, line, text);
    abort();
}

static filch_strand *strand_of(filch_frame *f)
{
    return f ? filch_strand_of(f) : NULL;
}

/* The strand that this thread runs. */
static filch_strand *strand_here(void)
{
    const filch_visit *visit = filch_visit_self();
    /* relaxed: own variable. */
    return visit ? filch_load_relaxed(&visit->worker->strand) : NULL;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static bool has_life(const filch_scope *scope, enum filch_scope_life life)
{
    return filch_notes_read32(&scope->life) == filch_scope_life(scope, life);
}

static bool is_scope_live(const void *scope)
{
    return has_life(scope, FILCH_SCOPE_OPEN) || has_life(scope, FILCH_SCOPE_CLOSING);
}

static void check_scope(const char *file, int line, const filch_scope *scope)
{
    if (!scope || is_scope_live(scope))
        return;
    stop(file, line,
         has_life(scope, FILCH_SCOPE_CLOSED)
             ? "the scope is already closed"
             : "this is no open scope: it was never opened, or was copied or overwritten");
}

int filch_check_scope_open(const char *file, int line, filch_frame *f, filch_scope *scope,
                           filch_pool *pool, const filch_scope_options *options)
{
    filch_strand *strand = strand_of(f);
    const filch_note *note = strand ? filch_notes_find(strand, scope) : NULL;

    /* In the child of a fork(), the open scope is that of the parent. */
    if (note && filch_pool_is_alive(strand->pool)) {
        fprintf(stderr, "filch: %s:%d: the scope was opened here before, and is not closed\n",
                note->file, note->line);
        stop(file, line, "the scope is already open");
    }
    int err = filch_scope_open(f, scope, pool, options);
    if (!err && strand)
        filch_notes_add(strand, &(filch_note){.object = scope,
                                              .is_live = is_scope_live,
                                              .text = "the scope opened here is not closed, but "
                                                      "its function has returned",
                                              .file = file,
                                              .line = line});
    return err;
}

int filch_check_scope_spawn(const char *file, int line, filch_frame *f, filch_scope *scope,
                            filch_task_fn *fn, void *arg)
{
    check_scope(file, line, scope);
    return filch_scope_spawn(f, scope, fn, arg);
}

int filch_check_scope_spawn_copy(const char *file, int line, filch_frame *f, filch_scope *scope,
                                 filch_task_fn *fn, const void *arg, size_t bytes)
{
    check_scope(file, line, scope);
    return filch_scope_spawn_copy(f, scope, fn, arg, bytes);
}

void filch_check_scope_cancel(const char *file, int line, filch_scope *scope)
{
    check_scope(file, line, scope);
    filch_scope_cancel(scope);
}

int filch_check_scope_close(const char *file, int line, filch_frame *f, filch_scope *scope)
{
    filch_strand *strand = strand_of(f);

    check_scope(file, line, scope);
    /* A task of the scope gets -EDEADLK, the child of a fork() -EOWNERDEAD. */
    if (scope && has_life(scope, FILCH_SCOPE_CLOSING) && !(strand && strand->scope == scope) &&
        filch_pool_is_alive(scope->pool) && scope->generation == scope->pool->generation)
        stop(file, line, "the scope is already being closed");
    int err = filch_scope_close(f, scope);
    if (strand && scope && has_life(scope, FILCH_SCOPE_CLOSED))
        filch_notes_remove(strand, scope);
    return err;
}

/* ---- futures --------------------------------------------------------------------------------- */

/* The value of a pending future that a task will complete. Memory without it is no such future. */
static void *seal_of(const filch_future *future)
{
    return (void *)((uintptr_t)future ^ (uintptr_t)0x66696c6366757475);
}

static bool is_future_live(const void *object)
{
    const filch_future *future = object;
    return filch_notes_read64(&future->value) == (uintptr_t)seal_of(future) &&
           filch_notes_read32(&future->state) == FILCH_FUTURE_PENDING;
}

/* A task will complete the future. */
static void seal(filch_future *future)
{
    filch_lock_acquire(filch_future_lock(future));
    if (!filch_future_is_ready(future))
        future->value = seal_of(future);
    filch_lock_release(filch_future_lock(future));
}

/* No task will complete it: the call has failed. */
static void unseal(filch_future *future)
{
    filch_lock_acquire(filch_future_lock(future));
    if (!filch_future_is_ready(future) && future->value == seal_of(future))
        future->value = NULL;
    filch_lock_release(filch_future_lock(future));
}

static void note_future(filch_strand *strand, const char *file, int line,
                        const filch_future *future)
{
    if (strand)
        filch_notes_add(strand, &(filch_note){.object = future,
                                              .is_live = is_future_live,
                                              .text = "the future passed here is not complete, but "
                                                      "its function has returned",
                                              .file = file,
                                              .line = line});
}

int filch_check_future_spawn(const char *file, int line, filch_frame *f, filch_scope *scope,
                             filch_future *future, filch_future_fn *fn, void *arg)
{
    filch_strand *strand = strand_of(f);

    check_scope(file, line, scope);
    bool is_sealed = scope && fn && future;
    if (is_sealed)
        seal(future);
    int err = filch_future_spawn(f, scope, future, fn, arg);
    if (err && is_sealed)
        unseal(future);
    else if (!err)
        note_future(strand, file, line, future);
    return err;
}

int filch_check_future_submit(const char *file, int line, filch_pool *pool, filch_future *future,
                              filch_future_fn *fn, void *arg)
{
    filch_strand *strand = strand_here();

    bool is_sealed = pool && fn && future;
    if (is_sealed)
        seal(future);
    int err = filch_future_submit(pool, future, fn, arg);
    if (err && is_sealed)
        unseal(future);
    else if (!err)
        note_future(strand, file, line, future);
    return err;
}

/* ---- local values ---------------------------------------------------------------------------- */

void filch_check_local_unbind(const char *file, int line, filch_frame *f, filch_binding *binding)
{
    /* relaxed: own variable. */
    if (f && filch_load_relaxed(&filch_strand_of(f)->locals) != binding)
        stop(file, line, "another binding was bound later and still is, or this one is not bound");
    filch_local_unbind(f, binding);
}

/* ---- locks and barriers ---------------------------------------------------------------------- */

static void check_mutex(const char *file, int line, filch_mutex *mutex)
{
    /* relaxed: a holder sees its own value. */
    const filch_strand *holder = filch_load_relaxed(&mutex->holder);

    if (!filch_mutex_is_held(mutex))
        stop(file, line, "the mutex is not locked");
    if (holder && holder != strand_here())
        stop(file, line, "the mutex is locked by another task");
}

void filch_check_mutex_unlock(const char *file, int line, filch_mutex *mutex)
{
    check_mutex(file, line, mutex);
    filch_mutex_unlock(mutex);
}

void filch_check_rwlock_unlock(const char *file, int line, filch_rwlock *rwlock)
{
    if (!filch_rwlock_is_held(rwlock))
        stop(file, line, "the reader-writer lock is not locked");
    filch_rwlock_unlock(rwlock);
}

int filch_check_cond_wait(const char *file, int line, filch_frame *f, filch_cond *cond,
                          filch_mutex *mutex)
{
    check_mutex(file, line, mutex);
    return filch_cond_wait(f, cond, mutex);
}

int filch_check_cond_wait_until(const char *file, int line, filch_frame *f, filch_cond *cond,
                                filch_mutex *mutex, uint64_t deadline_ns)
{
    check_mutex(file, line, mutex);
    return filch_cond_wait_until(f, cond, mutex, deadline_ns);
}

int filch_check_barrier_wait(const char *file, int line, filch_frame *f, filch_barrier *barrier)
{
    if (barrier->count == 0)
        stop(file, line, "the barrier is for 0 callers, or was not initialised");
    return filch_barrier_wait(f, barrier);
}
