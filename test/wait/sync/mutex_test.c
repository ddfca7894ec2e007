/* SPDX-License-Identifier: MIT */
/*
 * Mutexes of tasks and threads: one holder at a time, in turn, also over waits of the holder; and
 * tasks that wait in a circle.
 */
#include "sync_support.h"

#include "child.h"

static int add_under_mutex(filch_frame *f, void *arg)
{
    shared *s = arg;

    for (int i = 0; i < 2000 / TEST_SLOWNESS; i++) {
        CHECK(filch_mutex_lock(f, &s->mutex) == 0);
        s->plain++;
        filch_mutex_unlock(&s->mutex);
    }
    return 0;
}

static void *add_on_thread(void *arg)
{
    add_under_mutex(NULL, arg);
    return NULL;
}

TEST(a_mutex_has_one_holder_among_tasks_and_threads)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope scope;
        pthread_t threads[2];

        open_scope(&scope, pool);
        for (int i = 0; i < 50; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, add_under_mutex, s), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, add_on_thread, s), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);

        assert_int_equal(s->plain, 52 * (2000 / TEST_SLOWNESS));
        assert_int_equal(WORD(&s->mutex), 0);
        free(s);
        watched_pool_destroy(pool);
    }
}

TEST(a_mutex_that_is_held_cannot_be_had_by_trying)
{
    filch_mutex mutex = {0};

    assert_true(filch_mutex_try_lock(&mutex));
    assert_false(filch_mutex_try_lock(&mutex));
    filch_mutex_unlock(&mutex);
    assert_true(filch_mutex_try_lock(&mutex));
    filch_mutex_unlock(&mutex);
}

static int lock_in_time(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_mutex_lock_until(f, &s->mutex, s->deadline_ns);

    if (err)
        return err;
    counter_add(&s->a, 1);
    filch_mutex_unlock(&s->mutex);
    return 0;
}

static void *lock_on_thread(void *arg)
{
    lock_in_time(NULL, arg);
    return NULL;
}

TEST(a_mutex_is_not_had_after_the_deadline)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
    s->deadline_ns = filch_after_ms(1);
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, lock_in_time, s), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    assert_int_equal(filch_mutex_lock_until(NULL, &s->mutex, filch_after_ms(1)), -ETIMEDOUT);
    assert_int_equal(counter_get(&s->a), 0);
    assert_int_equal(WAITERS(&s->mutex), 0);
    filch_mutex_unlock(&s->mutex);

    /* The mutex is free: the deadline does not matter. */
    assert_int_equal(filch_mutex_lock_until(NULL, &s->mutex, 0), 0);
    filch_mutex_unlock(&s->mutex);
    assert_int_equal(WORD(&s->mutex), 0);
    free(s);
    watched_pool_destroy(pool);
}

TEST(a_mutex_goes_past_cancelled_waiters)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope cancelled, other;

        assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(filch_scope_spawn(NULL, &cancelled, lock_in_time, s), 0);
            UNTIL(WAITERS(&s->mutex) == i + 1);
        }
        assert_int_equal(filch_scope_spawn(NULL, &other, lock_in_time, s), 0);
        UNTIL(WAITERS(&s->mutex) == 4);
        filch_scope_cancel(&cancelled);
        filch_mutex_unlock(&s->mutex);

        assert_int_equal(filch_scope_close(NULL, &cancelled), -ECANCELED);
        assert_int_equal(filch_scope_close(NULL, &other), 0);
        assert_int_equal(counter_get(&s->a), 1);
        assert_int_equal(WORD(&s->mutex), 0);
        free(s);
        watched_pool_destroy(pool);
    }
}

typedef struct in_order {
    shared *s;
    uint64_t number;
} in_order;

static int lock_in_order(filch_frame *f, void *arg)
{
    const in_order *o = arg;

    CHECK(filch_mutex_lock(f, &o->s->mutex) == 0);
    CHECK(o->s->plain == o->number);
    o->s->plain++;
    filch_mutex_unlock(&o->s->mutex);
    return 0;
}

TEST(a_mutex_goes_to_waiters_in_order)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
    open_scope(&scope, pool);
    for (unsigned i = 0; i < 20; i++) {
        in_order o = {s, i};
        assert_int_equal(filch_scope_spawn_copy(NULL, &scope, lock_in_order, &o, sizeof o), 0);
        UNTIL(WAITERS(&s->mutex) == i + 1);
    }
    filch_mutex_unlock(&s->mutex);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(s->plain, 20);
    free(s);
    watched_pool_destroy(pool);
}

