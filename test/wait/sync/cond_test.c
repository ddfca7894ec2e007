/* SPDX-License-Identifier: MIT */
/*
 * Conditions: a signal resumes a waiting task, which holds the mutex again.
 */
#include "sync_support.h"

/* Wait until s->plain, the number of tokens, is not 0, and take one. */
static int wait_for_token(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = 0;

    CHECK(filch_mutex_lock(f, &s->mutex) == 0);
    while (!err && s->plain == 0)
        err = filch_cond_wait_until(f, &s->cond, &s->mutex, s->deadline_ns);
    /* The mutex is held, whatever the result is. */
    CHECK(!filch_mutex_try_lock(&s->mutex));
    if (!err)
        s->plain--;
    counter_add(err ? &s->b : &s->a, 1);
    filch_mutex_unlock(&s->mutex);
    return err;
}

static void add_tokens(shared *s, uint64_t count)
{
    assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
    s->plain += count;
    filch_mutex_unlock(&s->mutex);
}

TEST(a_signal_lets_one_go_on_and_a_broadcast_all)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope scope;

        open_scope(&scope, pool);
        for (int i = 0; i < 10; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, wait_for_token, s), 0);
        UNTIL(WAITERS(&s->cond) == 10);
        add_tokens(s, 10);
        filch_cond_signal(&s->cond);
        UNTIL(counter_get(&s->a) == 1);
        assert_int_equal(WAITERS(&s->cond), 9);
        filch_cond_broadcast(&s->cond);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(counter_get(&s->a), 10);
        assert_int_equal(s->plain, 0);
        /* No task waits. */
        filch_cond_signal(&s->cond);
        filch_cond_broadcast(&s->cond);
        free(s);
        watched_pool_destroy(pool);
    }
}

TEST(a_signal_goes_past_cancelled_waiters)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_scope_spawn(NULL, &cancelled, wait_for_token, s), 0);
        UNTIL(WAITERS(&s->cond) == 1);
        assert_int_equal(filch_scope_spawn(NULL, &other, wait_for_token, s), 0);
        UNTIL(WAITERS(&s->cond) == 2);
        add_tokens(s, 1);
        filch_scope_cancel(&cancelled);
        filch_cond_signal(&s->cond);

        assert_int_equal(filch_scope_close(NULL, &cancelled), -ECANCELED);
        assert_int_equal(filch_scope_close(NULL, &other), 0);
        assert_int_equal(counter_get(&s->a), 1);
        assert_int_equal(counter_get(&s->b), 1);
        free(s);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

TEST(the_mutex_is_held_after_a_deadline)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    s->deadline_ns = filch_after_ms(1);
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, wait_for_token, s), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    assert_int_equal(wait_for_token(NULL, s), -ETIMEDOUT);
    assert_int_equal(WAITERS(&s->cond), 0);
    assert_int_equal(WORD(&s->mutex), 0);
    free(s);
    watched_pool_destroy(pool);
}

/* A queue with room for one value between tasks and threads. */

typedef struct place {
    filch_mutex mutex;
    filch_cond not_empty, not_full;
    uint64_t value, sum;
} place;

#define VALUES (4000 / TEST_SLOWNESS)

static int produce(filch_frame *f, void *arg)
{
    place *p = arg;

    for (uint64_t i = 1; i <= VALUES; i++) {
        CHECK(filch_mutex_lock(f, &p->mutex) == 0);
        while (p->value)
            CHECK(filch_cond_wait(f, &p->not_full, &p->mutex) == 0);
        p->value = i;
        filch_mutex_unlock(&p->mutex);
        filch_cond_signal(&p->not_empty);
    }
    return 0;
}

static int consume(filch_frame *f, void *arg)
{
    place *p = arg;

    for (uint64_t i = 1; i <= VALUES; i++) {
        CHECK(filch_mutex_lock(f, &p->mutex) == 0);
        while (!p->value)
            CHECK(filch_cond_wait(f, &p->not_empty, &p->mutex) == 0);
        p->sum += p->value;
        p->value = 0;
        filch_cond_signal(&p->not_full);
        filch_mutex_unlock(&p->mutex);
    }
    return 0;
}

static void *consume_on_thread(void *arg)
{
    consume(NULL, arg);
    return NULL;
}

TEST(a_queue_with_conditions_loses_nothing)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        place p = {.value = 0};
        filch_scope scope;
        pthread_t thread;

        open_scope(&scope, pool);
        assert_int_equal(pthread_create(&thread, NULL, consume_on_thread, &p), 0);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(filch_scope_spawn(NULL, &scope, produce, &p), 0);
            if (i < 2)
                assert_int_equal(filch_scope_spawn(NULL, &scope, consume, &p), 0);
        }
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);

        assert_int_equal(p.sum, 3ull * VALUES * (VALUES + 1) / 2);
        watched_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_lets_one_go_on_and_a_broadcast_all),
        cmocka_unit_test(a_signal_goes_past_cancelled_waiters),
        cmocka_unit_test(the_mutex_is_held_after_a_deadline),
        cmocka_unit_test(a_queue_with_conditions_loses_nothing),
    };
    return cmocka_run_group_tests_name("cond", tests, watchdog_start, watchdog_stop);
}
