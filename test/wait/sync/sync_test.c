/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals together: the last user frees them, and counts add up although waits end early.
 */
#include "sync_support.h"

/* ---- the last user frees it ------------------------------------------------------------------ */

typedef struct counted {
    filch_mutex mutex;
    unsigned references;
} counted;

static int drop(filch_frame *f, void *arg)
{
    counted *c = arg;

    CHECK(filch_mutex_lock(f, &c->mutex) == 0);
    bool is_last = --c->references == 0;
    filch_mutex_unlock(&c->mutex);
    if (is_last)
        free(c);
    return 0;
}

static int drop_read(filch_frame *f, void *arg)
{
    shared *s = arg;

    CHECK(filch_rwlock_write_lock(f, &s->rwlock) == 0);
    bool is_last = --s->plain == 0;
    filch_rwlock_unlock(&s->rwlock);
    if (is_last)
        free(s);
    return 0;
}

static int release_one(filch_frame *f TEST_UNUSED, void *arg)
{
    filch_sem_release(&((shared *)arg)->sem, 1);
    return 0;
}

static int acquire_and_free(filch_frame *f, void *arg)
{
    shared *s = arg;
    CHECK(filch_sem_acquire(f, &s->sem) == 0);
    free(s);
    return 0;
}

static int set_event(filch_frame *f TEST_UNUSED, void *arg)
{
    filch_event_set(&((shared *)arg)->event);
    return 0;
}

static int wait_and_free(filch_frame *f, void *arg)
{
    shared *s = arg;
    CHECK(filch_event_wait(f, &s->event) == 0);
    free(s);
    return 0;
}

TEST(the_last_user_may_free_the_object)
{
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        filch_scope scope;

        open_scope(&scope, pool);
        for (int i = 0; i < 4000 / TEST_SLOWNESS; i++) {
            counted *c = calloc(1, sizeof *c);
            shared *read = new_shared(), *unit = new_shared(), *event = new_shared();

            c->references = 4;
            read->plain = 3;
            for (int k = 0; k < 3; k++) {
                CHECK(filch_scope_spawn(NULL, &scope, drop, c) == 0);
                CHECK(filch_scope_spawn(NULL, &scope, drop_read, read) == 0);
            }
            drop(NULL, c);
            CHECK(filch_scope_spawn(NULL, &scope, acquire_and_free, unit) == 0);
            CHECK(filch_scope_spawn(NULL, &scope, i % 2 ? wait_and_free : set_event, event) == 0);
            release_one(NULL, unit);
            (i % 2 ? set_event : wait_and_free)(NULL, event);
        }
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        watched_pool_destroy(pool);
    }
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* Random operations, some with a deadline that passes, in scopes some of which are cancelled. Every
 * acquired unit is counted and released. */

#define UNITS 3

typedef struct stress {
    filch_pool *pool;
    uint64_t until_ns;
    filch_mutex mutex;
    filch_rwlock rwlock;
    filch_sem sem;
    filch_cond cond;
    uint64_t locked, written, tokens; /* protected by mutex, rwlock, mutex */
    counter lock_count, write_count, unit_count, token_count, taken_count;
    counter units_now;
} stress;

static uint64_t random_deadline(filch_rng *rng)
{
    switch (filch_rng_next(rng) % 4) {
    case 0:
        return filch_after_ns(filch_rng_next(rng) % 50000);
    case 1:
        return 0;
    default:
        return FILCH_NO_DEADLINE;
    }
}

static void sometimes_wait(filch_frame *f, filch_rng *rng)
{
    uint64_t r = filch_rng_next(rng);

    if (r % 4 == 0)
        filch_yield(f);
    else if (r % 64 == 1)
        filch_sleep_ns(f, r % 100000);
    else
        spin(r % 200);
}

