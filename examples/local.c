/* SPDX-License-Identifier: MIT */
/*
 * Task-local values: every function and task that a request calls, forks or spawns knows its
 * request, on any thread.
 */
#include <filch/filch.h>
#include <stdio.h>

static const filch_key request = {"request"};

/* Called deep down, where no argument carries the request. */
static const char *who(filch_frame *f)
{
    const char *name = filch_local_get(f, &request);
    return name ? name : "nobody";
}

FILCH_TASK(int, count_for, (const char *, name), (int, depth))
{
    if (depth == 0)
        return who(FILCH_HERE) == name;
    FILCH_FORK(left, count_for, name, depth - 1);
    int right = FILCH_CALL(count_for, name, depth - 1);
    return FILCH_JOIN(left) + right;
}

static int serve(filch_frame *f, void *arg)
{
    filch_binding binding;

    filch_local_bind(f, &binding, &request, arg);
    int count = FILCH_CALL_ON(f, count_for, (const char *)arg, 8);
    if (count != 256)
        printf("%d leaves of %s\n", count, who(f));
    filch_local_unbind(f, &binding);
    return 0;
}

static int report(filch_frame *f, void *arg)
{
    printf("%s is for %s\n", (const char *)arg, who(f));
    return 0;
}

static void run(filch_frame *f, void *arg)
{
    static char *const names[] = {"ada", "grace", "edsger"};
    filch_binding binding;
    filch_scope scope;
    (void)arg;

    filch_scope_open(f, &scope, NULL, NULL);
    for (int i = 0; i < 99; i++)
        filch_scope_spawn(f, &scope, serve, names[i % 3]);
    filch_scope_close(f, &scope);
    printf("99 requests, each leaf knew its own\n");

    /* A spawned task gets a copy of the bindings, so it may outlive them. */
    filch_scope_open(f, &scope, NULL, NULL);
    filch_local_bind(f, &binding, &request, "barbara");
    filch_scope_spawn(f, &scope, report, "the report");
    filch_local_unbind(f, &binding);
    filch_scope_close(f, &scope);
    printf("here it is %s again\n", who(f));
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    filch_run(pool, run, NULL);
    return filch_pool_destroy(pool);
}
