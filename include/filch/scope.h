/* SPDX-License-Identifier: MIT */
/*
 * A scope owns the tasks that are spawned into it: it is closed when all of them have ended.
 *
 *     filch_scope scope;
 *     filch_scope_options options = {.size = sizeof options, .cancel_on_error = true, .deadline_ns = filch_after_ms(500)};
 *     filch_scope_open(f, &scope, pool, &options);     on the caller's stack, or wherever it likes
 *     for (int i = 0; i < n; i++)
 *         filch_scope_spawn(f, &scope, fetch, &request[i]);  fetch(f, &request[i]) runs some time, may wait, returns 0 or -errno
 *     int err = filch_scope_close(f, &scope);          waits for all of them; the first error, or 0
 *
 * A task may wait, for a lock, a channel, a timer, and meanwhile costs no thread. The tasks of a scope may spawn more into it. Scopes nest: a
 * task opens one of its own and closes it before it returns.
 *
 * Cancellation is a request: once a scope is cancelled, by filch_scope_cancel, by its deadline or by the first error of a task if it was
 * opened so, every wait of its tasks that has not ended returns -ECANCELED, and so does every later one, until the task returns. Tasks that have not begun do not
 * run: what they were to free or close is still the spawner's, so keep it in a list of one's own, or use filch_future_spawn, whose future tells (-ECANCELED). What a task forked is cancelled with it. Clean-up that has to wait is put between filch_shield and filch_unshield.
 *
 * A scope has to be closed: its memory is in use until then, and the pool is not destroyed over it (-EBUSY). filch_scope_cancel takes a lock, so a signal handler may not call it: for Ctrl-C let a task read a signalfd.
 *
 * The pool has to stay until the scope is closed. In the child of a fork() a scope that was opened before belongs to the parent, as do its tasks: filch_scope_spawn and filch_scope_close
 * return -EOWNERDEAD, and filch_scope_cancel does nothing.
 */
#ifndef FILCH_SCOPE_H
#define FILCH_SCOPE_H

#include <filch/local.h>
#include <filch/pool.h>
#include <filch/sync.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task of a scope. `f` is its handle. Returns 0 or -errno: the scope keeps the first error. A positive value, as of filch_send_all, counts as 0. */
typedef int filch_task_fn(filch_frame *f, void *arg);

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_scope_options {
    size_t size; /* sizeof(filch_scope_options) */
    uint64_t
        deadline_ns; /* then it is cancelled, and its close returns -ETIMEDOUT; as from filch_now_ns. 0: none */
    unsigned
        task_limit; /* filch_scope_spawn waits while so many tasks have not ended: back-pressure. Tasks of the scope itself do not wait; where those spawn, too, a filch_sem limits them. 0: none */
    bool cancel_on_error; /* the first error of a task cancels the others */
} filch_scope_options;

/* The fields are the library's. */
typedef struct filch_scope {
    filch_pool *pool;
    filch_atomic_u32 lock;
    filch_atomic_u32 mark;       /* 0, or why it is cancelled: an errno */
    filch_atomic_u32 task_count; /* that have not ended, plus 1 until it is being closed */
    unsigned task_limit;
    bool cancel_on_error, has_deadline;
    unsigned generation; /* of the pool: in the child of a fork() it is another */

    /* Under the lock. */
    int error;                    /* the first of a task */
    bool is_done;                 /* all tasks have ended */
    unsigned running_count;       /* tasks, where there is a limit */
    struct filch_strand *strands; /* that have waited in it */
    filch_list spawners;          /* who wait for the limit */
    void *closer;                 /* who waits for the end of all */
    uint64_t timer[8];            /* its deadline */
} filch_scope;

/*
 * Open a scope. The tasks run in `pool`, or with NULL in that of the handle `f`, which is NULL outside of tasks. `options` may be NULL.
 *
 * Returns 0, or -EINVAL: neither a pool nor a handle, or the options are not those of this library; -EOWNERDEAD: the caller is a task of the pool that called fork(), and
 * this is the child. Then there is nothing to close.
 */
FILCH_API int filch_scope_open(filch_frame *f, filch_scope *scope, filch_pool *pool,
                               const filch_scope_options *options);

/*
 * Let fn(f, arg) run some time as a task of the scope. Returns 0, or: -ENOMEM; -EOWNERDEAD; -ECANCELED the scope is cancelled, or the caller was while it
 * waited for the scope's limit. On an error the task does not run.
 *
 * A task needs a stack when it begins. If all there are belong to tasks that wait, and there is no memory for another, it does not run, and counts as one that
 * has returned -ENOMEM; those that wait go on as ever. So tasks that wait for each other belong into a scope that is opened with cancel_on_error.
 */
FILCH_API int filch_scope_spawn(filch_frame *f, filch_scope *scope, filch_task_fn *fn, void *arg);

/* The same with a copy of the `bytes` at `arg`, aligned as by malloc, freed after the task. */
FILCH_API int filch_scope_spawn_copy(filch_frame *f, filch_scope *scope, filch_task_fn *fn,
                                     const void *arg, size_t bytes);

/*
 * Wait until all tasks have ended. The scope is gone then. Returns the first error of a task (-ECANCELED, once the scope is cancelled, is none); else -ETIMEDOUT if the deadline has cancelled it, -ECANCELED if
 * somebody else did; else 0. If the caller itself is cancelled while it waits here, it cancels the scope, and goes on waiting. If nobody can run what the caller has forked (-ENOMEM, filch/wait.h), it cancels the scope, too, and
 * that is the error unless a task had one. -EDEADLK: a task of this very scope, which would wait for its own end, has called it, and nothing was done.
 */
FILCH_API int filch_scope_close(filch_frame *f, filch_scope *scope);

/* Cancel all tasks of the scope. From any thread, as long as the scope is open; any number of times. */
FILCH_API void filch_scope_cancel(filch_scope *scope);

/* Is the task that has this handle cancelled? For those that compute and want to stop early. It also looks whether deadlines have passed, since with all workers computing nobody else does. It lets no other
 * task run: where another is to cancel this one, call filch_yield now and then, or a pool of one worker never gets there. */
FILCH_API bool filch_is_cancelled(filch_frame *f);

/* Between these two, waits do not return -ECANCELED. They nest: filch_unshield gets what filch_shield has returned. What was forked before filch_shield is to be joined before it, or after
 * filch_unshield: of what is joined in between, some would be shielded, too. */
FILCH_API filch_frame *filch_shield(filch_frame *f);
FILCH_API void filch_unshield(filch_frame *f, filch_frame *shield);

#ifdef __cplusplus
}
#endif

#endif
