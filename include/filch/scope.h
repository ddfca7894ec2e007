/* SPDX-License-Identifier: MIT */
/*
 * A scope owns the tasks that are spawned into it. Closing the scope waits until all of them have
 * ended.
 *
 *     static int fetch(filch_frame *f, void *arg)     // runs some time, may wait
 *     {
 *         struct request *request = arg;
 *         return request_fetch(f, request);           // 0 or -errno
 *     }
 *
 *     int fetch_all(filch_frame *f, struct request *requests, int n)
 *     {
 *         filch_scope scope;                          // on the caller's stack, or elsewhere
 *         filch_scope_options options = {
 *             .size = sizeof options, .cancel_on_error = true, .deadline_ns = filch_after_ms(500)};
 *         int err = filch_scope_open(f, &scope, NULL, &options);
 *         if (err)
 *             return err;
 *         for (int i = 0; i < n && !err; i++)
 *             err = filch_scope_spawn(f, &scope, fetch, &requests[i]);
 *         int close_err = filch_scope_close(f, &scope); // waits; the first error of a task
 *         return close_err ? close_err : err;
 *     }
 *
 * A task may wait for a lock, a channel or a timer, and costs no thread meanwhile. Tasks of a scope
 * may spawn more tasks into it. Scopes nest: a task opens a scope of its own and closes it before
 * it returns.
 *
 * Cancellation is a request. A scope is cancelled by
 *
 *   - filch_scope_cancel,
 *   - its deadline,
 *   - the first error of a task, if options.cancel_on_error is set.
 *
 * From then on, until a task of the scope returns:
 *
 *   - Every pending wait of the task returns -ECANCELED, and so does every later one.
 *   - The tasks that it has forked are cancelled with it.
 *   - Waits between filch_shield and filch_unshield are not cancelled: clean-up that has to wait
 *     belongs there.
 *
 * Tasks that have not begun do not run. The spawner then has to free or close what such a task
 * would have freed or closed. It can keep a list, or use filch_future_spawn, whose future then
 * completes with -ECANCELED. Or each task acquires what it needs when it has begun: in
 * examples/echo.c, the task that serves a connection has accepted it. All this holds as well for
 * tasks without memory for a stack (filch_scope_spawn).
 *
 * Every scope that was opened must be closed. Its memory is in use until then. The pool must live
 * as long; filch_pool_destroy returns -EBUSY over an open scope.
 *
 * Programs compiled without optimisation, or with -DFILCH_DEBUG, stop at a call on a scope that is
 * not open, or when a scope is opened twice. They also stop when a task returns whose stack
 * has an open scope. The message has the file and line.
 *
 * In the child of a fork(), a scope that was opened before belongs to the parent, as do its tasks.
 * filch_scope_spawn and filch_scope_close return -EOWNERDEAD there; filch_scope_cancel does
 * nothing.
 */
#ifndef FILCH_SCOPE_H
#define FILCH_SCOPE_H

#include <filch/impl/check.h>
#include <filch/local.h>
#include <filch/pool.h>
#include <filch/sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task of a scope; `f` is its frame. Returns 0 or -errno: the scope keeps the first error. A
 * positive value, as of filch_send_all, counts as 0. */
typedef int filch_task_fn(filch_frame *f, void *arg);

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_scope_options {
    size_t size; /* sizeof(filch_scope_options) */

    /* Cancels the scope at this time, as from filch_after_ms; the close then returns -ETIMEDOUT.
     * 0: no deadline. */
    uint64_t deadline_ns;

    /* filch_scope_spawn waits while this many tasks of the scope have not ended. Tasks of the scope
     * itself spawn without waiting. To limit those, use a filch_sem. 0: no limit. */
    unsigned task_limit;

    bool cancel_on_error; /* the first error of a task cancels the others */
} filch_scope_options;

/* The members belong to the library. */
typedef struct filch_scope {
    filch_pool *pool;
    filch_atomic_u32 lock;
    filch_atomic_u32 mark;       /* 0, or why the scope is cancelled: ECANCELED or ETIMEDOUT */
    filch_atomic_u32 task_count; /* tasks that have not ended, plus 1 until the scope is closing */
    unsigned task_limit;
    bool cancel_on_error, has_deadline;
    unsigned generation; /* of the pool: it differs in the child of a fork() */

    /* Under the lock. */
    int error;                    /* the first error of a task */
    bool is_done;                 /* all tasks have ended */
    unsigned running_count;       /* tasks that count towards the limit, if there is one */
    filch_atomic_u32 life;        /* open, closing or closed, for checked programs */
    struct filch_strand *strands; /* strands that have waited in this scope */
    filch_list spawners;          /* callers that wait for the limit */
    void *closer;                 /* the caller of filch_scope_close that waits */
    uint64_t timer[8];            /* of the deadline */
} filch_scope;

