/* SPDX-License-Identifier: MIT */
/*
 * A pool: workers, and the ways to give them work from outside.
 *
 *     filch_pool *pool;
 *     int err = filch_pool_create(&pool, NULL);                 defaults, or
 *     filch_options options = {.size = sizeof options, .workers = 4};
 *     int err = filch_pool_create(&pool, &options);
 *     ...
 *     err = filch_run(pool, fn, arg);       run fn(f, arg) and all it forks, and wait
 *     err = filch_submit(pool, fn, arg);    the same without waiting
 *     err = filch_pool_wait(pool);          until nothing submitted is left
 *     err = filch_pool_destroy(pool);       wait, then stop all threads
 *
 * There is nothing global: any number of pools may exist, and any thread may use any of them, also a
 * task of another pool. Threads are started when there is work for them, and sleep in the kernel while there
 * is none. A thread that calls filch_run takes the seat of an idle worker, if there is one, and does
 * the work itself; the pool is never busier than its number of workers.
 */
#ifndef FILCH_POOL_H
#define FILCH_POOL_H

#include <filch/strand.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct filch_pool filch_pool;

/* A task without macros. `f` is the handle of the strand it runs on. */
typedef void filch_fn(filch_frame *f, void *arg);

/* Where tasks wait until they run. The first is the fastest by far; the others are there to be compared with, each described in its header
 * in filch/deque/. Programs give the same answers with all of them. */
typedef enum filch_deque_kind {
    FILCH_DEQUE_SPLIT,     /* a split stack of direct tasks: filch/strand.h */
    FILCH_DEQUE_LOCKED,    /* a deque behind a lock */
    FILCH_DEQUE_GLOBAL,    /* one queue for all, behind a lock */
    FILCH_DEQUE_ABP,       /* Arora, Blumofe and Plaxton: bounded */
    FILCH_DEQUE_CHASELEV,  /* Chase and Lev: grows */
    FILCH_DEQUE_BWOS_LIFO, /* block-based, bounded: thieves and owner in different blocks */
    FILCH_DEQUE_BWOS_FIFO, /* the same, oldest first */
} filch_deque_kind;

/* Whom a worker without work asks first. */
typedef enum filch_victim_policy {
    FILCH_VICTIM_LAST,   /* the one that had work last time, then at random */
    FILCH_VICTIM_RANDOM, /* at random: the policy the time bound is proved for */
    FILCH_VICTIM_FIRST,  /* the next by number: the simplest */
} filch_victim_policy;

/* How long a worker without work keeps looking before it sleeps in the kernel. */
typedef enum filch_spin_policy {
    FILCH_SPIN_BALANCED, /* 50 us: work that follows closely finds it awake; less, down to 3, after waiting in vain */
    FILCH_SPIN_LATENCY, /* 1 ms */
    FILCH_SPIN_POWER,   /* not at all */
} filch_spin_policy;

/* Zero means the default, everywhere but in `size`. */
typedef struct filch_options {
    size_t size;        /* sizeof(filch_options); forgotten, it is 0 and the options are refused */
    unsigned workers;   /* 0: one for each CPU this process may use; more than 1000 become 1000 */
    size_t stack_bytes; /* of each strand; 0: 8 MiB of address space, touched as needed */
    filch_deque_kind deque;
    filch_victim_policy victim;
    filch_spin_policy spin;
    bool pin; /* keep each thread on a CPU of its own, physical cores first */
    bool
        report_overflow; /* say which strand overflowed its stack: installs a handler for SIGSEGV */
    const char *name;    /* of the threads, with their number; NULL: "filch" */

    /* Called on each of the pool's threads when it starts and when it ends. on_start may run tasks of the pool, and its worker does others while it
     * waits for them in filch_run; while it waits for anything else it does nothing. on_stop may not use the pool. */
    void (*on_start)(void *context, unsigned worker_index);
    void (*on_stop)(void *context, unsigned worker_index);
    void *hook_context;

    size_t
        deque_capacity; /* of each deque but the split stack, at first or at all; 0: its default */
    size_t deque_block; /* entries in a block of the two that have blocks; 0: 16 */
} filch_options;

/*
 * Create a pool. `options` may be NULL.
 *
 * Returns 0, or: -EINVAL a value in the options has no meaning; -E2BIG the options come from a newer header
 * and use what this library does not know; -ENOEXEC the caller was compiled against another
 * layout of strands; -ENOMEM. The environment variable FILCH_WORKERS replaces the default number
 * of workers; FILCH_DEQUE the default deque, as in "chaselev", "abp:256" (its capacity) or "bwos_lifo:1024:8" (and its block); and
 * FILCH_VERBOSE=1 tells on standard error how they were found. What is no deque there is ignored; a capacity that cannot be is -EINVAL.
 */
FILCH_API int filch_pool_create_abi(filch_pool **pool, const filch_options *options, unsigned abi);
FILCH_INLINE int filch_pool_create(filch_pool **pool, const filch_options *options)
{
    return filch_pool_create_abi(pool, options, FILCH_ABI);
}

/* The workers this pool may have at once. */
FILCH_API unsigned filch_pool_workers(const filch_pool *pool);

/*
 * Run fn(f, arg) and wait until it and all it forked are complete. From any thread, also from inside a task of
 * this or another pool.
 *
 * Returns 0, or: -EINVAL no pool; -EOWNERDEAD the caller is a task of this pool that called fork(), and
 * this is the child; -ENOMEM in a hook, where there is no stack yet to run it on.
 */
FILCH_API int filch_run(filch_pool *pool, filch_fn *fn, void *arg);

/*
 * Let the pool run fn(f, arg) some time; does not wait. From any thread. In a process that cannot start a
 * single thread the task has been run on return; if it waits, the rest is run by threads that call filch_run, filch_pool_wait or a scope of this pool.
 *
 * Returns 0, or: -EINVAL, -EOWNERDEAD as above; -ENOMEM.
 */
FILCH_API int filch_submit(filch_pool *pool, filch_fn *fn, void *arg);

/* The same with a copy of the `bytes` at `arg`, aligned as by malloc, made now and freed after the task. Without bytes the task gets
 * `arg` itself; bytes without `arg` are -EINVAL. */
FILCH_API int filch_submit_copy(filch_pool *pool, filch_fn *fn, const void *arg, size_t bytes);

/*
 * Wait until no submitted task and no filch_run is left in the pool. Returns 0, -EINVAL, or -EDEADLK when
 * called by a task of this pool, which would wait for itself. Tasks of scopes are not waited for: closing the scope does that.
 */
FILCH_API int filch_pool_wait(filch_pool *pool);

/*
 * Wait as above, then end all threads and free the pool. No other thread may use it any more.
 * Returns 0, -EINVAL; or nothing was done: -EDEADLK, since a task of the pool called it; -EBUSY, since a scope of it is open.
 */
FILCH_API int filch_pool_destroy(filch_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
