/* SPDX-License-Identifier: MIT */
/*
 * Semaphores, events, barriers and once: counts add up, and a wait that ends early takes nothing.
 */
#include "sync_support.h"

/* ---- semaphore ------------------------------------------------------------------------------- */

static int acquire_one(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_sem_acquire_until(f, &s->sem, s->deadline_ns);

    counter_add(err ? &s->b : &s->a, 1);
    return err;
}

TEST(a_semaphore_counts)
{
    filch_sem sem;

    filch_sem_init(&sem, 2);
    assert_true(filch_sem_try_acquire(&sem));
    assert_int_equal(filch_sem_acquire(NULL, &sem), 0);
    assert_false(filch_sem_try_acquire(&sem));
    assert_int_equal(filch_sem_acquire_until(NULL, &sem, filch_after_ms(1)), -ETIMEDOUT);
    assert_false(filch_sem_try_acquire(&sem));
    filch_sem_release(&sem, 0);
    assert_false(filch_sem_try_acquire(&sem));
    filch_sem_release(&sem, 3);
    for (int i = 0; i < 3; i++)
        assert_true(filch_sem_try_acquire(&sem));
    assert_false(filch_sem_try_acquire(&sem));
    filch_sem_release(&sem, UINT32_MAX);
    filch_sem_release(&sem, 1);
    assert_int_equal(WORD(&sem), FILCH_SEM_MAX);
}

TEST(units_go_to_waiters_and_the_rest_is_counted)
{
    filch_pool *pool = watched_pool_of(2);
    shared *s = new_shared();
    filch_scope scope;

    filch_sem_init(&s->sem, 0);
    open_scope(&scope, pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, acquire_one, s), 0);
    UNTIL(WAITERS(&s->sem) == 5);
    filch_sem_release(&s->sem, 2);
    UNTIL(counter_get(&s->a) == 2);
    assert_int_equal(WAITERS(&s->sem), 3);
    assert_false(filch_sem_try_acquire(&s->sem));
    filch_sem_release(&s->sem, 5);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(counter_get(&s->a), 5);
    assert_int_equal(WORD(&s->sem), 2);
    free(s);
    watched_pool_destroy(pool);
}

TEST(units_go_past_cancelled_waiters)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 300 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_sem_init(&s->sem, 0);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(filch_scope_spawn(NULL, i % 2 ? &other : &cancelled, acquire_one, s),
                             0);
            UNTIL(WAITERS(&s->sem) == i + 1);
        }
        filch_scope_cancel(&cancelled);
        filch_sem_release(&s->sem, 2);

        assert_int_equal(filch_scope_close(NULL, &cancelled), -ECANCELED);
        assert_int_equal(filch_scope_close(NULL, &other), 0);
        assert_int_equal(counter_get(&s->a), 2);
        assert_int_equal(counter_get(&s->b), 2);
        assert_int_equal(WORD(&s->sem), 0);
        free(s);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* ---- event ----------------------------------------------------------------------------------- */

static int wait_for_event(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_event_wait_until(f, &s->event, s->deadline_ns);

    counter_add(err ? &s->b : &s->a, 1);
    return err;
}

static void *wait_on_thread(void *arg)
{
    wait_for_event(NULL, arg);
    return NULL;
}

TEST(an_event_lets_all_go_on_until_it_is_reset)
{
    filch_pool *pool = watched_pool_of(2);
    shared *s = new_shared();
    filch_scope scope;
    pthread_t thread;

    assert_false(filch_event_is_set(&s->event));
    assert_int_equal(filch_event_wait_until(NULL, &s->event, filch_after_ms(1)), -ETIMEDOUT);
    open_scope(&scope, pool);
    for (int i = 0; i < 10; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, wait_for_event, s), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_on_thread, s), 0);
    UNTIL(WAITERS(&s->event) == 11);
    filch_event_set(&s->event);
    filch_event_set(&s->event);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(counter_get(&s->a), 11);

    assert_true(filch_event_is_set(&s->event));
    assert_int_equal(filch_event_wait(NULL, &s->event), 0);
    filch_event_reset(&s->event);
    filch_event_reset(&s->event);
    assert_false(filch_event_is_set(&s->event));
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, wait_for_event, s), 0);
    UNTIL(WAITERS(&s->event) == 1);
    filch_scope_cancel(&scope);
    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
    assert_int_equal(WORD(&s->event), 0);
    free(s);
    watched_pool_destroy(pool);
}

