/* SPDX-License-Identifier: MIT */
/* Time: a thousand tasks sleep without a thread; a period without drift; a scope's deadline. */
#include <errno.h>
#include <filch/filch.h>
#include <stdio.h>

enum { SLEEPERS = 1000 };

static int nap(filch_frame *f, void *arg)
{
    (void)arg;
    return filch_sleep_ns(f, 20000000);
}

static int work_too_long(filch_frame *f, void *arg)
{
    (void)arg;
    while (!filch_is_cancelled(f)) {
        /* compute a little */
    }
    return -ECANCELED;
}

/* Each task sleeps 20 ms: one after the other, they would take 20 seconds. Without memory for all
 * their stacks, some do not run, and the result is -ENOMEM. */
static int sleep_all(filch_frame *f)
{
    uint64_t start_ns = filch_now_ns();
    filch_scope scope;
    int err = filch_scope_open(f, &scope, NULL, NULL);

    if (err)
        return err;
    for (int i = 0; !err && i < SLEEPERS; i++)
        err = filch_scope_spawn(f, &scope, nap, NULL);
    int closed = filch_scope_close(f, &scope);
    if (!err && !closed)
        printf("%d naps took %s\n", SLEEPERS,
               filch_now_ns() - start_ns < 20000000000 ? "less than 20 seconds" : "far too long");
    return err ? err : closed;
}

static void run(filch_frame *f, void *result)
{
    filch_scope scope;
    filch_period period;
    int beats = 0, *err = result;

    *err = sleep_all(f);

    /* A thousand beats a second. A late task gets its beat at once; missed beats are counted. */
    filch_period_init(&period, filch_now_ns(), 1000000);
    uint64_t start_ns = period.next_ns;
    while (beats < 5 && filch_period_wait(f, &period) == 0)
        beats++;
    printf("%d beats, and the last %s\n", beats,
           filch_now_ns() - start_ns >= 4000000 ? "was not too early" : "was too early");

    /* One deadline for all tasks of a scope, whether they wait or compute. */
    filch_scope_options options = {.size = sizeof options, .deadline_ns = filch_after_ms(5)};
    filch_scope_open(f, &scope, NULL, &options);
    filch_scope_spawn(f, &scope, work_too_long, NULL);
    printf("the work %s\n",
           filch_scope_close(f, &scope) == -ETIMEDOUT ? "took too long" : "is done");
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
        fprintf(stderr, "timer: %s\n", filch_strerror(err));
    return err ? 1 : 0;
}
