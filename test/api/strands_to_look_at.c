/* SPDX-License-Identifier: MIT */
/* For test/api/gdb_strands: calls look_here while tasks wait. */
#define _GNU_SOURCE
#include <filch/filch.h>
#include <stdlib.h>
#include <string.h>

static filch_future never = FILCH_FUTURE_INIT;

__attribute__((noinline)) static int look_here(filch_pool *pool)
{
    __asm__ volatile("" ::"r"(pool) : "memory");
    return filch_pool_dump(pool, stderr);
}

__attribute__((noinline)) static int napping(filch_frame *f, void *arg)
{
    (void)arg;
    return filch_sleep_ns(f, 3600000000000);
}

__attribute__((noinline)) static int awaiting(filch_frame *f, void *arg)
{
    return filch_future_get(f, arg, NULL);
}

static filch_mutex mutex;
static filch_event end;

__attribute__((noinline)) static int holding(filch_frame *f, void *arg)
{
    (void)arg;
    int err = filch_mutex_lock(f, &mutex);
    if (!err)
        err = filch_event_wait(f, &end);
    filch_mutex_unlock(&mutex);
    return err;
}

__attribute__((noinline)) static int locking(filch_frame *f, void *arg)
{
    (void)arg;
    int err = filch_mutex_lock(f, &mutex);
    if (!err)
        filch_mutex_unlock(&mutex);
    return err;
}

FILCH_TASK(int, forked, (filch_event *, event))
{
    return filch_event_wait(FILCH_HERE, event);
}

static bool all_wait(filch_pool *pool)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    filch_pool_dump(pool, out);
    fclose(out);
    bool is_so = strstr(text, "waits for sleep") && strstr(text, "waits for a future") &&
                 strstr(text, ", stolen from strand") && strstr(text, "held by strand");
    free(text);
    return is_so;
}

static bool is_held(void)
{
    bool is_free = filch_mutex_try_lock(&mutex);
    if (is_free)
        filch_mutex_unlock(&mutex);
    return !is_free;
}

FILCH_TASK(void, look, (filch_pool *, pool))
{
    filch_scope scope;

    if (filch_scope_open(FILCH_HERE, &scope, NULL, NULL))
        return;
    FILCH_FORK(child, forked, &end);
    filch_scope_spawn(FILCH_HERE, &scope, napping, NULL);
    filch_scope_spawn(FILCH_HERE, &scope, awaiting, &never);
    filch_scope_spawn(FILCH_HERE, &scope, holding, NULL);
    while (!is_held())
        filch_yield(FILCH_HERE);
    filch_scope_spawn(FILCH_HERE, &scope, locking, NULL);
    while (!all_wait(pool))
        filch_yield(FILCH_HERE);
    look_here(pool);
    filch_event_set(&end);
    FILCH_JOIN(child);
    filch_scope_cancel(&scope);
    filch_scope_close(FILCH_HERE, &scope);
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    FILCH_RUN(pool, look, pool);
    return filch_pool_destroy(pool);
}