FILCH_TASK(int, sleep_a_moment, (uint64_t, ns))
{
    return filch_sleep_ns(FILCH_HERE, ns);
}

TEST(a_run_is_not_cancelled_with_the_last_task_of_its_strand)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, wait_for_event, s), 0);
    UNTIL(WAITERS(&s->event) == 1);
    filch_scope_cancel(&scope);
    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);

    /* The test's thread takes the seat of the sleeping worker, and its strand. */
    for (int i = 0; i < 10; i++) {
        UNTIL(filch_sleep_sleeper_count(&pool->sleep) == 1);
        assert_int_equal(FILCH_RUN(pool, sleep_a_moment, 1000), 0);
    }
    free(s);
    watched_pool_destroy(pool);
}

/* ---- barrier --------------------------------------------------------------------------------- */

#define COMERS 7
#define BARRIER_ROUNDS (400 / TEST_SLOWNESS)

static int come(filch_frame *f, void *arg)
{
    shared *s = arg;

    for (uint64_t round = 0; round < BARRIER_ROUNDS; round++) {
        counter_add(&s->a, 1);
        int result = filch_barrier_wait(f, &s->barrier);
        CHECK(result == 0 || result == 1);
        /* All tasks of this round have arrived, and none can have finished the next round. */
        CHECK(counter_get(&s->a) >= (round + 1) * COMERS);
        CHECK(counter_get(&s->a) <= (round + 2) * COMERS);
        counter_add(&s->b, (uint64_t)result);
    }
    return 0;
}

static void *come_on_thread(void *arg)
{
    come(NULL, arg);
    return NULL;
}

TEST(a_barrier_lets_them_go_on_together)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope scope;
        pthread_t thread;

        filch_barrier_init(&s->barrier, COMERS);
        open_scope(&scope, pool);
        for (int i = 0; i < COMERS - 1; i++)
            assert_int_equal(filch_scope_spawn(NULL, &scope, come, s), 0);
        assert_int_equal(pthread_create(&thread, NULL, come_on_thread, s), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);

        assert_int_equal(counter_get(&s->a), COMERS * BARRIER_ROUNDS);
        assert_int_equal(counter_get(&s->b), BARRIER_ROUNDS);
        free(s);
        watched_pool_destroy(pool);
    }
}

static int come_once(filch_frame *f, void *arg)
{
    shared *s = arg;
    int result = filch_barrier_wait(f, &s->barrier);

    counter_add(result < 0 ? &s->c : result ? &s->b : &s->a, 1);
    return result < 0 ? result : 0;
}

