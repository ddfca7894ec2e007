/* SPDX-License-Identifier: MIT */
/*
 * Counters of what a pool has done, and a list of all strands with what each waits for.
 *
 *     filch_counters counters = {.size = sizeof counters};
 *     if (filch_pool_counters(pool, &counters) == 0)
 *         printf("%lu tasks stolen\n", (unsigned long)counters.stolen);
 *     filch_pool_dump(pool, stderr);
 *
 * The counters are always on. Any thread may read them at any time. Each worker counts for itself,
 * and a reading is not a snapshot: the workers go on meanwhile. Forks that were not stolen are not
 * counted: with its join, such a fork costs a few instructions, and a counter would double that.
 */
#ifndef FILCH_TRACE_H
#define FILCH_TRACE_H

#include <filch/pool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FILCH_COUNTERS(X)                                                                          \
    X(injected)       /* tasks from outside the pool that this worker ran */                       \
    X(stolen)         /* tasks that it took from other workers, forked or spawned */               \
    X(lost)           /* attempts to steal that another thief won */                               \
    X(empty)          /* attempts that found nothing public */                                     \
    X(published)      /* times it made tasks public, for thieves to steal */                       \
    X(taken_back)     /* times it made them private again, unstolen */                             \
    X(strands_stolen) /* ready strands that it took over from another worker */                    \
    X(suspensions)    /* times a strand was suspended to wait */                                   \
    X(sleeps)         /* times it went to sleep in the kernel */                                   \
    X(wakes)          /* times it woke another worker */                                           \
    X(spawned)        /* tasks that it ran, spawned into a scope by a task of this pool */

/*
 * Each task that runs on a strand of its own counts once as `injected`, as `spawned`, or as a
 * forked task that was stolen. A spawned task also counts as `stolen` each time that a worker takes
 * it out of another worker's queue. A worker takes up to half of such a queue at once. So a third
 * worker may take some of these tasks again. `strands_stolen` counts likewise.
 */

/* The caller sets `size` to sizeof(filch_counters). A newer library fills in what fits. */
typedef struct filch_counters {
    size_t size;
#define FILCH_COUNTER_FIELD(name) uint64_t name;
    FILCH_COUNTERS(FILCH_COUNTER_FIELD)
#undef FILCH_COUNTER_FIELD
} filch_counters;

/* Read the counters of one worker, or their sum over all workers. A counter that this library does
 * not have is 0. Returns 0, or -EINVAL: there is no such pool or worker, or `size` was not set. */
FILCH_API int filch_worker_counters(const filch_pool *pool, unsigned worker_index,
                                    filch_counters *counters);

FILCH_API int filch_pool_counters(const filch_pool *pool, filch_counters *counters);

/*
 * Print all strands of the pool. From any thread; the pool goes on meanwhile. In gdb,
 * scripts/gdb/filch.py shows the tasks, what they wait for and the holders of mutexes, too, and
 * their backtraces.
 *
 *     pool 'filch': 2 workers, 0 asleep; 1 task from outside, 0 waiting to run
 *       strand 1 [left] waits for a mutex at 0x5617f0a8e060, held by strand 2 [right]
 *       strand 2 [right] waits for a mutex at 0x5617f0a8e040, held by strand 1 [left]
 *       strand 0 [serve] waits for recv of descriptor 7
 *
 * In brackets is the function of the task, by the symbol table of the program. For a stripped
 * program it is "<file>+0x<address>": `addr2line -f -e <file>` prints its name, if <file> is a copy
 * with debug information. `c++filt` reads the names of C++ templates and lambdas; other names are
 * readable as they are. A strand shows the task that it began with. Forks that were not stolen
 * are part of the task that joins them.
 *
 * Plain threads that wait are not listed. The dump names the holder of a mutex only if that is a
 * task, and did not use filch_mutex_try_lock.
 *
 * Returns 0, -EINVAL: no pool or no file, or -EIO.
 */
FILCH_API int filch_pool_dump(filch_pool *pool, FILE *out);

/*
 * When the process gets this signal, dump all its pools to the standard error, between two lines
 * that begin with "filch: ". The environment variable FILCH_DUMP_SIGNAL does the same for a program
 * that does not call this. Its value is a number, or HUP, QUIT, USR1, USR2, PWR or WINCH, also with
 * "SIG" before. It is read when the first pool is created. Another value is ignored with a line on
 * the standard error.
 *
 * The keeper prints (filch/pool.h); the handler only wakes it. This call starts the keeper, if it
 * does not run. So the dump also comes if all workers block, and if all other threads block the
 * signal. The child of a fork() starts its keeper when it creates a pool, or first uses one of its
 * parent; before that it dumps nothing. As after any signal, system calls that cannot be restarted
 * return EINTR: signal(7).
 *
 * The keeper and the handler stay until the process ends. So dlclose does not unload libfilch.so.
 * Code that is linked with libfilch.a must call this with 0 before dlclose unloads it.
 *
 * With 0 the previous handler is restored, and the keeper ends unless a pool needs it. From then on
 * no dump begins, also if the signal came while the last dump was being written. If the reader of
 * the standard error has stopped reading, the end of the keeper takes up to a second.
 *
 * Returns 0, or an error, and then the signal that was chosen before stays:
 *   -EINVAL   no such signal, or one of SIGSEGV, SIGBUS, SIGFPE, SIGILL, and SIGURG (filch/io.h)
 *   -EAGAIN   the keeper cannot be started
 *   -ENOMEM
 */
FILCH_API int filch_dump_on_signal(int number);

#ifdef __cplusplus
}
#endif

#endif