/* The test's thread locks the mutex again and again. */
TEST(no_waiter_is_overtaken_for_ever)
{
    for (int on_thread = 0; on_thread <= 1; on_thread++) {
        filch_pool *pool = watched_pool_of(1);
        shared *s = new_shared();
        filch_scope scope;
        pthread_t thread;

        assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
        open_scope(&scope, pool);
        if (on_thread)
            assert_int_equal(pthread_create(&thread, NULL, lock_on_thread, s), 0);
        else
            assert_int_equal(filch_scope_spawn(NULL, &scope, lock_in_time, s), 0);
        UNTIL(WAITERS(&s->mutex) == 1);
        bool is_held;
        do {
            filch_mutex_unlock(&s->mutex);
            is_held = filch_mutex_try_lock(&s->mutex);
        } while (is_held && counter_get(&s->a) == 0);
        if (is_held)
            filch_mutex_unlock(&s->mutex);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        if (on_thread)
            assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(WORD(&s->mutex), 0);
        free(s);
        watched_pool_destroy(pool);
    }
}

/* A mutex held over all kinds of waits. */

static int nothing(filch_frame *f, void *arg TEST_UNUSED)
{
    return filch_yield(f);
}

FILCH_TASK(uint64_t, yield_and_count, (int, depth))
{
    filch_yield(FILCH_HERE);
    if (depth == 0)
        return 1;
    FILCH_FORK(left, yield_and_count, depth - 1);
    uint64_t right = FILCH_CALL(yield_and_count, depth - 1);
    return FILCH_JOIN(left) + right;
}

static int hold_over_waits(filch_frame *f, void *arg)
{
    shared *s = arg;
    filch_scope scope;

    CHECK(filch_mutex_lock(f, &s->mutex) == 0);
    s->plain += FILCH_CALL_ON(f, yield_and_count, 4);
    CHECK(filch_sleep_ns(f, 1000) == 0);
    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(filch_scope_spawn(f, &scope, nothing, NULL) == 0);
    CHECK(filch_scope_close(f, &scope) == 0);
    s->plain += FILCH_CALL_ON(f, yield_and_count, 4);
    filch_mutex_unlock(&s->mutex);
    return 0;
}

FILCH_TASK(void, hold_in_forks, (shared *, s), (int, depth))
{
    if (depth > 0) {
        FILCH_FORK(left, hold_in_forks, s, depth - 1);
        FILCH_CALL(hold_in_forks, s, depth - 1);
        FILCH_JOIN(left);
    }
    hold_over_waits(FILCH_HERE, s);
}

TEST(a_mutex_may_be_held_over_a_join_a_wait_and_a_scope)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope scope;

        open_scope(&scope, pool);
        for (int i = 0; i < 30; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, hold_over_waits, s), 0);
        FILCH_RUN(pool, hold_in_forks, s, 4);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);

        assert_int_equal(s->plain, (30 + 31) * 32);
        free(s);
        watched_pool_destroy(pool);
    }
}

/* ---- tasks in a circle ----------------------------------------------------------------------- */

typedef struct circle {
    filch_mutex a, b;
    filch_event has_a, has_b;
} circle;

static int a_then_b(filch_frame *f, void *arg)
{
    circle *c = arg;
    CHECK(filch_mutex_lock(f, &c->a) == 0);
    filch_event_set(&c->has_a);
    CHECK(filch_event_wait(f, &c->has_b) == 0);
    CHECK(filch_mutex_lock(f, &c->b) == 0);
    filch_mutex_unlock(&c->b);
    filch_mutex_unlock(&c->a);
    return 0;
}

/* This task closes the circle, and gives up after a moment. Then the other task gets b. The pool
 * has one worker, so the other task has begun to wait when this one runs again. */
static int b_then_a(filch_frame *f, void *arg)
{
    circle *c = arg;
    CHECK(filch_mutex_lock(f, &c->b) == 0);
    filch_event_set(&c->has_b);
    CHECK(filch_event_wait(f, &c->has_a) == 0);
    while (WAITERS(&c->b) == 0)
        filch_yield(f);
    int err = filch_mutex_lock_until(f, &c->a, filch_after_ms(1));
    CHECK(err == -ETIMEDOUT);
    filch_mutex_unlock(&c->b);
    return err;
}

static void wait_in_a_circle(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 1};
    filch_pool *pool;
    filch_scope scope;
    circle c = {.a = {.state = {0}}};

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_scope_open(NULL, &scope, pool, NULL) == 0);
    CHECK(filch_scope_spawn(NULL, &scope, a_then_b, &c) == 0);
    CHECK(filch_scope_spawn(NULL, &scope, b_then_a, &c) == 0);
    CHECK(filch_scope_close(NULL, &scope) == -ETIMEDOUT);
    fprintf(stderr, "a %p b %p\n", (void *)&c.a, (void *)&c.b);
    CHECK(filch_pool_destroy(pool) == 0);
}

