/* SPDX-License-Identifier: MIT */
/*
 * A program in C without the C++ runtime. A task loads a library in C++, and two tasks wait in its
 * catch blocks at once, on one worker.
 */
#include <filch/filch.h>

#include <dlfcn.h>
#include <stdio.h>

typedef int wait_fn(filch_frame *f, filch_event *ready, filch_event *go);

static const char *library;
static filch_event first, second;

static int wait_in(filch_frame *f, filch_event *ready, filch_event *go)
{
    void *plugin = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = plugin ? dlsym(plugin, "plugin_wait") : NULL;

    if (!symbol) {
        fprintf(stderr, "%s\n", dlerror());
        return -1;
    }
    return (*(wait_fn **)(void *)&symbol)(f, ready, go);
}

static int wait_first(filch_frame *f, void *arg)
{
    (void)arg;
    return wait_in(f, &first, &second);
}

/* Catches after the first, and ends after it. */
static int wait_second(filch_frame *f, void *arg)
{
    filch_event_wait(f, &first);
    int err = wait_in(f, &second, arg);
    return err;
}

static int end(filch_frame *f, void *arg)
{
    for (int i = 0; i < 10; i++)
        filch_yield(f);
    filch_event_set(arg);
    return 0;
}

int main(int count, char **arguments)
{
    filch_options options = {.size = sizeof options, .workers = 1};
    filch_event last = {0};
    filch_pool *pool;
    filch_scope scope;

    library = arguments[count - 1];
    if (filch_pool_create(&pool, &options) != 0 || filch_scope_open(NULL, &scope, pool, NULL) != 0)
        return 2;
    filch_scope_spawn(NULL, &scope, wait_first, NULL);
    filch_scope_spawn(NULL, &scope, wait_second, &last);
    filch_scope_spawn(NULL, &scope, end, &last);
    if (filch_scope_close(NULL, &scope) != 0) {
        fputs("a wait changed the exceptions of a task\n", stderr);
        return 1;
    }
    return filch_pool_destroy(pool) != 0;
}
