/* SPDX-License-Identifier: MIT */
/*
 * For test/api/dump_signal: two tasks that wait for each other, until a signal ends the program.
 * Prints "started" before they do.
 */
#include <filch/filch.h>
#include <stdio.h>

static filch_mutex left, right;
static filch_barrier both_locked;

static int lock_both(filch_frame *f, filch_mutex *one, filch_mutex *other)
{
    filch_mutex_lock(f, one);
    filch_barrier_wait(f, &both_locked);
    return filch_mutex_lock(f, other);
}

__attribute__((noinline)) static int go_left(filch_frame *f, void *arg)
{
    (void)arg;
    return lock_both(f, &left, &right);
}

__attribute__((noinline)) static int go_right(filch_frame *f, void *arg)
{
    (void)arg;
    return lock_both(f, &right, &left);
}

int main(void)
{
    filch_pool *pool;
    filch_scope scope;

    if (filch_pool_create(&pool, NULL) || filch_scope_open(NULL, &scope, pool, NULL))
        return 1;
    filch_barrier_init(&both_locked, 2);
    filch_scope_spawn(NULL, &scope, go_left, NULL);
    filch_scope_spawn(NULL, &scope, go_right, NULL);
    puts("started");
    fflush(stdout);
    return filch_scope_close(NULL, &scope);
}
