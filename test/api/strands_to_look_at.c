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

static bool both_wait(filch_pool *pool)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    filch_pool_dump(pool, out);
    fclose(out);
    bool is_so = strstr(text, "waits for sleep") && strstr(text, "waits for a future");
    free(text);
    return is_so;
}

static void run(filch_frame *f, void *pool)
{
    filch_scope scope;

    if (filch_scope_open(f, &scope, NULL, NULL))
        return;
    filch_scope_spawn(f, &scope, napping, NULL);
    filch_scope_spawn(f, &scope, awaiting, &never);
    while (!both_wait(pool))
        filch_yield(f);
    look_here(pool);
    filch_scope_cancel(&scope);
    filch_scope_close(f, &scope);
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    filch_run(pool, run, pool);
    return filch_pool_destroy(pool);
}
