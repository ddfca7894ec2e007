/* SPDX-License-Identifier: MIT */
/*
 * A future: a value, or an error, that a task or a thread provides later.
 *
 *     static int compute(filch_frame *f, void *input, void **value)
 *     {
 *         *value = result_of(f, input);
 *         return 0;
 *     }
 *
 *     int use(filch_frame *f, filch_scope *scope, struct input *input)
 *     {
 *         filch_future future = FILCH_FUTURE_INIT;     // on a stack, or in a struct
 *         void *value;
 *         int err = filch_future_spawn(f, scope, &future, compute, input);
 *         if (!err)
 *             err = filch_future_get(f, &future, &value); // waits
 *         return err;
 *     }
 *
 * A future is completed by
 *
 *   - filch_future_spawn: a task of a scope, when it returns;
 *   - filch_future_submit: a task of a pool, without a scope;
 *   - FILCH_FUTURE_SUBMIT: the same for a FILCH_TASK, with its own result type (filch/task.h);
 *   - filch_future_set: any task, thread or callback.
 *
 * It is completed once; a second completion is ignored. Any number of tasks and threads may wait
 * for it, any number of times. Its memory must stay until it is complete and no call waits for it
 * any more.
 *
 * Programs compiled without optimisation, or with -DFILCH_DEBUG, check the futures on the stack of
 * a task that returns. They stop if a spawned or submitted task has yet to complete one of them.
 *
 * The rules for all calls that wait are in filch/filch.h, "Calls that wait".
 */
#ifndef FILCH_FUTURE_H
#define FILCH_FUTURE_H

#include <filch/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The members belong to the library. */
typedef struct filch_future {
    filch_atomic_u32 lock, state;
    int err;
    void *value;
    filch_list waiters;
} filch_future;

/* clang-format off */
#define FILCH_FUTURE_INIT {{0}, {0}, 0, NULL, {NULL, NULL}}
/* clang-format on */
FILCH_API void filch_future_init(filch_future *future);

/* A task with a value. Returns 0 and sets *value, or returns -errno. */
typedef int filch_future_fn(filch_frame *f, void *arg, void **value);

/*
 * Let fn(f, arg, &value) run some time as a task of the scope, and complete `future` when it
 * returns.
 *
 * If the scope is cancelled before the task has begun, the future completes with -ECANCELED;
 * without memory for a stack (filch_scope_spawn), with -ENOMEM. The error of the task is the
 * future's and not the scope's.
 *
 * Returns 0, or an error as of filch_scope_spawn: then the future is not touched.
 */
FILCH_API int filch_future_spawn(filch_frame *f, filch_scope *scope, filch_future *future,
                                 filch_future_fn *fn, void *arg);

/*
 * Let the pool run fn(f, arg, &value), and complete `future` when it returns. From any thread;
 * needs no scope. FILCH_FUTURE_SUBMIT (filch/task.h) is the typed form.
 *
 * Returns 0, or an error as of filch_submit: then the task does not run, and the future is not
 * touched. If all stacks belong to tasks that wait, and there is no memory for another, the future
 * is completed with -ENOMEM.
 */
FILCH_API int filch_future_submit(filch_pool *pool, filch_future *future, filch_future_fn *fn,
                                  void *arg);

/* Complete the future, with a value and 0, or with -errno. From any thread; does not wait. Returns
 * false if it was complete before. */
FILCH_API bool filch_future_set(filch_future *future, void *value, int err);

/*
 * Wait until the future is complete. Sets *value, unless `value` is NULL, and returns the future's
 * error.
 *
 * If the caller's own wait fails first, returns -ECANCELED, -ETIMEDOUT or -ENOMEM, and *value is
 * not set. -EINVAL: no future.
 */
FILCH_API int filch_future_get(filch_frame *f, filch_future *future, void **value);
FILCH_API int filch_future_get_until(filch_frame *f, filch_future *future, void **value,
                                     uint64_t deadline_ns);

/* The same without waiting; -EAGAIN: the future is not complete. */
FILCH_API int filch_future_try_get(filch_future *future, void **value);

/* Wait until one of the futures is complete. Returns its index, or -ECANCELED, -ETIMEDOUT, -ENOMEM;
 * -EINVAL: there is none, there are more than 64, or one is NULL. */
FILCH_API int filch_future_wait_any(filch_frame *f, filch_future *const futures[], unsigned count,
                                    uint64_t deadline_ns);

/* ---- checked programs ------------------------------------------------------------------------ */

FILCH_API int filch_check_future_spawn(const char *file, int line, filch_frame *f,
                                       filch_scope *scope, filch_future *future,
                                       filch_future_fn *fn, void *arg);
FILCH_API int filch_check_future_submit(const char *file, int line, filch_pool *pool,
                                        filch_future *future, filch_future_fn *fn, void *arg);
#if FILCH_IMPL_PLACES
#define filch_future_spawn(...) FILCH_IMPL_PLACE(filch_check_future_spawn, __VA_ARGS__)
#define filch_future_submit(...) FILCH_IMPL_PLACE(filch_check_future_submit, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
