/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals for tasks: waiting on them costs no thread.
 *
 *     static filch_mutex mutex;                       all zero is ready to use
 *     int err = filch_mutex_lock(f, &mutex);          the task waits; its worker does other work
 *     if (err == 0) { ...; filch_mutex_unlock(&mutex); }
 *
 * Every call that may wait takes the handle `f` (FILCH_HERE in a task): what the task has forked can then be stolen while it waits. Between
 * tasks of any pools and plain threads everything works as among tasks: a plain thread passes NULL, and is blocked.
 *
 * Calls that may wait return 0 or -errno: -ECANCELED when the task's scope was cancelled (filch/scope.h), and those that end in _until -ETIMEDOUT when the
 * deadline has passed, which is an absolute time as from filch_after_ns. -ENOMEM, rarely: there is no memory for a stack to run what the task has forked, all other tasks wait, too, and it might be one
 * of its own forks that has to end this wait; a join runs them. It is not for sleep, nor for what is shielded. After an error nothing is held, and nothing is lost: what was meant for one that
 * has given up goes to the next. A call that need not wait succeeds, also in a task that is cancelled and after the deadline.
 *
 * A lock may be held over a join, a wait or the end of a scope, with any number of workers: nothing foreign ever runs on a stack that waits. It is held by a task, and
 * not by its thread. A library that is built with FILCH_DEBUG (a Debug build) names on stderr the tasks that wait for each other's mutexes in a circle, when the
 * last of them begins to.
 *
 * All of them are a few words, in anybody's memory; there is nothing to undo, and no call allocates. One that has returned has let go of the object before others
 * could know: who has locked and unlocked a mutex, or has got the last unit or seen the event, may free it if no other call on it is to come or has not
 * returned but those that let it go on.
 *
 *     filch_rwlock_read(f, &lock); ...; filch_rwlock_unlock(&lock);          many readers, or one who
 *     filch_rwlock_write(f, &lock); ...; filch_rwlock_unlock(&lock);         writes
 *
 *     while (!err && queue_is_empty())                                       with the mutex held; one who is
 *         err = filch_cond_wait(f, &not_empty, &mutex);                      cancelled does not wait again
 *
 *     filch_sem_init(&slots, 4);                                             four at a time
 *     filch_sem_acquire(f, &slots); ...; filch_sem_release(&slots, 1);
 *
 *     filch_event_set(&started);                                             all who wait for it go on
 *     filch_event_wait(f, &started);
 *
 *     filch_barrier_init(&step, 8);                                          eight go on together
 *     if (filch_barrier_wait(f, &step) == 1) { ... one of them ... }
 *
 *     static filch_once once;                                                the first who comes calls it,
 *     int err = filch_once_call(f, &once, open_log, NULL);                   the others wait for that
 */
#ifndef FILCH_SYNC_H
#define FILCH_SYNC_H

#include <filch/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- mutex ------------------------------------------------------------------------------------- */

/* Fields of all that follows are the library's; all zero is the initial state, unless there is a function for it. src/wait/sync has the words. */
typedef struct filch_list {
    void *first, *last;
} filch_list;

typedef struct filch_mutex {
    filch_atomic_u32 state, lock;
    filch_list waiters;
    FILCH_ATOMIC(void *) holder; /* builds with FILCH_DEBUG: the strand that has it */
} filch_mutex;

/* Who locks may overtake those who wait, but none of them again and again. Only who has locked it unlocks it: a task and what runs on its stack, or a thread. */
FILCH_API int filch_mutex_lock(filch_frame *f, filch_mutex *mutex);
FILCH_API int filch_mutex_lock_until(filch_frame *f, filch_mutex *mutex, uint64_t deadline_ns);
FILCH_API bool filch_mutex_try_lock(filch_mutex *mutex);
FILCH_API void filch_mutex_unlock(filch_mutex *mutex);

/* ---- reader-writer lock ------------------------------------------------------------------------ */

/* First come, first served, and readers that stand next to each other together: neither side starves. So who reads must not read once more before it has
 * unlocked: a writer may stand between. */
typedef struct filch_rwlock {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_rwlock;

FILCH_API int filch_rwlock_read(filch_frame *f, filch_rwlock *rwlock);
FILCH_API int filch_rwlock_read_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns);
FILCH_API int filch_rwlock_write(filch_frame *f, filch_rwlock *rwlock);
FILCH_API int filch_rwlock_write_until(filch_frame *f, filch_rwlock *rwlock, uint64_t deadline_ns);
FILCH_API void filch_rwlock_unlock(filch_rwlock *rwlock);

/* ---- condition --------------------------------------------------------------------------------- */

typedef struct filch_cond {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_cond;

/* Give the mutex away, wait for a signal, take the mutex again: it is held on return, whatever that is. Nobody goes on without a signal; but what it was about may
 * have changed again before the mutex is held. */
FILCH_API int filch_cond_wait(filch_frame *f, filch_cond *cond, filch_mutex *mutex);
FILCH_API int filch_cond_wait_until(filch_frame *f, filch_cond *cond, filch_mutex *mutex,
                                    uint64_t deadline_ns);

/* One, or all, of those who wait go on, in their order. Whoever has changed what they wait for with the mutex held may call it with or without. */
FILCH_API void filch_cond_signal(filch_cond *cond);
FILCH_API void filch_cond_broadcast(filch_cond *cond);

/* ---- semaphore --------------------------------------------------------------------------------- */

/* Units go to those who wait in their order; nobody overtakes them. No more than FILCH_SEM_MAX are counted. */
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

/* ---- event ------------------------------------------------------------------------------------- */

/* Something that happens once, until it is reset. */
typedef struct filch_event {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_event;

FILCH_API int filch_event_wait(filch_frame *f, filch_event *event);
FILCH_API int filch_event_wait_until(filch_frame *f, filch_event *event, uint64_t deadline_ns);
FILCH_API void filch_event_set(filch_event *event);
FILCH_API void filch_event_reset(filch_event *event);
FILCH_API bool filch_event_is_set(filch_event *event);

/* ---- barrier ----------------------------------------------------------------------------------- */

typedef struct filch_barrier {
    filch_atomic_u32 lock;
    uint32_t count, waiting;
    filch_list waiters;
} filch_barrier;

/* For `count` who come; any number of rounds. Its memory has to stay until all calls have returned. */
FILCH_API void filch_barrier_init(filch_barrier *barrier, uint32_t count);

/* 1 for the last who comes, 0 for the others; or -ECANCELED: then the caller counts as not having come, and the others go on waiting. */
FILCH_API int filch_barrier_wait(filch_frame *f, filch_barrier *barrier);

/* ---- once -------------------------------------------------------------------------------------- */

typedef struct filch_once {
    filch_atomic_u32 state, lock;
    filch_list waiters;
} filch_once;

/* The first who comes calls fn(f, arg), which may wait; the others wait until that has returned 0. After an error, which only the one who called
 * gets, the next one calls. 0, or the error of the caller's own call, or -ECANCELED. */
FILCH_API int filch_once_call(filch_frame *f, filch_once *once,
                              int (*fn)(filch_frame *f, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif
