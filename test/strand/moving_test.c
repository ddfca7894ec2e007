/* SPDX-License-Identifier: MIT */
/*
 * Tasks that wait, and go on, on whatever thread comes: the library must know on which one. Compiled with everything inlined across files.
 *
 * A task that spawned something puts it into the queue of the worker that it believes to be on. If it believed to be on one that it has left, two threads
 * would change what is one's own, and tasks would be lost.
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

/* Not inlined, like those of the library. */
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
    /* Where other programs have the cores, one thread may be done with all of it before another comes. */
    unsigned long long all, moved = 0;
    unsigned run_count = 0;
    do {
        filch_run(pool, run, &result);
        run_count++;
        /* relaxed: all have ended. */
        all = filch_load_relaxed(&ran);
        moved = filch_load_relaxed(&moves);
    } while (moved == 0 && result == 0 && run_count < 500);
    printf("%llu tasks, %llu moves\n", all, moved);
    if (filch_pool_destroy(pool) || result ||
        all != (unsigned long long)run_count * TASKS * ROUNDS || moved == 0)
        return 1;
    return 0;
}