TEST(a_task_cancelled_at_a_barrier_does_not_count)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_barrier_init(&s->barrier, 3);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_scope_spawn(NULL, &cancelled, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 1);
        assert_int_equal(filch_scope_spawn(NULL, &other, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 2);
        filch_scope_cancel(&cancelled);
        assert_int_equal(filch_scope_close(NULL, &cancelled), -ECANCELED);
        assert_int_equal(WAITERS(&s->barrier), 1);
        assert_int_equal(filch_scope_spawn(NULL, &other, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 2);

        assert_int_equal(filch_barrier_wait(NULL, &s->barrier), 1);
        assert_int_equal(filch_scope_close(NULL, &other), 0);
        assert_int_equal(counter_get(&s->a), 2);
        assert_int_equal(counter_get(&s->c), 1);
        free(s);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* A race decides whether the barrier counts the cancelled task; the counts add up in both cases. */
TEST(a_barrier_stays_right_when_the_last_comes_as_another_is_cancelled)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 1000 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_barrier_init(&s->barrier, 2);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_scope_spawn(NULL, &cancelled, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 1);
        assert_int_equal(filch_scope_spawn(NULL, &other, come_once, s), 0);
        filch_scope_cancel(&cancelled);
        filch_scope_close(NULL, &cancelled);
        if (counter_get(&s->c) == 1)
            assert_int_equal(filch_barrier_wait(NULL, &s->barrier) >= 0, 1);

        assert_int_equal(filch_scope_close(NULL, &other), 0);
        assert_int_equal(counter_get(&s->a) + counter_get(&s->b) + counter_get(&s->c), 2);
        assert_int_equal(WAITERS(&s->barrier), 0);
        free(s);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* ---- once ------------------------------------------------------------------------------------ */

/* The first two calls fail. */
static int third_time_lucky(filch_frame *f, void *arg)
{
    shared *s = arg;

    s->plain++;
    CHECK(filch_yield(f) == 0);
    return s->plain < 3 ? -EIO : 0;
}

static int call_once(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_once_call(f, &s->once, third_time_lucky, s);

    counter_add(err ? &s->b : &s->a, 1);
    CHECK(err == 0 || err == -EIO);
    CHECK(err || s->plain == 3);
    return 0;
}

static void *once_on_thread(void *arg)
{
    call_once(NULL, arg);
    return NULL;
}

TEST(once_calls_until_it_succeeds_and_never_again)
{
    for (unsigned workers = 1; workers <= 4; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);

        for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
            shared *s = new_shared();
            filch_scope scope;
            pthread_t thread;

            open_scope(&scope, pool);
            for (int i = 0; i < 8; i++)
                assert_int_equal(filch_scope_spawn(NULL, &scope, call_once, s), 0);
            assert_int_equal(pthread_create(&thread, NULL, once_on_thread, s), 0);
            assert_int_equal(filch_scope_close(NULL, &scope), 0);
            assert_int_equal(pthread_join(thread, NULL), 0);

            assert_int_equal(s->plain, 3);
            assert_int_equal(counter_get(&s->a), 7);
            assert_int_equal(counter_get(&s->b), 2);
            free(s);
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    }
}

static int call_till_gate(filch_frame *f, void *arg)
{
    shared *s = arg;
    counter_add(&s->c, 1);
    return filch_event_wait(f, &s->gate);
}

static int once_till_gate(filch_frame *f, void *arg)
{
    return filch_once_call(f, &((shared *)arg)->once, call_till_gate, arg);
}

TEST(a_waiter_calls_when_the_first_call_was_cancelled)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope first, waits, other;

    open_scope(&first, pool);
    open_scope(&waits, pool);
    open_scope(&other, pool);
    assert_int_equal(filch_scope_spawn(NULL, &first, once_till_gate, s), 0);
    UNTIL(WAITERS(&s->gate) == 1);
    assert_int_equal(filch_scope_spawn(NULL, &waits, once_till_gate, s), 0);
    UNTIL(WAITERS(&s->once) == 1);
    assert_int_equal(filch_scope_spawn(NULL, &other, once_till_gate, s), 0);
    UNTIL(WAITERS(&s->once) == 2);
    filch_scope_cancel(&waits);
    assert_int_equal(filch_scope_close(NULL, &waits), -ECANCELED);
    filch_scope_cancel(&first);
    assert_int_equal(filch_scope_close(NULL, &first), -ECANCELED);
    UNTIL(counter_get(&s->c) == 2);
    filch_event_set(&s->gate);

    assert_int_equal(filch_scope_close(NULL, &other), 0);
    assert_int_equal(filch_once_call(NULL, &s->once, call_till_gate, s), 0);
    assert_int_equal(counter_get(&s->c), 2);
    free(s);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_semaphore_counts),
        cmocka_unit_test(units_go_to_waiters_and_the_rest_is_counted),
        cmocka_unit_test(units_go_past_cancelled_waiters),
        cmocka_unit_test(an_event_lets_all_go_on_until_it_is_reset),
        cmocka_unit_test(a_run_is_not_cancelled_with_the_last_task_of_its_strand),
        cmocka_unit_test(a_barrier_lets_them_go_on_together),
        cmocka_unit_test(a_task_cancelled_at_a_barrier_does_not_count),
        cmocka_unit_test(a_barrier_stays_right_when_the_last_comes_as_another_is_cancelled),
        cmocka_unit_test(once_calls_until_it_succeeds_and_never_again),
        cmocka_unit_test(a_waiter_calls_when_the_first_call_was_cancelled),
    };
    return cmocka_run_group_tests_name("signal", tests, watchdog_start, watchdog_stop);
}
