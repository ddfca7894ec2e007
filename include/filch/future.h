/* SPDX-License-Identifier: MIT */
/*
 * Futures: a value, or an error, that comes later.
 *
 *     filch_future future = FILCH_FUTURE_INIT;                on anybody's stack, or in anybody's struct
 *     filch_future_spawn(f, &scope, &future, compute, &input);       a task of the scope will complete it; or
 *     filch_future_set(&future, value, 0);                    anybody does: a task, a thread, a callback
 *
 *     void *value;
 *     int err = filch_future_get(f, &future, &value);              waits; any number of waiters, any number of times
 *
 * A future is completed once; what comes later is ignored. Its memory has to stay until it is complete and nobody waits any more. The conventions of
 * filch/wait.h hold.
 */
#ifndef FILCH_FUTURE_H
#define FILCH_FUTURE_H

#include <filch/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* A task with a value: 0 and *value, or -errno. */
typedef int filch_future_fn(filch_frame *f, void *arg, void **value);

/*
 * Let fn(f, arg, &value) run some time as a task of the scope, and complete `future` at its end. If the scope is cancelled before the task has begun, the future is
 * complete with -ECANCELED. The future's error is not one of the scope. Returns 0, or an error as of filch_scope_spawn: then the future is not touched.
 */
FILCH_API int filch_future_spawn(filch_frame *f, filch_scope *scope, filch_future *future,
                                 filch_future_fn *fn, void *arg);

/*
 * Let the pool run fn(f, arg, &value), and complete `future` when it returns. From any thread; needs
 * no scope. FILCH_FUTURE_SUBMIT (filch/task.h) is the typed form.
 *
 * Returns 0, or an error as of filch_submit: then the task does not run, and the future is not
 * touched. If all stacks belong to tasks that wait, and there is no memory for another, the future
 * is completed with -ENOMEM.
 */
FILCH_API int filch_future_submit(filch_pool *pool, filch_future *future, filch_future_fn *fn,
                                  void *arg);

/* Complete it, with a value and 0, or with -errno. From any thread. False: it was complete. */
FILCH_API bool filch_future_set(filch_future *future, void *value, int err);

/* Wait until it is complete. Returns its error and, if `value` is not NULL, its value; or -ECANCELED, -ETIMEDOUT, -ENOMEM: the caller's wait has ended before (filch/wait.h). */
FILCH_API int filch_future_get(filch_frame *f, filch_future *future, void **value);
FILCH_API int filch_future_get_until(filch_frame *f, filch_future *future, void **value,
                                     uint64_t deadline_ns);

/* The same without waiting: -EAGAIN, it is not complete. */
FILCH_API int filch_future_try_get(filch_future *future, void **value);

/* Wait until one of them is complete. Returns its number, or -ECANCELED, -ETIMEDOUT, -ENOMEM; -EINVAL there is none, or more than 64. */
FILCH_API int filch_future_wait_any(filch_frame *f, filch_future *const futures[], unsigned count,
                                    uint64_t deadline_ns);

#ifdef __cplusplus
}
#endif

#endif
