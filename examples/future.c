/* SPDX-License-Identifier: MIT */
/* Futures: values from tasks and from plain threads, errors, a wait for the first of several. */
#include <errno.h>
#include <filch/filch.h>
#include <pthread.h>
#include <stdio.h>

static int square(filch_frame *f, void *arg, void **value)
{
    (void)f;
    *value = (void *)((long)arg * (long)arg);
    return 0;
}

static int fail(filch_frame *f, void *arg, void **value)
{
    (void)f, (void)arg, (void)value;
    return -EIO;
}

/* Acts like the callback of another library: it knows nothing of pools. */
static void *complete(void *future)
{
    filch_future_set(future, "from a thread", 0);
    return NULL;
}

static void run(filch_frame *f, void *arg)
{
    filch_future squares[10], failed = FILCH_FUTURE_INIT, later = FILCH_FUTURE_INIT,
                              never = FILCH_FUTURE_INIT;
    void *value;
    long sum = 0;
    pthread_t thread;
    filch_scope scope;
    (void)arg;

    filch_scope_open(f, &scope, NULL, NULL);
    for (long i = 0; i < 10; i++) {
        filch_future_init(&squares[i]);
        filch_future_spawn(f, &scope, &squares[i], square, (void *)i);
    }
    for (int i = 0; i < 10; i++)
        if (filch_future_get(f, &squares[i], &value) == 0)
            sum += (long)value;
    printf("the sum of ten squares is %ld\n", sum);

    /* The error of a task becomes the error of its future. */
    filch_future_spawn(f, &scope, &failed, fail, NULL);
    printf("the task has failed: %s\n", filch_future_get(f, &failed, NULL) == -EIO ? "yes" : "no");
    filch_scope_close(f, &scope);

    /* Wait for the first of several. A complete future stays so, for any number of waiters. */
    if (pthread_create(&thread, NULL, complete, &later))
        return;
    filch_future *any[] = {&never, &later};
    int first = filch_future_wait_any(f, any, 2, FILCH_NO_DEADLINE);
    filch_future_try_get(any[first], &value);
    printf("the first is number %d, \"%s\"\n", first, (const char *)value);
    pthread_join(thread, NULL);

    /* Wait at most a millisecond. */
    int err = filch_future_get_until(f, &never, NULL, filch_after_ms(1));
    printf("the other %s\n", err == -ETIMEDOUT ? "has not come" : "has come");
}

/* A task with types of its own: cube_future holds its arguments, its result and the future. */
FILCH_TASK(long, cube, (long, n))
{
    return n * n * n;
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    filch_run(pool, run, NULL);

    /* Any thread may submit a task with a future, without a scope, and ask for the result later. */
    cube_future cubed;
    if (FILCH_FUTURE_SUBMIT(pool, &cubed, cube, 7) == 0 &&
        filch_future_get(NULL, &cubed.future, NULL) == 0)
        printf("the cube of 7 is %ld\n", cubed.result);
    return filch_pool_destroy(pool);
}
