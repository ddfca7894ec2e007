/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals for tasks: a task that waits for one of them costs no thread.
 *
 *     static filch_mutex mutex;                       // all zero is ready to use
 *     static int balance;
 *
 *     int deposit(filch_frame *f, int amount)
 *     {
 *         int err = filch_mutex_lock(f, &mutex);      // the task waits; its worker does other work
 *         if (err)
 *             return err;
 *         balance += amount;
 *         filch_mutex_unlock(&mutex);
 *         return 0;
 *     }
 *
 * The rules for all calls that wait are in filch/filch.h, "Calls that wait": NULL for `f` on a
 * plain thread, -ECANCELED, -ETIMEDOUT, -ENOMEM, locks held over a join, and when an object may be
 * freed.
 *
 * Each object is a few words in memory of the caller. All zero is its initial state, unless it has
 * an init function. There is nothing to undo at its end, and no call allocates.
 *
 * A library that is built with FILCH_DEBUG (a Debug build) detects tasks that wait for each other's
 * mutexes in a circle. It names them on stderr when the last of them begins to wait.
 *
 * Programs compiled without optimisation, or with -DFILCH_DEBUG, stop at these calls, and print the
 * file and line:
 *   - an unlock, or a filch_cond_wait, without the lock;
 *   - an unlock of a mutex that another task holds, unless it was locked by filch_mutex_try_lock;
 *   - a filch_barrier_wait on a barrier for 0 callers.
 *
 *     filch_rwlock_read_lock(f, &lock);                    // many readers ...
 *     filch_rwlock_unlock(&lock);
 *     filch_rwlock_write_lock(f, &lock);                   // ... or one writer
 *     filch_rwlock_unlock(&lock);
 *
 *     while (!err && queue_is_empty())                // with the mutex held; a cancelled task does
 *         err = filch_cond_wait(f, &not_empty, &mutex); // not wait again
 *
 *     filch_sem_init(&slots, 4);                      // four at a time
 *     filch_sem_acquire(f, &slots);
 *     filch_sem_release(&slots, 1);
 *
 *     filch_event_set(&started);                      // all that wait for it go on
 *     filch_event_wait(f, &started);
 *
 *     filch_barrier_init(&step, 8);                   // eight tasks go on together
 *     if (filch_barrier_wait(f, &step) == 1)
 *         begin_step();                               // in one of them
 *
 *     static filch_once once;                         // the first caller runs open_log,
 *     err = filch_once_call(f, &once, open_log, NULL); // the others wait for that
 */
#ifndef FILCH_SYNC_H
#define FILCH_SYNC_H

#include <filch/impl/check.h>
#include <filch/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mutex ----------------------------------------------------------------------------------- */

/* A list of waiters. The members of all structs below belong to the library; src/wait/sync explains
 * the words. */
typedef struct filch_list {
    void *first, *last;
} filch_list;

typedef struct filch_mutex {
    filch_atomic_u32 state, lock;
    filch_list waiters;
    FILCH_ATOMIC(void *) holder; /* the strand that holds the mutex, or NULL */
} filch_mutex;

/* A task that locks may overtake tasks that wait, but none of them again and again. Only the holder
 * may unlock: the task that has locked, or code that runs on its stack; or the same plain
 * thread. */
FILCH_API int filch_mutex_lock(filch_frame *f, filch_mutex *mutex);
FILCH_API int filch_mutex_lock_until(filch_frame *f, filch_mutex *mutex, uint64_t deadline_ns);
FILCH_API bool filch_mutex_try_lock(filch_mutex *mutex);
FILCH_API void filch_mutex_unlock(filch_mutex *mutex);

/* ---- reader-writer lock ---------------------------------------------------------------------- */

/* First come, first served; readers next to each other in the queue get the lock together. So
 * neither side starves. A reader must not lock again before it has unlocked: a writer may wait in
 * between. */
