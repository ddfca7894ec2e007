/* SPDX-License-Identifier: MIT */
/*
 * No memory for another stack. If only a fork of the waiting task itself could end its wait, the
 * wait returns an error. This holds for every kind of object. Other waits continue.
 */
#include "shortage_support.h"

#include <filch/blocking.h>
#include <filch/channel.h>
#include <filch/future.h>
#include <filch/io.h>
#include <filch/task.h>

#include <unistd.h>

/* One object of every kind at which a task can wait for its fork. */
typedef struct things {
    filch_future future;
    filch_event event;
    filch_sem sem;
    filch_mutex mutex;
    filch_cond cond;
    filch_rwlock lock;
    filch_barrier barrier;
    filch_channel *channel;
    int pipe[2];
    bool is_set; /* protected by the mutex */
} things;

typedef struct way {
    const char *name;
    void (*give)(filch_frame *f, void *things);
    int (*wait)(filch_frame *f, things *t);
} way;

static void give_future(filch_frame *f, void *t)
{
    (void)f;
    filch_future_set(&((things *)t)->future, NULL, 0);
}

static int wait_future(filch_frame *f, things *t)
{
    return filch_future_get(f, &t->future, NULL);
}

static int wait_future_until(filch_frame *f, things *t)
{
    return filch_future_get_until(f, &t->future, NULL, filch_after_ns(3600000000000));
}

static int wait_select(filch_frame *f, things *t)
{
    filch_case cases[] = {filch_case_future(&t->future)};
    int chosen = filch_select(f, cases, 1);
    return chosen < 0 ? chosen : 0;
}

static void give_event(filch_frame *f, void *t)
{
    (void)f;
    filch_event_set(&((things *)t)->event);
}

static int wait_event(filch_frame *f, things *t)
{
    return filch_event_wait(f, &t->event);
}

static void give_sem(filch_frame *f, void *t)
{
    (void)f;
    filch_sem_release(&((things *)t)->sem, 1);
}

static int wait_sem(filch_frame *f, things *t)
{
    return filch_sem_acquire(f, &t->sem);
}

static void give_cond(filch_frame *f, void *arg)
{
    things *t = arg;

    CHECK(filch_mutex_lock(f, &t->mutex) == 0);
    t->is_set = true;
    filch_cond_signal(&t->cond);
    filch_mutex_unlock(&t->mutex);
}

static int wait_cond(filch_frame *f, things *t)
{
    int err = filch_mutex_lock(f, &t->mutex);
    while (!err && !t->is_set)
        err = filch_cond_wait(f, &t->cond, &t->mutex);
    filch_mutex_unlock(&t->mutex);
    return err;
}

static void give_lock(filch_frame *f, void *arg)
{
    things *t = arg;
    (void)f;
    filch_rwlock_unlock(&t->lock);
}

static int wait_lock(filch_frame *f, things *t)
{
    int err = filch_rwlock_read_lock(f, &t->lock);
    if (!err)
        filch_rwlock_unlock(&t->lock);
    return err;
}

static void give_barrier(filch_frame *f, void *arg)
{
    things *t = arg;
    /* A wait that ended with an error has left the barrier. */
    CHECK(filch_barrier_wait(f, &t->barrier) >= 0);
}

static int wait_barrier(filch_frame *f, things *t)
{
    int result = filch_barrier_wait(f, &t->barrier);
    if (result < 0)
        filch_barrier_init(&t->barrier, 1);
    return result < 0 ? result : 0;
}

static void give_entry(filch_frame *f, void *arg)
{
    things *t = arg;
    int entry = 7;
    CHECK(filch_channel_send(f, t->channel, &entry) == 0);
}

static int wait_entry(filch_frame *f, things *t)
{
    int entry = 0, err = filch_channel_receive(f, t->channel, &entry);
    CHECK(err != 0 || entry == 7);
    return err;
}

static void give_byte(filch_frame *f, void *arg)
{
    things *t = arg;
    CHECK(filch_write(f, t->pipe[1], "x", 1) == 1);
}

static int wait_byte(filch_frame *f, things *t)
{
    char byte;
    ssize_t got = filch_read(f, t->pipe[0], &byte, 1);
    return got == 1 ? 0 : (int)got;
}

static const way ways[] = {
    {"future", give_future, wait_future},
    {"future, with a deadline", give_future, wait_future_until},
    {"select", give_future, wait_select},
    {"event", give_event, wait_event},
    {"semaphore", give_sem, wait_sem},
    {"condition", give_cond, wait_cond},
    {"lock", give_lock, wait_lock},
    {"barrier", give_barrier, wait_barrier},
    {"channel", give_entry, wait_entry},
    {"pipe", give_byte, wait_byte},
};