static void one_operation(filch_frame *f, stress *s, filch_rng *rng)
{
    uint64_t deadline_ns = random_deadline(rng);

    switch (filch_rng_next(rng) % 6) {
    case 0:
    case 1:
        if (filch_mutex_lock_until(f, &s->mutex, deadline_ns))
            break;
        s->locked++;
        sometimes_wait(f, rng);
        filch_mutex_unlock(&s->mutex);
        counter_add(&s->lock_count, 1);
        break;
    case 2:
        if (filch_rwlock_read_lock_until(f, &s->rwlock, deadline_ns))
            break;
        uint64_t seen = s->written;
        sometimes_wait(f, rng);
        CHECK(seen == s->written);
        filch_rwlock_unlock(&s->rwlock);
        break;
    case 3:
        if (filch_rwlock_write_lock_until(f, &s->rwlock, deadline_ns))
            break;
        s->written++;
        sometimes_wait(f, rng);
        filch_rwlock_unlock(&s->rwlock);
        counter_add(&s->write_count, 1);
        break;
    case 4:
        if (filch_sem_acquire_until(f, &s->sem, deadline_ns))
            break;
        counter_add(&s->units_now, 1);
        CHECK(counter_get(&s->units_now) <= UNITS);
        sometimes_wait(f, rng);
        counter_add(&s->units_now, -1ull);
        filch_sem_release(&s->sem, 1);
        counter_add(&s->unit_count, 1);
        break;
    case 5:
        if (filch_mutex_lock_until(f, &s->mutex, deadline_ns))
            break;
        if (filch_rng_next(rng) % 2) {
            s->tokens++;
            counter_add(&s->token_count, 1);
            filch_cond_signal(&s->cond);
        } else {
            int err = 0;
            while (!err && s->tokens == 0)
                err = filch_cond_wait_until(f, &s->cond, &s->mutex, filch_after_ns(20000));
            if (!err) {
                s->tokens--;
                counter_add(&s->taken_count, 1);
            }
        }
        filch_mutex_unlock(&s->mutex);
        break;
    }
}

static int stress_task(filch_frame *f, void *arg)
{
    stress *s = arg;
    static counter seeds;
    filch_rng rng;

    counter_add(&seeds, 1);
    filch_rng_seed(&rng, test_seed() + counter_get(&seeds));
    for (int i = 0; i < 50 && !filch_is_cancelled(f); i++)
        one_operation(f, s, &rng);
    return 0;
}

static void *stress_thread(void *arg)
{
    stress *s = arg;
    while (filch_now_ns() < s->until_ns)
        stress_task(NULL, s);
    return NULL;
}

TEST(counts_add_up_under_stress)
{
    filch_rng rng;

    filch_rng_seed(&rng, test_seed());
    for (unsigned workers = 1; workers <= 8; workers++) {
        stress s = {.pool = watched_pool_of(workers)};
        pthread_t threads[2];

        filch_sem_init(&s.sem, UNITS);
        s.until_ns = filch_after_ns((uint64_t)(test_seconds() * 1e9 / 8));
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, stress_thread, &s), 0);
        while (filch_now_ns() < s.until_ns) {
            filch_scope scopes[2];
            for (int i = 0; i < 2; i++) {
                open_scope(&scopes[i], s.pool);
                for (int k = 0; k < 20; k++)
                    assert_int_equal(filch_scope_spawn(NULL, &scopes[i], stress_task, &s), 0);
            }
            spin(filch_rng_next(&rng) % 100000);
            filch_scope_cancel(&scopes[0]);
            filch_scope_close(NULL, &scopes[0]);
            assert_int_equal(filch_scope_close(NULL, &scopes[1]), 0);
            watchdog_kick();
        }
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);

        assert_int_equal(s.locked, counter_get(&s.lock_count));
        assert_int_equal(s.written, counter_get(&s.write_count));
        assert_int_equal(s.tokens + counter_get(&s.taken_count), counter_get(&s.token_count));
        assert_int_equal(WORD(&s.mutex), 0);
        assert_int_equal(WORD(&s.rwlock), 0);
        assert_int_equal(WORD(&s.sem), UNITS);
        assert_int_equal(WAITERS(&s.cond), 0);
        watched_pool_destroy(s.pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_user_may_free_the_object),
        cmocka_unit_test(counts_add_up_under_stress),
    };
    return cmocka_run_group_tests_name("sync", tests, watchdog_start, watchdog_stop);
}