typedef struct filch_rwlock {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_rwlock;

FILCH_API int filch_rwlock_read_lock(filch_frame *f, filch_rwlock *rwlock);
FILCH_API int filch_rwlock_read_lock_until(filch_frame *f, filch_rwlock *rwlock,
                                           uint64_t deadline_ns);
FILCH_API int filch_rwlock_write_lock(filch_frame *f, filch_rwlock *rwlock);
FILCH_API int filch_rwlock_write_lock_until(filch_frame *f, filch_rwlock *rwlock,
                                            uint64_t deadline_ns);
FILCH_API bool filch_rwlock_try_read_lock(filch_rwlock *rwlock);
FILCH_API bool filch_rwlock_try_write_lock(filch_rwlock *rwlock);
FILCH_API void filch_rwlock_unlock(filch_rwlock *rwlock);

/* ---- condition ------------------------------------------------------------------------------- */

typedef struct filch_cond {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_cond;

/* Unlock the mutex, wait for a signal, lock the mutex again. The mutex is held on return, also
 * after an error. No wait ends with 0 without a signal, but the condition may have changed again
 * before the mutex is held: check it in a loop. */
FILCH_API int filch_cond_wait(filch_frame *f, filch_cond *cond, filch_mutex *mutex);
FILCH_API int filch_cond_wait_until(filch_frame *f, filch_cond *cond, filch_mutex *mutex,
                                    uint64_t deadline_ns);

/* Let one waiter, or all of them, go on, in the order in which they came. Change the condition with
 * the mutex held; signal with or without it. */
FILCH_API void filch_cond_signal(filch_cond *cond);
FILCH_API void filch_cond_broadcast(filch_cond *cond);

/* ---- semaphore ------------------------------------------------------------------------------- */

/* Units go to waiters in the order in which they came; no caller overtakes them. The count stops at
 * FILCH_SEM_MAX: further units are dropped. */
typedef struct filch_sem {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_sem;

#define FILCH_SEM_MAX ((uint32_t)INT32_MAX)

FILCH_API void filch_sem_init(filch_sem *sem, uint32_t count);
FILCH_API int filch_sem_acquire(filch_frame *f, filch_sem *sem);
FILCH_API int filch_sem_acquire_until(filch_frame *f, filch_sem *sem, uint64_t deadline_ns);
FILCH_API bool filch_sem_try_acquire(filch_sem *sem);
FILCH_API void filch_sem_release(filch_sem *sem, uint32_t count);

/* ---- event ----------------------------------------------------------------------------------- */

/* Something that happens once: a set event stays set until it is reset. */
typedef struct filch_event {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_event;

FILCH_API int filch_event_wait(filch_frame *f, filch_event *event);
FILCH_API int filch_event_wait_until(filch_frame *f, filch_event *event, uint64_t deadline_ns);
FILCH_API void filch_event_set(filch_event *event);
FILCH_API void filch_event_reset(filch_event *event);
FILCH_API bool filch_event_is_set(filch_event *event);

/* ---- barrier --------------------------------------------------------------------------------- */

typedef struct filch_barrier {
    filch_atomic_u32 lock;
    uint32_t count, waiting;
    filch_list waiters;
} filch_barrier;

/* For `count` callers that arrive, in any number of rounds. The memory must stay until all calls
 * have returned. */
FILCH_API void filch_barrier_init(filch_barrier *barrier, uint32_t count);

/* Wait until `count` callers have arrived. Returns 1 to the last caller and 0 to the others. After
 * an error (-ECANCELED, -ENOMEM) the caller counts as not arrived, and the others go on waiting. */
FILCH_API int filch_barrier_wait(filch_frame *f, filch_barrier *barrier);

/* ---- once ------------------------------------------------------------------------------------ */

typedef struct filch_once {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_once;

/*
 * The first caller runs fn(f, arg), which may wait. The others wait until fn has returned 0. If fn
 * returns an error, only the caller that ran it gets that error, and the next caller runs fn.
 *
 * Returns 0, the error of the caller's own fn, or -ECANCELED or -ENOMEM.
 */
FILCH_API int filch_once_call(filch_frame *f, filch_once *once,
                              int (*fn)(filch_frame *f, void *arg), void *arg);

/* ---- checked programs ------------------------------------------------------------------------ */

FILCH_API void filch_check_mutex_unlock(const char *file, int line, filch_mutex *mutex);
FILCH_API void filch_check_rwlock_unlock(const char *file, int line, filch_rwlock *rwlock);
FILCH_API int filch_check_cond_wait(const char *file, int line, filch_frame *f, filch_cond *cond,
                                    filch_mutex *mutex);
FILCH_API int filch_check_cond_wait_until(const char *file, int line, filch_frame *f,
                                          filch_cond *cond, filch_mutex *mutex,
                                          uint64_t deadline_ns);
FILCH_API int filch_check_barrier_wait(const char *file, int line, filch_frame *f,
                                       filch_barrier *barrier);
#if FILCH_IMPL_PLACES
#define filch_mutex_unlock(...) FILCH_IMPL_PLACE(filch_check_mutex_unlock, __VA_ARGS__)
#define filch_rwlock_unlock(...) FILCH_IMPL_PLACE(filch_check_rwlock_unlock, __VA_ARGS__)
#define filch_cond_wait(...) FILCH_IMPL_PLACE(filch_check_cond_wait, __VA_ARGS__)
#define filch_cond_wait_until(...) FILCH_IMPL_PLACE(filch_check_cond_wait_until, __VA_ARGS__)
#define filch_barrier_wait(...) FILCH_IMPL_PLACE(filch_check_barrier_wait, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif

#endif
