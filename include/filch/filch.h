/* SPDX-License-Identifier: MIT */
/*
 * filch: a work-stealing runtime.
 *
 *     #include <filch/filch.h>
 *     #include <stdio.h>
 *
 *     FILCH_TASK(long, fib, (long, n))
 *     {
 *         if (n < 2)
 *             return n;
 *         FILCH_FORK(left, fib, n - 1);
 *         long right = FILCH_CALL(fib, n - 2);
 *         return FILCH_JOIN(left) + right;
 *     }
 *
 *     int main(void)
 *     {
 *         filch_pool *pool;
 *         if (filch_pool_create(&pool, NULL))
 *             return 1;
 *         printf("%ld\n", FILCH_RUN(pool, fib, 40));
 *         return filch_pool_destroy(pool);
 *     }
 *
 * Headers
 *
 *     task.h       FILCH_TASK, FILCH_FORK, FILCH_JOIN, FILCH_RUN; the same without macros
 *     pool.h       create a pool, run and submit tasks, wait, destroy
 *     loop.h       filch_for, filch_reduce, filch_invoke on top of fork and join
 *     sort.h       qsort_r in parallel
 *
 *     scope.h      a group of tasks with one end, one deadline and one cancellation
 *     future.h     a value, or an error, that a task or a thread provides later
 *     channel.h    queues between tasks; select, which waits for the first of several events
 *     pipeline.h   items that pass through stages, several at once
 *     sync.h       mutex, rwlock, cond, sem, event, barrier and once for tasks
 *     time.h       the clock, deadlines, sleep, yield, periods
 *     local.h      values that a task passes to all that it forks or spawns
 *
 *     io.h         read, accept, open ... that suspend the task and not the thread
 *     stream.h     connections or messages, requested once and delivered many times
 *     blocking.h   calls that can only block, on threads of their own
 *
 *     trace.h      counters, and a list of all that waits
 *     deque.h      the work-stealing deques, for programs without a pool; include it by itself
 *     strand.h     the stack of tasks, and the inlined fast path of fork and join
 *     error.h      filch_strerror
 *     version.h    FILCH_VERSION, filch_version
 *
 * Names
 *
 *     filch_<noun>_<verb>   a function; after `f` comes the object: filch_mutex_lock(f, &mutex)
 *     FILCH_UPPER           a macro, a constant or an enumerator
 *     filch_frame *f        the frame: the place of the calling task on its strand. It is the first
 *                           parameter of functions that fork, join or wait; those of a pool need
 *                           none. In a FILCH_TASK it is FILCH_HERE; other tasks receive it as a
 *                           parameter. A plain thread cannot fork. It passes NULL to functions
 *                           that wait, and to loops and sorts, which then run serially
 *     ..._until             waits no longer than an absolute deadline, as from filch_after_ms
 *     ..._try_..., ..._try  never waits: returns false or -EAGAIN instead
 *     ..._all               transfers all bytes, with as many system calls as that takes
 *     ..._init, ..._fini    an object in memory of the caller. An object without _fini needs none
 *     ..._create, _destroy  an object that the library allocates
 *     ..._ns, ..._bytes     a unit; times are in nanoseconds
 *     int                   0, or an index or count, or -errno: filch_strerror tells what it
 *                           means. errno is not used
 *     size                  first member of a struct that may grow: set it to sizeof that struct.
 *                           Zero means the default in all other members
 *
 * Calls that wait
 *
 * These rules hold for every function that may wait and takes an `f`.
 *
 * While a task waits, its worker runs other tasks. Thieves may steal the tasks that it has forked.
 * A plain thread passes NULL for `f` and is blocked. Tasks of any pools and plain threads may wait
 * for each other in every combination.
 *
 * A call that need not wait succeeds, even in a cancelled task and after the deadline. Exceptions:
 * filch_yield, filch_blocking, sleeps and periods always check whether the task is cancelled. A
 * call that has to wait may return one of these errors:
 *
 *     -ECANCELED   the scope of the task was cancelled (filch/scope.h)
 *     -ETIMEDOUT   the deadline has passed; only calls that end in _until, or take a deadline
 *     -ENOMEM      there is no memory for a stack on which the forks of this task could run. All
 *                  other tasks wait, too, and one of these forks might have to end this wait. The
 *                  forks are not lost: their join runs them. Rare; sleeps, filch_blocking and
 *                  shielded waits (filch_shield) never return it
 *
 * After an error the caller holds nothing, and nothing is lost: a unit, an entry or a lock that was
 * meant for this caller goes to the next waiter. Only filch_cond_wait always returns with its mutex
 * held.
 *
 * A lock may be held over a join, over any wait and over the end of a scope, with any number of
 * workers. No other task ever runs on the stack of a task that waits. The task holds the lock, not
 * its thread.
 *
 * After a wait or a join a task may go on in another thread. Do not keep the address of a
 * thread-local variable, or the value of errno, over one.
 *
 * In C++ a task may wait inside a catch, and in a destructor that an exception runs. It keeps its
 * exceptions; a task that runs meanwhile does not see them. filch/task.h says what happens to an
 * exception that leaves a task.
 *
 * Tasks wait for each other with these calls, not by spinning. A task that spins keeps its worker,
 * and the task that it spins for may need that worker.
 *
 * Freeing an object: a call stops touching its object before others can see its effect. So a task
 * may free a mutex that it has locked and unlocked, a semaphore whose last unit it has acquired, or
 * an event that it has seen set. Two conditions: no call on the object follows, and all earlier
 * calls have returned. The call that let this task go on (the unlock, the release, the set) need
 * not have returned. A barrier is the exception: its memory stays until all calls have returned.
 */
#ifndef FILCH_FILCH_H
#define FILCH_FILCH_H

#include <filch/blocking.h>
#include <filch/channel.h>
#include <filch/error.h>
#include <filch/future.h>
#include <filch/io.h>
#include <filch/local.h>
#include <filch/loop.h>
#include <filch/pipeline.h>
#include <filch/pool.h>
#include <filch/scope.h>
#include <filch/sort.h>
#include <filch/strand.h>
#include <filch/stream.h>
#include <filch/sync.h>
#include <filch/task.h>
#include <filch/time.h>
#include <filch/trace.h>
#include <filch/version.h>

#endif
