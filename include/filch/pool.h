/* SPDX-License-Identifier: MIT */
/*
 * A pool: workers, and the calls that give them work from outside.
 *
 *     static void hello(filch_frame *f, void *name)
 *     {
 *         printf("hello %s\n", (const char *)name);
 *     }
 *
 *     int main(void)
 *     {
 *         filch_pool *pool;
 *         filch_options options = {.size = sizeof options, .workers = 4};
 *         if (filch_pool_create(&pool, &options))       // NULL for the options: defaults
 *             return 1;
 *         filch_run(pool, hello, "first");              // runs it, and waits
 *         filch_submit(pool, hello, "second");          // does not wait
 *         filch_pool_wait(pool);                        // until nothing submitted is left
 *         return filch_pool_destroy(pool);              // waits, then stops all threads
 *     }
 *
 * Any number of pools may exist. They share no threads and no queues. Any thread may use any pool,
 * also a task of another pool.
 *
 * A pool has one thread from the beginning, and starts others when there is work for them. They
 * sleep in the kernel while there is none. A thread that calls filch_run takes the seat of an idle
 * worker, if there is one, and does the work itself. So a pool is never busier than its number of
 * workers.
 *
 * More workers than CPUs. A pool wakes only as many of its workers as there are CPUs at hand: those
 * of the affinity mask, or the cgroup quota if that is less. The mask is read again about once a
 * second; the quota, too, if there is one when the pool is created. The other workers sleep, until
 * one of those that are awake
 *
 *   - blocks in the kernel. Another worker is woken after some milliseconds;
 *   - computes for 20 ms without a wait, or a join that suspends it. Perhaps it waits in a loop for
 *     another task. One more worker is woken after 20 ms, the next after 40 ms more, and so on.
 *
 * Callers of filch_run count as awake workers, but never keep all workers of the pool asleep. The
 * limit is one pool's: two pools may have twice as many workers awake. While as many are awake as
 * may be, the keeper reads the files /proc/self/task/<id>/stat of threads that use little CPU time.
 *
 * `awake` in the options, or FILCH_AWAKE, replaces the number of CPUs. With awake = workers, all
 * may be awake at any time, and the keeper does not look.
 *
 * If the process can start no further thread, there is less parallelism, but no task is lost: the
 * first thread alone can run all tasks. While there is work for another thread, its start is tried
 * again: after a millisecond first, then less often, up to once a second. As long as all attempts
 * fail, a task that blocks its thread in the kernel may block the pool.
 *
 * For these attempts the process has one more thread, the keeper ("filch/keeper"), as long as it
 * has a pool with more than one worker. The keeper sleeps nearly always. It blocks all signals but
 * that of filch_dump_on_signal (filch/trace.h).
 *
 * Threads of a pool have the blocked signals, the scheduling class and the nice value of the thread
 * that created the pool, as far as the process has the right to set them.
 *
 * A task ends by returning, with all its forks joined. It does not end its thread (pthread_exit).
 * If a task calls fork(), the child ends by _exit or exec. There is one exception: if the thread
 * that called filch_run also runs that task, the child may return from the task to filch_run. When
 * the library finds a violation, it prints the task's name (without symbols: its place, for
 * addr2line), and aborts.
 *
 * Missing joins are found in programs that are compiled without optimisation, or with -DFILCH_DEBUG
 * (filch/task.h). Other programs are sure to find one only if all of these hold:
 *
 *   - a worker began the task (by filch_run or filch_submit, in a scope, or by a theft): it was not
 *     called, nor joined by the task that forked it;
 *   - the task has joined none of its forks;
 *   - the pool has the default deque.
 *
 * Otherwise forks may never run, the result may be wrong, or the program may hang.
 */
#ifndef FILCH_POOL_H
#define FILCH_POOL_H

#include <filch/impl/exceptions.h>
#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct filch_pool filch_pool;

/* A task without macros; `f` is its frame. */
typedef void filch_fn(filch_frame *f, void *arg);

/* Where tasks are queued until they run. The first kind is the fastest by far. The others are there
 * for comparison; each is described in its header in filch/deque/. Programs compute the same
 * results with all of them. */
typedef enum filch_deque_kind {
    FILCH_DEQUE_SPLIT,     /* a split stack of direct tasks: filch/strand.h */
    FILCH_DEQUE_LOCKED,    /* a deque with a lock */
    FILCH_DEQUE_GLOBAL,    /* one queue for all workers, with a lock */
    FILCH_DEQUE_ABP,       /* Arora, Blumofe and Plaxton: bounded */
    FILCH_DEQUE_CHASELEV,  /* Chase and Lev: grows */
    FILCH_DEQUE_BWOS_LIFO, /* block-based, bounded: thieves and owner use different blocks */
    FILCH_DEQUE_BWOS_FIFO, /* the same, oldest first */
} filch_deque_kind;

/* Which victim a worker without work tries first. */
typedef enum filch_victim_policy {
    FILCH_VICTIM_LAST,   /* the victim of the last steal, or at random if there was none */
    FILCH_VICTIM_RANDOM, /* at random, as in the proofs of the time bound */
    FILCH_VICTIM_FIRST,  /* the next worker by number */
} filch_victim_policy;

/*
 * How long a worker without work searches (spins) before it sleeps in the kernel. A worker that
 * still spins takes new work at once; a sleeper has to be woken first. While more workers are awake
 * than there are CPUs, none of them spins.
 */