#define WAYS (sizeof ways / sizeof ways[0])

typedef struct try_out {
    const way *way;
    int err;
} try_out;

static void fork_and_wait(filch_frame *f, void *arg)
{
    try_out *t = arg;
    filch_frame *mark = f;
    things all = {.future = FILCH_FUTURE_INIT};

    CHECK(filch_channel_create(&all.channel, sizeof(int), 1) == 0);
    CHECK(pipe(all.pipe) == 0);
    CHECK(filch_rwlock_write_lock(f, &all.lock) == 0);
    filch_barrier_init(&all.barrier, 2);

    f = filch_fork(f, t->way->give, &all);
    t->err = t->way->wait(f, &all);
    f = filch_join(f, mark);
    /* The join has run the fork. */
    CHECK(t->err == 0 || t->err == -ENOMEM);
    if (t->err == -ENOMEM && t->way->give != give_barrier)
        CHECK(t->way->wait(f, &all) == 0);

    close(all.pipe[0]);
    close(all.pipe[1]);
    filch_channel_destroy(all.channel);
}

TEST(a_wait_that_only_an_own_fork_could_end_gets_an_error)
{
    for (unsigned workers = 1; workers <= 3; workers++)
        for (unsigned i = 0; i < WAYS; i++) {
            filch_pool *pool = watched_pool_of(workers);
            try_out t = {.way = &ways[i]};

            set(&has_no_memory, 1);
            assert_int_equal(filch_run(pool, fork_and_wait, &t), 0);
            set(&has_no_memory, 0);
            if (workers == 1 && t.err != -ENOMEM)
                fail_msg("%s: the wait returned %d", ways[i].name, t.err);
            watched_pool_destroy(pool);
        }
}

TEST(with_one_thread_and_no_memory_it_gets_the_error_too)
{
    for (unsigned i = 0; i < WAYS; i++) {
        filch_pool *pool = watched_pool_of(2);
        try_out t = {.way = &ways[i]};
        set(&has_no_threads, 1);

        set(&has_no_memory, 1);
        assert_int_equal(filch_run(pool, fork_and_wait, &t), 0);
        assert_int_equal(t.err, -ENOMEM);
        set(&has_no_memory, 0);

        /* With memory, the thread that waits for the task runs the fork. */
        assert_int_equal(filch_run(pool, fork_and_wait, &t), 0);
        assert_int_equal(t.err, 0);
        watched_pool_destroy(pool);
        set(&has_no_threads, 0);
    }
}

FILCH_TASK(int, give_in_a_slot, (filch_future *, future))
{
    filch_future_set(future, NULL, 0);
    return 0;
}

/* The inner task runs on the stack of the outer one, and no other strand can run its fork. */
FILCH_TASK(int, fork_inside, (int, unused))
{
    filch_future future = FILCH_FUTURE_INIT;
    (void)unused;

    FILCH_FORK(gives, give_in_a_slot, &future);
    int err = filch_future_get(FILCH_HERE, &future, NULL);
    CHECK(FILCH_JOIN(gives) == 0);
    CHECK(filch_future_get(FILCH_HERE, &future, NULL) == 0);
    return err;
}

static void run_inside(filch_frame *f, void *pool)
{
    (void)f;
    CHECK(FILCH_RUN(pool, fork_inside, 0) == -ENOMEM);
}

TEST(a_task_on_the_stack_of_another_gets_the_error)
{
    filch_pool *pool = watched_pool_of(1);

    set(&has_no_memory, 1);
    assert_int_equal(filch_run(pool, run_inside, pool), 0);
    set(&has_no_memory, 0);
    watched_pool_destroy(pool);
}

/* A task of pool a runs a task of pool b, which runs a task of a. The last one runs on the stack of
 * the first, and may wait there. */
typedef struct two_pools {
    filch_pool *a, *b;
    counter ended;
} two_pools;

static void sleep_some(filch_frame *f, void *arg)
{
    two_pools *p = arg;

    for (int i = 0; i < 3; i++)
        CHECK(filch_sleep_ns(f, 100000) == 0);
    counter_add(&p->ended, 1);
}

static void run_in_a(filch_frame *f, void *arg)
{
    two_pools *p = arg;
    (void)f;

    set(&has_no_memory, 1);
    CHECK(filch_run(p->a, sleep_some, p) == 0);
    set(&has_no_memory, 0);
}