/*
 * Open a scope whose tasks run in `pool`. With NULL for `pool` they run in the pool of `f`. `f` is
 * NULL outside of tasks. `options` may be NULL.
 *
 * Returns 0, or an error, and then there is nothing to close:
 *   -EINVAL      neither a pool nor a frame, no scope, or options.size was not set
 *   -E2BIG       the options come from a newer header and use members that this library does not
 *                know
 *   -EOWNERDEAD  the caller is a task of the pool that has called fork(), and this is the child
 *   -EAGAIN      in the child of a fork(): as of filch_run
 */
FILCH_API int filch_scope_open(filch_frame *f, filch_scope *scope, filch_pool *pool,
                               const filch_scope_options *options);

/*
 * Let fn(f, arg) run some time as a task of the scope. Waits only for options.task_limit.
 *
 * Returns 0, or an error, and then the task does not run:
 *   -ECANCELED   the scope is cancelled, or the caller was while it waited for the limit
 *   -ENOMEM      there is no memory for the task, or as of all calls that wait
 *   -EOWNERDEAD  this is the child of a fork()
 *   -EINVAL      no scope, no function, or bytes without `arg`
 *
 * A task needs a stack when it begins. If all stacks belong to tasks that wait, and there is no
 * memory for another stack, the task does not run. It then counts as a task that returned -ENOMEM.
 * The waiting tasks go on waiting. So tasks that wait for each other belong in a scope with
 * cancel_on_error.
 */
FILCH_API int filch_scope_spawn(filch_frame *f, filch_scope *scope, filch_task_fn *fn, void *arg);

/* The same with a copy of the `bytes` at `arg`, aligned as by malloc, freed after the task. */
FILCH_API int filch_scope_spawn_copy(filch_frame *f, filch_scope *scope, filch_task_fn *fn,
                                     const void *arg, size_t bytes);

/*
 * Wait until all tasks of the scope have ended, and end the scope.
 *
 * If the caller itself is cancelled meanwhile, it cancels the scope, then waits on. It does the
 * same if no stack can be made for the tasks that it has forked (-ENOMEM, filch/filch.h). Then
 * -ENOMEM is the error of the scope, unless a task had an error before.
 *
 * Returns, in this order: the first error of a task, where -ECANCELED does not count once the scope
 * is cancelled; -ETIMEDOUT if the deadline cancelled the scope; -ECANCELED if anything else did; 0.
 *
 * Or the call did nothing: -EDEADLK, a task of this scope called it and would wait for its own end;
 * -EOWNERDEAD, this is the child of a fork(); -EINVAL, no scope.
 */
FILCH_API int filch_scope_close(filch_frame *f, filch_scope *scope);

/*
 * Cancel all tasks of the scope. From any thread while the scope is open, any number of times. Does
 * not wait for the tasks.
 *
 * It takes a lock, so a signal handler must not call it: for Ctrl-C, let a task read a signalfd.
 */
FILCH_API void filch_scope_cancel(filch_scope *scope);

/*
 * Is the task with this frame cancelled? For tasks that compute and want to stop early. False
 * between filch_shield and filch_unshield, and for a plain thread.
 *
 * It also checks whether deadlines have passed: while all workers compute, no other thread does. It
 * lets no other task run. If another task is to cancel this one, call filch_yield now and then;
 * otherwise a pool of one worker never runs that task.
 */
FILCH_API bool filch_is_cancelled(filch_frame *f);

/*
 * Between these two calls, waits do not return -ECANCELED. The pairs nest: pass to filch_unshield
 * what filch_shield returned.
 *
 * Join the tasks that were forked before filch_shield either before it or after filch_unshield. Of
 * such tasks joined in between, some would be shielded, too.
 */
FILCH_API filch_frame *filch_shield(filch_frame *f);
FILCH_API void filch_unshield(filch_frame *f, filch_frame *shield);

/* ---- checked programs ------------------------------------------------------------------------ */

FILCH_API int filch_check_scope_open(const char *file, int line, filch_frame *f, filch_scope *scope,
                                     filch_pool *pool, const filch_scope_options *options);
FILCH_API int filch_check_scope_spawn(const char *file, int line, filch_frame *f,
                                      filch_scope *scope, filch_task_fn *fn, void *arg);
FILCH_API int filch_check_scope_spawn_copy(const char *file, int line, filch_frame *f,
                                           filch_scope *scope, filch_task_fn *fn, const void *arg,
                                           size_t bytes);
FILCH_API int filch_check_scope_close(const char *file, int line, filch_frame *f,
                                      filch_scope *scope);
FILCH_API void filch_check_scope_cancel(const char *file, int line, filch_scope *scope);
#if FILCH_IMPL_PLACES
#define filch_scope_open(...) FILCH_IMPL_PLACE(filch_check_scope_open, __VA_ARGS__)
#define filch_scope_spawn(...) FILCH_IMPL_PLACE(filch_check_scope_spawn, __VA_ARGS__)
#define filch_scope_spawn_copy(...) FILCH_IMPL_PLACE(filch_check_scope_spawn_copy, __VA_ARGS__)
#define filch_scope_close(...) FILCH_IMPL_PLACE(filch_check_scope_close, __VA_ARGS__)
#define filch_scope_cancel(...) FILCH_IMPL_PLACE(filch_check_scope_cancel, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
