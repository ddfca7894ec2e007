/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer locks: readers share, a writer is alone, and a wait that ends early blocks no
 * other.
 */
#include "sync_support.h"

static int read_till_gate(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_rwlock_read_lock_until(f, &s->rwlock, s->deadline_ns);

    if (err)
        return err;
    counter_add(&s->a, 1);
    CHECK(filch_event_wait(f, &s->gate) == 0);
    filch_rwlock_unlock(&s->rwlock);
    return 0;
}

static int write_one(filch_frame *f, void *arg)
{
    shared *s = arg;
    int err = filch_rwlock_write_lock_until(f, &s->rwlock, s->deadline_ns);

    if (err)
        return err;
    counter_add(&s->b, 1);
    filch_rwlock_unlock(&s->rwlock);
    return 0;
}

static int write_in_time(filch_frame *f, void *arg)
{
    return filch_rwlock_write_lock_until(f, &((shared *)arg)->rwlock, filch_after_ms(5));
}

TEST(readers_share_a_lock_and_a_writer_has_it_alone)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    open_scope(&scope, pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(filch_scope_spawn(NULL, &scope, read_till_gate, s), 0);
    UNTIL(counter_get(&s->a) == 5);
    assert_int_equal(filch_scope_spawn(NULL, &scope, write_one, s), 0);
    UNTIL(WAITERS(&s->rwlock) == 1);
    /* The next reader queues behind the writer. */
    assert_int_equal(filch_scope_spawn(NULL, &scope, read_till_gate, s), 0);
    UNTIL(WAITERS(&s->rwlock) == 2);
    assert_int_equal(counter_get(&s->a), 5);
    assert_int_equal(counter_get(&s->b), 0);
    filch_event_set(&s->gate);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(counter_get(&s->a), 6);
    assert_int_equal(counter_get(&s->b), 1);
    assert_int_equal(WORD(&s->rwlock), 0);
    free(s);
    watched_pool_destroy(pool);
}

/* With a deadline, the writer may have given up before the reader arrives. */
TEST(a_writer_that_gives_up_lets_the_readers_behind_it_pass)
{
    for (int by_deadline = 0; by_deadline <= 1; by_deadline++) {
        filch_pool *pool = watched_pool_of(2);
        shared *s = new_shared();
        filch_scope readers, writers;

        assert_int_equal(filch_rwlock_read_lock(NULL, &s->rwlock), 0);
        open_scope(&readers, pool);
        open_scope(&writers, pool);
        assert_int_equal(
            filch_scope_spawn(NULL, &writers, by_deadline ? write_in_time : write_one, s), 0);
        if (!by_deadline)
            UNTIL(WAITERS(&s->rwlock) == 1);
        assert_int_equal(filch_scope_spawn(NULL, &readers, read_till_gate, s), 0);
        if (!by_deadline) {
            UNTIL(WAITERS(&s->rwlock) == 2);
            assert_int_equal(counter_get(&s->a), 0);
            filch_scope_cancel(&writers);
        }
        UNTIL(counter_get(&s->a) == 1);

        assert_int_equal(filch_scope_close(NULL, &writers), by_deadline ? -ETIMEDOUT : -ECANCELED);
        filch_event_set(&s->gate);
        assert_int_equal(filch_scope_close(NULL, &readers), 0);
        filch_rwlock_unlock(&s->rwlock);
        assert_int_equal(counter_get(&s->b), 0);
        assert_int_equal(WORD(&s->rwlock), 0);
        free(s);
        watched_pool_destroy(pool);
    }
}

TEST(a_try_takes_the_lock_only_if_it_need_not_wait)
{
    filch_rwlock rwlock = {0};

    assert_true(filch_rwlock_try_read_lock(&rwlock));
    assert_true(filch_rwlock_try_read_lock(&rwlock));
    assert_false(filch_rwlock_try_write_lock(&rwlock));
    filch_rwlock_unlock(&rwlock);
    filch_rwlock_unlock(&rwlock);

    assert_true(filch_rwlock_try_write_lock(&rwlock));
    assert_false(filch_rwlock_try_read_lock(&rwlock));
    assert_false(filch_rwlock_try_write_lock(&rwlock));
    filch_rwlock_unlock(&rwlock);
    assert_int_equal(WORD(&rwlock), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_share_a_lock_and_a_writer_has_it_alone),
        cmocka_unit_test(a_try_takes_the_lock_only_if_it_need_not_wait),
        cmocka_unit_test(a_writer_that_gives_up_lets_the_readers_behind_it_pass),
    };
    return cmocka_run_group_tests_name("rwlock", tests, watchdog_start, watchdog_stop);
}