static unsigned count_of(const char *text, const char *part)
{
    unsigned count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

TEST(tasks_that_wait_in_a_circle_are_named)
{
#ifndef FILCH_DEBUG
    print_message("skipped: circles are looked for with FILCH_DEBUG\n");
    skip();
#endif
    void *a, *b, *first, *second;
    unsigned waits[2], holds[2];
    int length = 0;
    ended c = run_in_child(wait_in_a_circle, NULL);

    assert_exit_code(&c, 0);
    assert_int_equal(count_of(c.text, "in a circle"), 1);
    /* The task that closes the circle is named first. */
    const char *line = strstr(c.text, "  strand");
    assert_non_null(line);
    assert_int_equal(sscanf(line,
                            "  strand %u [b_then_a] waits for a mutex at %p, held by strand %u "
                            "[a_then_b]\n%n",
                            &waits[0], &first, &holds[0], &length),
                     3);
    assert_int_not_equal(length, 0);
    length = 0;
    line = strstr(line + 1, "  strand");
    assert_non_null(line);
    assert_int_equal(sscanf(line,
                            "  strand %u [a_then_b] waits for a mutex at %p, held by strand %u "
                            "[b_then_a]\n%n",
                            &waits[1], &second, &holds[1], &length),
                     3);
    assert_int_not_equal(length, 0);
    line = strstr(line, "\na ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "\na %p b %p", &a, &b), 2);
    assert_ptr_equal(first, a);
    assert_ptr_equal(second, b);
    assert_int_equal(waits[0], holds[1]);
    assert_int_equal(waits[1], holds[0]);
    assert_int_not_equal(waits[0], waits[1]);
}

/* A write to the standard error waits, under the lock of the list of waits. */
static latch is_printing, may_print;

static ssize_t print_slowly(void *cookie TEST_UNUSED, const char *text TEST_UNUSED, size_t bytes)
{
    latch_open(&is_printing);
    latch_wait(&may_print);
    return (ssize_t)bytes;
}

/* Holds the mutex until another task waits for it. */
static void hold_until_wanted(filch_frame *f, void *arg)
{
    filch_mutex *m = arg;
    CHECK(filch_mutex_lock(f, m) == 0);
    while (WAITERS(m) == 0)
        filch_yield(f);
    filch_mutex_unlock(m);
}

static void lock_once(filch_frame *f, void *arg)
{
    CHECK(filch_mutex_lock(f, arg) == 0);
    filch_mutex_unlock(arg);
}

static void wait_for_mutex(filch_pool *pool)
{
    filch_mutex m = {.state = {0}};
    CHECK(filch_submit(pool, hold_until_wanted, &m) == 0);
    CHECK(filch_submit(pool, lock_once, &m) == 0);
    CHECK(filch_pool_wait(pool) == 0);
}

static void fork_while_printing(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 1};
    filch_pool *pool;
    filch_scope scope;
    circle c = {.a = {.state = {0}}};
    FILE *saved = stderr;
    int status;

    latch_init(&is_printing, 1);
    latch_init(&may_print, 1);
    CHECK(filch_pool_create(&pool, &options) == 0);
    stderr = fopencookie(NULL, "w", (cookie_io_functions_t){.write = print_slowly});
    CHECK(stderr && setvbuf(stderr, NULL, _IOLBF, 4096) == 0);
    CHECK(filch_scope_open(NULL, &scope, pool, NULL) == 0);
    CHECK(filch_scope_spawn(NULL, &scope, a_then_b, &c) == 0);
    CHECK(filch_scope_spawn(NULL, &scope, b_then_a, &c) == 0);
    latch_wait(&is_printing);
    stderr = saved;
    pid_t child = fork();
    if (child == 0) {
        child_kick();
        wait_for_mutex(pool);
        CHECK(filch_pool_destroy(pool) == 0);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    latch_open(&may_print);
    CHECK(filch_scope_close(NULL, &scope) == -ETIMEDOUT);
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(the_child_of_a_fork_does_not_know_the_waits_of_its_parent)
{
#ifndef FILCH_DEBUG
    print_message("skipped: circles are looked for with FILCH_DEBUG\n");
    skip();
#endif
    skip_without_threads_in_children();
    ended c = run_in_child(fork_while_printing, NULL);

    assert_exit_code(&c, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mutex_has_one_holder_among_tasks_and_threads),
        cmocka_unit_test(a_mutex_that_is_held_cannot_be_had_by_trying),
        cmocka_unit_test(a_mutex_is_not_had_after_the_deadline),
        cmocka_unit_test(a_mutex_goes_past_cancelled_waiters),
        cmocka_unit_test(a_mutex_goes_to_waiters_in_order),
        cmocka_unit_test(no_waiter_is_overtaken_for_ever),
        cmocka_unit_test(a_mutex_may_be_held_over_a_join_a_wait_and_a_scope),
        cmocka_unit_test(tasks_that_wait_in_a_circle_are_named),
        cmocka_unit_test(the_child_of_a_fork_does_not_know_the_waits_of_its_parent),
    };
    return cmocka_run_group_tests_name("mutex", tests, watchdog_start, watchdog_stop);
}
