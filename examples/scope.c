/* SPDX-License-Identifier: MIT */
/* Tasks that wait: a scope owns them; futures, a task-local value, a deadline, a blocking call. */
#include <errno.h>
#include <filch/filch.h>
#include <stdio.h>

static const filch_key user = {"user"};

/* Acts like a remote call: the answer takes a while, and no thread waits for it. */
static int fetch(filch_frame *f, void *arg, void **value)
{
    int err = filch_sleep_ns(f, 5000000);

    *value = arg;
    return err;
}

static int greet(filch_frame *f, void *arg)
{
    (void)arg;
    printf("for %s\n", (const char *)filch_local_get(f, &user));
    return 0;
}

static int never_ends(filch_frame *f, void *arg)
{
    (void)arg;
    return filch_sleep_until(f, FILCH_NO_DEADLINE); /* -ECANCELED, some time */
}

static int call_that_blocks(void *arg)
{
    return *(int *)arg * 2;
}

/* A thousand answers of five milliseconds each, all pending at once. Returns 0, or the first error
 * of a spawn or a future. Without memory for its stack a task does not run: its future has the
 * error. */
static int fetch_all(filch_frame *f)
{
    enum { COUNT = 1000 };
    static filch_future futures[COUNT];
    long sum = 0, spawned = 0;
    filch_scope scope;
    int err = filch_scope_open(f, &scope, NULL, NULL);

    if (err)
        return err;
    while (!err && spawned < COUNT) {
        err = filch_future_spawn(f, &scope, &futures[spawned], fetch, (void *)spawned);
        spawned += !err;
    }
    for (long i = 0; i < spawned; i++) {
        void *value;
        int got = filch_future_get(f, &futures[i], &value);
        if (got == 0)
            sum += (long)value;
        else if (!err)
            err = got;
    }
    int closed = filch_scope_close(f, &scope);
    printf("sum %ld, %s\n", sum, err || closed ? "with errors" : "without errors");
    return err ? err : closed;
}

static void run(filch_frame *f, void *result)
{
    int number = 21, *err = result;
    filch_scope scope;

    *err = fetch_all(f);

    /* A value for all tasks spawned from here. */
    filch_binding binding;
    filch_local_bind(f, &binding, &user, "ada");
    filch_scope_open(f, &scope, NULL, NULL);
    filch_scope_spawn(f, &scope, greet, NULL);
    filch_scope_close(f, &scope);
    filch_local_unbind(f, &binding);

    /* At the deadline, the scope cancels its unfinished tasks. */
    filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(10)};
    filch_scope_open(f, &scope, NULL, &options);
    filch_scope_spawn(f, &scope, never_ends, NULL);
    printf("%s\n", filch_scope_close(f, &scope) == -ETIMEDOUT ? "too late" : "in time");

    /* A blocking call, on a thread of its own. */
    printf("%d\n", filch_blocking(f, FILCH_LANE_ANY, call_that_blocks, &number));
}

int main(void)
{
    filch_pool *pool;
    int err = filch_pool_create(&pool, NULL);

    if (!err) {
        filch_run(pool, run, &err);
        filch_pool_destroy(pool);
    }
    if (err)
        fprintf(stderr, "scope: %s\n", filch_strerror(err));
    return err ? 1 : 0;
}
