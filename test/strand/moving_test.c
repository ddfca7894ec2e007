/* SPDX-License-Identifier: MIT */
/*
 * Tasks that wait and resume on another thread: the library must notice that the thread has
 * changed. Compiled with inlining across files.
 *
 * A task that spawns pushes to the queue of its current worker. If the library used the worker from
 * before the wait, two threads would change data that has one owner, and tasks would be lost.
 */
#include <filch/filch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS 64
#define ROUNDS 300

static filch_atomic_u64 moves, ran;

static int tick(filch_frame *f, void *arg)
{
    (void)f, (void)arg;
    /* relaxed: read at the end. */
    filch_fetch_add_relaxed(&ran, 1);
    return 0;
}

/* Not inlined, like the functions of the library that read the thread. */
__attribute__((noinline)) static pthread_t self(void)
{
    pthread_t thread = pthread_self();
    __asm__ volatile("" : "+r"(thread));
    return thread;
}

static int move(filch_frame *f, void *arg)
{
    filch_scope *scope = arg;
    pthread_t last = self();

    for (int i = 0; i < ROUNDS; i++) {
        if (filch_scope_spawn(f, scope, tick, NULL) ||
            (i % 16 ? filch_yield(f) : filch_sleep_ns(f, 1000)))
            return -1;
        pthread_t now = self();
        /* relaxed: read at the end. */
        filch_fetch_add_relaxed(&moves, !pthread_equal(last, now));
        last = now;
    }
    return 0;
}

static void run(filch_frame *f, void *result)
{
    filch_scope scope;

    *(int *)result = filch_scope_open(f, &scope, NULL, NULL);
    if (*(int *)result)
        return;
    for (int i = 0; i < TASKS; i++)
        filch_scope_spawn(f, &scope, move, &scope);
    *(int *)result = filch_scope_close(f, &scope);
}

int main(void)
{
    filch_options options = {.size = sizeof options, .workers = 4, .stack_bytes = 64 << 10};
    filch_pool *pool;
    int result = -1;

    if (filch_pool_create(&pool, &options))
        return 1;
    /* On a loaded machine one thread may run all tasks before another starts: repeat until one
     * moves. */
    unsigned long long all, moved = 0;
    unsigned run_count = 0;
    do {
        filch_run(pool, run, &result);
        run_count++;
        /* relaxed: all tasks have ended. */
        all = filch_load_relaxed(&ran);
        moved = filch_load_relaxed(&moves);
    } while (moved == 0 && result == 0 && run_count < 100000);
    printf("%llu tasks, %llu moves\n", all, moved);
    if (filch_pool_destroy(pool) || result ||
        all != (unsigned long long)run_count * TASKS * ROUNDS || moved == 0)
        return 1;
    return 0;
}
