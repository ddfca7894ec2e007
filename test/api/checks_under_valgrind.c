/* SPDX-License-Identifier: MIT */
/*
 * For test/api/valgrind: a checked program with futures in functions that have returned. The checks
 * read that memory. It is free, and partly below the stack pointer.
 */
#include <filch/filch.h>
#include <stdio.h>

static int answer(filch_frame *f, void *arg, void **value)
{
    (void)f;
    *value = arg;
    return 0;
}

/* Use `count` futures on the stack, each below the one before. */
static __attribute__((noinline)) int ask(filch_frame *f, filch_scope *scope, int count)
{
    filch_future future = FILCH_FUTURE_INIT;
    void *value;

    if (count == 0 || filch_future_spawn(f, scope, &future, answer, NULL) ||
        filch_future_get(f, &future, &value))
        return 0;
    return 1 + ask(f, scope, count - 1);
}

FILCH_TASK(int, ask_often, (int, count))
{
    filch_scope scope;
    int answers = 0;

    if (filch_scope_open(FILCH_HERE, &scope, NULL, NULL))
        return 0;
    answers += ask(FILCH_HERE, &scope, count);
    for (int i = 0; i < count; i++)
        answers += ask(FILCH_HERE, &scope, 1);
    filch_scope_close(FILCH_HERE, &scope);
    return answers;
}

int main(void)
{
    filch_pool *pool;

    if (filch_pool_create(&pool, NULL))
        return 1;
    int answers = FILCH_RUN(pool, ask_often, 30);
    printf("%d answers\n", answers);
    filch_pool_destroy(pool);
    return answers != 60;
}