static void run_in_b(filch_frame *f, void *arg)
{
    two_pools *p = arg;
    (void)f;

    for (int i = 0; i < 20; i++)
        CHECK(filch_run(p->b, run_in_a, p) == 0);
}

static int yield_until_ended(filch_frame *f, void *arg)
{
    two_pools *p = arg;

    while (counter_get(&p->ended) < 20)
        filch_yield(f);
    return 0;
}

TEST(a_task_waits_on_the_stack_of_another_pool)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        two_pools p = {.a = watched_pool_of(workers), .b = watched_pool_of(workers)};
        filch_scope scope;

        assert_int_equal(filch_scope_open(NULL, &scope, p.a, NULL), 0);
        for (unsigned i = 0; i < workers; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, yield_until_ended, &p), 0);
        assert_int_equal(filch_submit(p.a, run_in_b, &p), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(filch_pool_wait(p.a), 0);
        assert_int_equal(counter_get(&p.ended), 20);
        watched_pool_destroy(p.b);
        watched_pool_destroy(p.a);
    }
}

/* ---- waits that do not depend on it ---------------------------------------------------------- */

static int nothing(void *arg)
{
    (void)arg;
    return 5;
}

static void fork_and_sleep(filch_frame *f, void *arg)
{
    filch_frame *mark = f;
    things t = {.is_set = false};
    filch_event never = {.state = {0}};
    (void)arg;

    f = filch_fork(f, give_event, &t);
    CHECK(filch_sleep_ns(f, 1000000) == 0);
    CHECK(filch_blocking(f, FILCH_LANE_ANY, nothing, NULL) == 5);
    /* A shielded wait gets no error. */
    filch_frame *shield = filch_shield(f);
    CHECK(filch_event_wait_until(f, &never, filch_after_ns(1000000)) == -ETIMEDOUT);
    filch_unshield(f, shield);
    filch_join(f, mark);
}

TEST(sleeps_blocking_calls_and_shielded_waits_end_as_usual)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        set(&has_no_memory, 1);
        assert_int_equal(filch_run(pool, fork_and_sleep, NULL), 0);
        set(&has_no_memory, 0);
        watched_pool_destroy(pool);
    }
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static counter begun;

static int wait_for_event(filch_frame *f, void *event)
{
    counter_add(&begun, 1);
    return filch_event_wait(f, event);
}

static void close_with_a_fork(filch_frame *f, void *arg)
{
    filch_frame *mark = f;
    things t = {.is_set = false}, rest = {.is_set = false};
    filch_scope scope, others;
    (void)arg;

    counter_set(&begun, 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    CHECK(filch_scope_spawn(f, &scope, wait_for_event, &t.event) == 0);
    while (counter_get(&begun) == 0)
        CHECK(filch_yield(f) == 0);
    /* Other tasks take all stacks that are left. */
    set(&has_no_memory, 1);
    CHECK(filch_scope_open(f, &others, NULL, NULL) == 0);
    while (!has_error(&others)) {
        CHECK(filch_scope_spawn(f, &others, wait_for_event, &rest.event) == 0);
        CHECK(filch_sleep_ns(f, 10000) == 0);
    }

    f = filch_fork(f, give_event, &t);
    CHECK(filch_scope_close(f, &scope) == -ENOMEM);
    f = filch_join(f, mark);

    filch_event_set(&rest.event);
    CHECK(filch_scope_close(f, &others) == -ENOMEM);
    set(&has_no_memory, 0);
}

/* The scope's task waits for a fork of the closing task, which no strand can run. */
TEST(closing_a_scope_returns_the_error_after_its_tasks)
{
    for (unsigned workers = 1; workers <= 3; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        assert_int_equal(filch_run(pool, close_with_a_fork, NULL), 0);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_that_only_an_own_fork_could_end_gets_an_error),
        cmocka_unit_test(with_one_thread_and_no_memory_it_gets_the_error_too),
        cmocka_unit_test(a_task_on_the_stack_of_another_gets_the_error),
        cmocka_unit_test(a_task_waits_on_the_stack_of_another_pool),
        cmocka_unit_test(sleeps_blocking_calls_and_shielded_waits_end_as_usual),
        cmocka_unit_test(closing_a_scope_returns_the_error_after_its_tasks),
    };
    return cmocka_run_group_tests_name("shortage_wait", tests, watchdog_start, watchdog_stop);
}