typedef enum filch_spin_policy {
    /* 50 us. Each spin that finds nothing halves the next one, down to 3 us. It is 50 us again when
     * a spin finds work, or when a sleep was so short that a spin would have found work. */
    FILCH_SPIN_BALANCED,
    FILCH_SPIN_LATENCY, /* 1 ms, always */
    FILCH_SPIN_POWER,   /* not at all */
} filch_spin_policy;

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_options {
    size_t size;        /* sizeof(filch_options); if it is not set, the pool is not created */
    unsigned workers;   /* 0: one for each CPU this process may use; more than 1000 become 1000 */
    size_t stack_bytes; /* of each strand, >= 16 KiB; 0: 8 MiB of addresses, touched as needed */
    filch_deque_kind deque;
    filch_victim_policy victim;
    filch_spin_policy spin;
    bool pin;             /* keep each thread on a CPU of its own, physical cores first. Workers
                             beyond the number of CPUs are not pinned */
    bool report_overflow; /* print the strand whose stack overflowed: installs a SIGSEGV handler */
    const char *name;     /* of the threads, with their number; NULL: "filch" */

    /* Called in each thread of the pool: on_start before the thread first works, on_stop when it
     * ends. A thread that never works calls neither. on_start may run tasks of the pool: while it
     * waits for them in filch_run, its worker runs others, too. While it waits for anything else,
     * its worker does nothing. on_stop must not use the pool. */
    void (*on_start)(void *context, unsigned worker_index);
    void (*on_stop)(void *context, unsigned worker_index);
    void *hook_context;

    /* Entries in each deque; not for the split stack. A limit, or for deques that grow the initial
     * size. 0: the default of the kind. */
    size_t deque_capacity;
    size_t deque_block; /* entries in a block of the two kinds that have blocks; 0: 16 */

    /* How many workers may be awake at a time; 0: one for each CPU at hand. See "More workers than
     * CPUs" above. */
    unsigned awake;
} filch_options;

/*
 * Create a pool. `options` may be NULL.
 *
 * Returns 0, or
 *   -EINVAL   a value in the options has no meaning
 *   -E2BIG    the options come from a newer header and use members that this library does not know
 *   -ENOEXEC  the caller was compiled against another layout of strands
 *   -ENOMEM
 *   -EAGAIN   the first thread of the pool cannot be started, or the keeper. Other errors of
 *             pthread_create are possible, too
 *
 * Environment variables replace defaults:
 *   FILCH_WORKERS  the number of workers
 *   FILCH_AWAKE    how many workers may be awake at a time
 *   FILCH_DEQUE    the deque: "chaselev", "abp:256" (with its capacity) or "bwos_lifo:1024:8" (and
 *                  its block). An unknown deque is ignored; an impossible capacity is -EINVAL
 *   FILCH_VERBOSE  if set, and not to 0: print to standard error how these were chosen
 * FILCH_IO (filch/io.h) and FILCH_DUMP_SIGNAL (filch/trace.h) also concern pools.
 */
FILCH_API int filch_pool_create_abi(filch_pool **pool, const filch_options *options, unsigned abi);
FILCH_INLINE int filch_pool_create(filch_pool **pool, const filch_options *options)
{
    return filch_pool_create_abi(pool, options, FILCH_ABI);
}

/* How many workers the pool may have at once. */
FILCH_API unsigned filch_pool_worker_count(const filch_pool *pool);

/*
 * Run fn(f, arg), and wait until it and all that it forked are complete. From any thread, also
 * inside a task of this or another pool.
 *
 * A task that calls it is suspended like in other waits. But the call takes no frame, so
 * perhaps no thief can steal the tasks that it has forked before.
 *
 * Returns 0, or
 *   -EINVAL      no pool, or no function
 *   -EOWNERDEAD  the caller is a task of this pool that has called fork(), and this is the child
 *   -EAGAIN      in the child of a fork(): the first thread of the pool cannot be started, or the
 *                keeper. Other errors of pthread_create are possible, too
 *   -ENOMEM      in on_start, before there is a stack to run the task on
 */
FILCH_API int filch_run(filch_pool *pool, filch_fn *fn, void *arg);

/*
 * Let the pool run fn(f, arg) some time; does not wait. From any thread.
 *
 * Without memory for a stack, the task waits until another task has ended. Tasks of scopes do not
 * always wait: see filch_scope_spawn.
 *
 * Returns 0, or -EINVAL, -EOWNERDEAD, -EAGAIN as above, -ENOMEM.
 */
FILCH_API int filch_submit(filch_pool *pool, filch_fn *fn, void *arg);

/* The same with a copy of the `bytes` at `arg`, aligned as by malloc, made now and freed after the
 * task. With 0 bytes the task gets `arg` itself; bytes without `arg` are -EINVAL. */
FILCH_API int filch_submit_copy(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes);

/*
 * Wait until no submitted task and no filch_run is left in the pool. Tasks of scopes are not waited
 * for: closing the scope does that. In a task of another pool, this blocks the worker, not only the
 * task.
 *
 * Returns 0, or -EINVAL: no pool; -EDEADLK: a task of this pool called it, and would wait for
 * itself. In the child of a fork() that has not used the pool, there is nothing to wait for.
 */
FILCH_API int filch_pool_wait(filch_pool *pool);

/*
 * Wait as above, then end all threads and free the pool. No other thread may use it any more. While
 * the threads end, the calling thread cannot be cancelled by pthread_cancel.
 *
 * Returns 0, or an error, and then the pool still exists:
 *   -EINVAL   no pool
 *   -EDEADLK  a task of the pool called it
 *   -EBUSY    a scope of the pool is open
 */
FILCH_API int filch_pool_destroy(filch_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
