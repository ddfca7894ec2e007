/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals, among tasks and between tasks and threads: what each does, that who gives up takes nothing along, and that counts add up.
 *
 * That somebody waits is seen in the list it stands in.
 */
#include "join/sync/sync.h"

#include "child.h"

#include <filch/future.h>

/* The machine is small: let the one we wait for run. */
#define UNTIL(condition)                                                                           \
    while (!(condition))                                                                           \
    sched_yield()

static unsigned count_waiters(filch_atomic_u32 *lock, filch_list *list)
{
    unsigned count = 0;

    filch_lock_acquire((filch_lock *)lock);
    for (filch_waiter *waiter = list->first; waiter; waiter = waiter->next)
        count++;
    filch_lock_release((filch_lock *)lock);
    return count;
}

#define WAITERS(object) count_waiters(&(object)->lock, &(object)->waiters)

/* relaxed: nobody is left who changes it. */
#define WORD(object) filch_load_relaxed(&(object)->state)

static filch_scope *open_scope(filch_scope *scope, filch_pool *pool)
{
    CHECK(filch_scope_open(scope, NULL, pool, NULL) == 0);
    return scope;
}

/* What tasks of a test share. */
typedef struct shared {
    filch_mutex mutex;
    filch_rwlock rwlock;
    filch_cond cond;
    filch_sem sem;
    filch_event event, gate;
    filch_barrier barrier;
    filch_once once;
    uint64_t deadline_ns; /* of those who wait until then */
    uint64_t plain;       /* what a lock protects */
    counter a, b, c;
} shared;

static shared *new_shared(void)
{
    shared *s = calloc(1, sizeof *s);
    CHECK(s);
    s->deadline_ns = FILCH_NO_DEADLINE;
    return s;
}

/* ---- mutex ------------------------------------------------------------------------------------- */

static int add_under_mutex(filch_slot *f, void *arg)
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
            assert_int_equal(filch_spawn(NULL, &scope, add_under_mutex, s), 0);
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

static int lock_in_time(filch_slot *f, void *arg)
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
    assert_int_equal(filch_spawn(NULL, &scope, lock_in_time, s), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    assert_int_equal(filch_mutex_lock_until(NULL, &s->mutex, filch_after_ms(1)), -ETIMEDOUT);
    assert_int_equal(counter_get(&s->a), 0);
    assert_int_equal(WAITERS(&s->mutex), 0);
    filch_mutex_unlock(&s->mutex);

    /* Nobody is in the way: the deadline does not matter. */
    assert_int_equal(filch_mutex_lock_until(NULL, &s->mutex, 0), 0);
    filch_mutex_unlock(&s->mutex);
    assert_int_equal(WORD(&s->mutex), 0);
    free(s);
    watched_pool_destroy(pool);
}

TEST(a_mutex_goes_past_those_who_were_cancelled)
{
    for (unsigned workers = 1; workers <= 2; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        shared *s = new_shared();
        filch_scope cancelled, other;

        assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(filch_spawn(NULL, &cancelled, lock_in_time, s), 0);
            UNTIL(WAITERS(&s->mutex) == i + 1);
        }
        assert_int_equal(filch_spawn(NULL, &other, lock_in_time, s), 0);
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

static int lock_in_order(filch_slot *f, void *arg)
{
    const in_order *o = arg;

    CHECK(filch_mutex_lock(f, &o->s->mutex) == 0);
    CHECK(o->s->plain == o->number);
    o->s->plain++;
    filch_mutex_unlock(&o->s->mutex);
    return 0;
}

TEST(a_mutex_goes_to_those_who_wait_in_their_order)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    assert_int_equal(filch_mutex_lock(NULL, &s->mutex), 0);
    open_scope(&scope, pool);
    for (unsigned i = 0; i < 20; i++) {
        in_order o = {s, i};
        assert_int_equal(filch_spawn_copy(NULL, &scope, lock_in_order, &o, sizeof o), 0);
        UNTIL(WAITERS(&s->mutex) == i + 1);
    }
    filch_mutex_unlock(&s->mutex);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(s->plain, 20);
    free(s);
    watched_pool_destroy(pool);
}

/* The test's thread takes the mutex whenever it can. */
TEST(nobody_is_overtaken_for_ever)
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
            assert_int_equal(filch_spawn(NULL, &scope, lock_in_time, s), 0);
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

/* A lock held over all that waits. */

static int nothing(filch_slot *f, void *arg TEST_UNUSED)
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

static int hold_over_waits(filch_slot *f, void *arg)
{
    shared *s = arg;
    filch_scope scope;

    CHECK(filch_mutex_lock(f, &s->mutex) == 0);
    s->plain += FILCH_CALL_ON(f, yield_and_count, 4);
    CHECK(filch_sleep_ns(f, 1000) == 0);
    CHECK(filch_scope_open(&scope, f, NULL, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(filch_spawn(f, &scope, nothing, NULL) == 0);
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
            assert_int_equal(filch_spawn(NULL, &scope, hold_over_waits, s), 0);
        FILCH_RUN(pool, hold_in_forks, s, 4);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);

        assert_int_equal(s->plain, (30 + 31) * 32);
        free(s);
        watched_pool_destroy(pool);
    }
}

/* ---- who goes last frees it -------------------------------------------------------------------- */

typedef struct counted {
    filch_mutex mutex;
    unsigned references;
} counted;

static int drop(filch_slot *f, void *arg)
{
    counted *c = arg;

    CHECK(filch_mutex_lock(f, &c->mutex) == 0);
    bool is_last = --c->references == 0;
    filch_mutex_unlock(&c->mutex);
    if (is_last)
        free(c);
    return 0;
}

static int drop_read(filch_slot *f, void *arg)
{
    shared *s = arg;

    CHECK(filch_rwlock_write(f, &s->rwlock) == 0);
    bool is_last = --s->plain == 0;
    filch_rwlock_unlock(&s->rwlock);
    if (is_last)
        free(s);
    return 0;
}

static int release_one(filch_slot *f TEST_UNUSED, void *arg)
{
    filch_sem_release(&((shared *)arg)->sem, 1);
    return 0;
}

static int acquire_and_free(filch_slot *f, void *arg)
{
    shared *s = arg;
    CHECK(filch_sem_acquire(f, &s->sem) == 0);
    free(s);
    return 0;
}

static int set_event(filch_slot *f TEST_UNUSED, void *arg)
{
    filch_event_set(&((shared *)arg)->event);
    return 0;
}

static int wait_and_free(filch_slot *f, void *arg)
{
    shared *s = arg;
    CHECK(filch_event_wait(f, &s->event) == 0);
    free(s);
    return 0;
}

TEST(who_goes_last_may_free_what_it_waited_for)
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
                CHECK(filch_spawn(NULL, &scope, drop, c) == 0);
                CHECK(filch_spawn(NULL, &scope, drop_read, read) == 0);
            }
            drop(NULL, c);
            CHECK(filch_spawn(NULL, &scope, acquire_and_free, unit) == 0);
            CHECK(filch_spawn(NULL, &scope, i % 2 ? wait_and_free : set_event, event) == 0);
            release_one(NULL, unit);
            (i % 2 ? set_event : wait_and_free)(NULL, event);
        }
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        watched_pool_destroy(pool);
    }
}

/* ---- tasks in a circle ------------------------------------------------------------------------- */

typedef struct circle {
    filch_mutex a, b;
    filch_event has_a, has_b;
} circle;

static int a_then_b(filch_slot *f, void *arg)
{
    circle *c = arg;
    CHECK(filch_mutex_lock(f, &c->a) == 0);
    filch_event_set(&c->has_a);
    CHECK(filch_event_wait(f, &c->has_b) == 0);
    int err = filch_mutex_lock_until(f, &c->b, filch_after_ms(200));
    if (!err)
        filch_mutex_unlock(&c->b);
    filch_mutex_unlock(&c->a);
    return err;
}

static int b_then_a(filch_slot *f, void *arg)
{
    circle *c = arg;
    CHECK(filch_mutex_lock(f, &c->b) == 0);
    filch_event_set(&c->has_b);
    CHECK(filch_event_wait(f, &c->has_a) == 0);
    UNTIL(WAITERS(&c->b) == 1);
    int err = filch_mutex_lock_until(f, &c->a, filch_after_ms(1));
    if (!err)
        filch_mutex_unlock(&c->a);
    filch_mutex_unlock(&c->b);
    return err;
}

static void wait_in_a_circle(void *arg TEST_UNUSED)
{
    filch_options options = {.size = sizeof options, .workers = 2};
    filch_pool *pool;
    filch_scope scope;
    circle c = {.a = {.state = {0}}};

    CHECK(filch_pool_create(&pool, &options) == 0);
    CHECK(filch_scope_open(&scope, NULL, pool, NULL) == 0);
    CHECK(filch_spawn(NULL, &scope, a_then_b, &c) == 0);
    CHECK(filch_spawn(NULL, &scope, b_then_a, &c) == 0);
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
    skip();
#endif
    void *a, *b, *first, *second;
    unsigned waits[2], holds[2];
    ended c = run_in_child(wait_in_a_circle, NULL);

    assert_exit_code(&c, 0);
    assert_int_equal(count_of(c.text, "in a circle"), 1);
    const char *line = strstr(c.text, "  the task");
    assert_non_null(line);
    assert_int_equal(
        sscanf(line, "  the task on strand %u waits at a mutex, %p, held by the task on strand %u",
               &waits[0], &first, &holds[0]),
        3);
    line = strstr(line + 1, "  the task");
    assert_non_null(line);
    assert_int_equal(
        sscanf(line, "  the task on strand %u waits at a mutex, %p, held by the task on strand %u",
               &waits[1], &second, &holds[1]),
        3);
    line = strstr(line, "\na ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "\na %p b %p", &a, &b), 2);
    assert_ptr_equal(first, a);
    assert_ptr_equal(second, b);
    assert_int_equal(waits[0], holds[1]);
    assert_int_equal(waits[1], holds[0]);
    assert_int_not_equal(waits[0], waits[1]);
}

/* ---- reader-writer lock ------------------------------------------------------------------------ */

static int read_till_gate(filch_slot *f, void *arg)
{
    shared *s = arg;
    int err = filch_rwlock_read_until(f, &s->rwlock, s->deadline_ns);

    if (err)
        return err;
    counter_add(&s->a, 1);
    CHECK(filch_event_wait(f, &s->gate) == 0);
    filch_rwlock_unlock(&s->rwlock);
    return 0;
}

static int write_one(filch_slot *f, void *arg)
{
    shared *s = arg;
    int err = filch_rwlock_write_until(f, &s->rwlock, s->deadline_ns);

    if (err)
        return err;
    counter_add(&s->b, 1);
    filch_rwlock_unlock(&s->rwlock);
    return 0;
}

static int write_in_time(filch_slot *f, void *arg)
{
    return filch_rwlock_write_until(f, &((shared *)arg)->rwlock, filch_after_ms(5));
}

TEST(readers_share_a_lock_and_a_writer_has_it_alone)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    open_scope(&scope, pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(filch_spawn(NULL, &scope, read_till_gate, s), 0);
    UNTIL(counter_get(&s->a) == 5);
    assert_int_equal(filch_spawn(NULL, &scope, write_one, s), 0);
    UNTIL(WAITERS(&s->rwlock) == 1);
    /* One who reads stands behind the writer. */
    assert_int_equal(filch_spawn(NULL, &scope, read_till_gate, s), 0);
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

/* With a deadline it may have given up before the reader comes. */
TEST(a_writer_that_gives_up_lets_the_readers_behind_it_pass)
{
    for (int by_deadline = 0; by_deadline <= 1; by_deadline++) {
        filch_pool *pool = watched_pool_of(2);
        shared *s = new_shared();
        filch_scope readers, writers;

        assert_int_equal(filch_rwlock_read(NULL, &s->rwlock), 0);
        open_scope(&readers, pool);
        open_scope(&writers, pool);
        assert_int_equal(filch_spawn(NULL, &writers, by_deadline ? write_in_time : write_one, s),
                         0);
        if (!by_deadline)
            UNTIL(WAITERS(&s->rwlock) == 1);
        assert_int_equal(filch_spawn(NULL, &readers, read_till_gate, s), 0);
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

/* ---- condition --------------------------------------------------------------------------------- */

/* a waits, plain is what it waits for. */
static int wait_for_token(filch_slot *f, void *arg)
{
    shared *s = arg;
    int err = 0;

    CHECK(filch_mutex_lock(f, &s->mutex) == 0);
    while (!err && s->plain == 0)
        err = filch_cond_wait_until(f, &s->cond, &s->mutex, s->deadline_ns);
    /* The mutex is held, whatever has happened. */
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
            assert_int_equal(filch_spawn(NULL, &scope, wait_for_token, s), 0);
        UNTIL(WAITERS(&s->cond) == 10);
        add_tokens(s, 10);
        filch_cond_signal(&s->cond);
        UNTIL(counter_get(&s->a) == 1);
        assert_int_equal(WAITERS(&s->cond), 9);
        filch_cond_broadcast(&s->cond);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(counter_get(&s->a), 10);
        assert_int_equal(s->plain, 0);
        /* Nobody is there. */
        filch_cond_signal(&s->cond);
        filch_cond_broadcast(&s->cond);
        free(s);
        watched_pool_destroy(pool);
    }
}

TEST(a_signal_goes_past_those_who_were_cancelled)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_spawn(NULL, &cancelled, wait_for_token, s), 0);
        UNTIL(WAITERS(&s->cond) == 1);
        assert_int_equal(filch_spawn(NULL, &other, wait_for_token, s), 0);
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
    assert_int_equal(filch_spawn(NULL, &scope, wait_for_token, s), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), -ETIMEDOUT);
    assert_int_equal(wait_for_token(NULL, s), -ETIMEDOUT);
    assert_int_equal(WAITERS(&s->cond), 0);
    assert_int_equal(WORD(&s->mutex), 0);
    free(s);
    watched_pool_destroy(pool);
}

/* A queue of one place between tasks and threads. */

typedef struct place {
    filch_mutex mutex;
    filch_cond not_empty, not_full;
    uint64_t value, sum;
} place;

#define VALUES (4000 / TEST_SLOWNESS)

static int produce(filch_slot *f, void *arg)
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

static int consume(filch_slot *f, void *arg)
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
            assert_int_equal(filch_spawn(NULL, &scope, produce, &p), 0);
            if (i < 2)
                assert_int_equal(filch_spawn(NULL, &scope, consume, &p), 0);
        }
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);

        assert_int_equal(p.sum, 3ull * VALUES * (VALUES + 1) / 2);
        watched_pool_destroy(pool);
    }
}

/* ---- semaphore --------------------------------------------------------------------------------- */

static int acquire_one(filch_slot *f, void *arg)
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

TEST(units_go_to_those_who_wait_and_the_rest_is_counted)
{
    filch_pool *pool = watched_pool_of(2);
    shared *s = new_shared();
    filch_scope scope;

    filch_sem_init(&s->sem, 0);
    open_scope(&scope, pool);
    for (int i = 0; i < 5; i++)
        assert_int_equal(filch_spawn(NULL, &scope, acquire_one, s), 0);
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

TEST(units_go_past_those_who_were_cancelled)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 300 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_sem_init(&s->sem, 0);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(filch_spawn(NULL, i % 2 ? &other : &cancelled, acquire_one, s), 0);
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

/* ---- event ------------------------------------------------------------------------------------- */

static int wait_for_event(filch_slot *f, void *arg)
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
        assert_int_equal(filch_spawn(NULL, &scope, wait_for_event, s), 0);
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
    assert_int_equal(filch_spawn(NULL, &scope, wait_for_event, s), 0);
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

TEST(a_run_is_not_cancelled_with_what_ran_on_its_strand_before)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope scope;

    open_scope(&scope, pool);
    assert_int_equal(filch_spawn(NULL, &scope, wait_for_event, s), 0);
    UNTIL(WAITERS(&s->event) == 1);
    filch_scope_cancel(&scope);
    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);

    /* The test's thread takes the seat of the worker that sleeps, and its strand. */
    for (int i = 0; i < 10; i++) {
        UNTIL(filch_sleep_sleeper_count(&pool->sleep) == 1);
        assert_int_equal(FILCH_RUN(pool, sleep_a_moment, 1000), 0);
    }
    free(s);
    watched_pool_destroy(pool);
}

/* ---- barrier ----------------------------------------------------------------------------------- */

#define COMERS 7
#define BARRIER_ROUNDS (400 / TEST_SLOWNESS)

static int come(filch_slot *f, void *arg)
{
    shared *s = arg;

    for (uint64_t round = 0; round < BARRIER_ROUNDS; round++) {
        counter_add(&s->a, 1);
        int result = filch_barrier_wait(f, &s->barrier);
        CHECK(result == 0 || result == 1);
        /* All of this round have come, and none of the next can be through. */
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
            assert_int_equal(filch_spawn(NULL, &scope, come, s), 0);
        assert_int_equal(pthread_create(&thread, NULL, come_on_thread, s), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);

        assert_int_equal(counter_get(&s->a), COMERS * BARRIER_ROUNDS);
        assert_int_equal(counter_get(&s->b), BARRIER_ROUNDS);
        free(s);
        watched_pool_destroy(pool);
    }
}

static int come_once(filch_slot *f, void *arg)
{
    shared *s = arg;
    int result = filch_barrier_wait(f, &s->barrier);

    counter_add(result < 0 ? &s->c : result ? &s->b : &s->a, 1);
    return result < 0 ? result : 0;
}

TEST(who_was_cancelled_at_a_barrier_has_not_come)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_barrier_init(&s->barrier, 3);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_spawn(NULL, &cancelled, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 1);
        assert_int_equal(filch_spawn(NULL, &other, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 2);
        filch_scope_cancel(&cancelled);
        assert_int_equal(filch_scope_close(NULL, &cancelled), -ECANCELED);
        assert_int_equal(WAITERS(&s->barrier), 1);
        assert_int_equal(filch_spawn(NULL, &other, come_once, s), 0);
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

/* Whether the cancelled one is counted is decided by a race; the counts add up in both cases. */
TEST(a_barrier_stays_right_when_the_last_comes_as_another_is_cancelled)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 1000 / TEST_SLOWNESS; round++) {
        shared *s = new_shared();
        filch_scope cancelled, other;

        filch_barrier_init(&s->barrier, 2);
        open_scope(&cancelled, pool);
        open_scope(&other, pool);
        assert_int_equal(filch_spawn(NULL, &cancelled, come_once, s), 0);
        UNTIL(WAITERS(&s->barrier) == 1);
        assert_int_equal(filch_spawn(NULL, &other, come_once, s), 0);
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

/* ---- once -------------------------------------------------------------------------------------- */

/* The first two calls fail. */
static int third_time_lucky(filch_slot *f, void *arg)
{
    shared *s = arg;

    s->plain++;
    CHECK(filch_yield(f) == 0);
    return s->plain < 3 ? -EIO : 0;
}

static int call_once(filch_slot *f, void *arg)
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
                assert_int_equal(filch_spawn(NULL, &scope, call_once, s), 0);
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

static int call_till_gate(filch_slot *f, void *arg)
{
    shared *s = arg;
    counter_add(&s->c, 1);
    return filch_event_wait(f, &s->gate);
}

static int once_till_gate(filch_slot *f, void *arg)
{
    return filch_once_call(f, &((shared *)arg)->once, call_till_gate, arg);
}

TEST(one_who_waits_calls_when_the_first_was_cancelled)
{
    filch_pool *pool = watched_pool_of(1);
    shared *s = new_shared();
    filch_scope first, waits, other;

    open_scope(&first, pool);
    open_scope(&waits, pool);
    open_scope(&other, pool);
    assert_int_equal(filch_spawn(NULL, &first, once_till_gate, s), 0);
    UNTIL(WAITERS(&s->gate) == 1);
    assert_int_equal(filch_spawn(NULL, &waits, once_till_gate, s), 0);
    UNTIL(WAITERS(&s->once) == 1);
    assert_int_equal(filch_spawn(NULL, &other, once_till_gate, s), 0);
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

/* ---- period ------------------------------------------------------------------------------------ */

TEST(a_period_does_not_drift_and_counts_what_was_missed)
{
    uint64_t start_ns = filch_now_ns();
    filch_period period;

    filch_period_init(&period, start_ns, 2000000);
    for (uint64_t i = 0; i < 5; i++) {
        uint64_t beats = i + period.missed;
        assert_int_equal(filch_period_wait(NULL, &period), 0);
        assert_true(filch_now_ns() >= start_ns + beats * 2000000);
        assert_int_equal(period.next_ns, start_ns + (i + 1 + period.missed) * 2000000);
    }

    /* Long ago, with a long period. */
    uint64_t long_ns = start_ns / 4;
    filch_period_init(&period, start_ns - 2 * long_ns - long_ns / 2, long_ns);
    assert_int_equal(filch_period_wait(NULL, &period), 0);
    assert_int_equal(period.missed, 2);
    assert_int_equal(period.next_ns, start_ns + long_ns - long_ns / 2);
}

static int beat(filch_slot *f, void *arg)
{
    filch_period period;

    filch_period_init(&period, filch_now_ns(), 1000000);
    for (;;) {
        int err = filch_period_wait(f, &period);
        if (err)
            return err;
        counter_add(arg, 1);
    }
}

TEST(a_period_ends_when_the_task_is_cancelled)
{
    filch_pool *pool = watched_pool_of(1);
    counter beats = {0};
    filch_scope scope;

    open_scope(&scope, pool);
    assert_int_equal(filch_spawn(NULL, &scope, beat, &beats), 0);
    UNTIL(counter_get(&beats) >= 3);
    filch_scope_cancel(&scope);

    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
    watched_pool_destroy(pool);
}

/* ---- all at once ------------------------------------------------------------------------------- */

/* Random operations, some of them with a deadline that passes, in scopes some of which are cancelled. Whatever is got is counted and given back. */

#define UNITS 3

typedef struct stress {
    filch_pool *pool;
    uint64_t until_ns;
    filch_mutex mutex;
    filch_rwlock rwlock;
    filch_sem sem;
    filch_cond cond;
    uint64_t locked, written, tokens; /* under the mutex, the rwlock, the mutex */
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

static void sometimes_wait(filch_slot *f, filch_rng *rng)
{
    uint64_t r = filch_rng_next(rng);

    if (r % 4 == 0)
        filch_yield(f);
    else if (r % 64 == 1)
        filch_sleep_ns(f, r % 100000);
    else
        spin(r % 200);
}

static void one_operation(filch_slot *f, stress *s, filch_rng *rng)
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
        if (filch_rwlock_read_until(f, &s->rwlock, deadline_ns))
            break;
        uint64_t seen = s->written;
        sometimes_wait(f, rng);
        CHECK(seen == s->written);
        filch_rwlock_unlock(&s->rwlock);
        break;
    case 3:
        if (filch_rwlock_write_until(f, &s->rwlock, deadline_ns))
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

static int stress_task(filch_slot *f, void *arg)
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
                    assert_int_equal(filch_spawn(NULL, &scopes[i], stress_task, &s), 0);
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
        cmocka_unit_test(a_mutex_has_one_holder_among_tasks_and_threads),
        cmocka_unit_test(a_mutex_that_is_held_cannot_be_had_by_trying),
        cmocka_unit_test(a_mutex_is_not_had_after_the_deadline),
        cmocka_unit_test(a_mutex_goes_past_those_who_were_cancelled),
        cmocka_unit_test(a_mutex_goes_to_those_who_wait_in_their_order),
        cmocka_unit_test(nobody_is_overtaken_for_ever),
        cmocka_unit_test(a_mutex_may_be_held_over_a_join_a_wait_and_a_scope),
        cmocka_unit_test(who_goes_last_may_free_what_it_waited_for),
        cmocka_unit_test(tasks_that_wait_in_a_circle_are_named),
        cmocka_unit_test(readers_share_a_lock_and_a_writer_has_it_alone),
        cmocka_unit_test(a_writer_that_gives_up_lets_the_readers_behind_it_pass),
        cmocka_unit_test(a_signal_lets_one_go_on_and_a_broadcast_all),
        cmocka_unit_test(a_signal_goes_past_those_who_were_cancelled),
        cmocka_unit_test(the_mutex_is_held_after_a_deadline),
        cmocka_unit_test(a_queue_with_conditions_loses_nothing),
        cmocka_unit_test(a_semaphore_counts),
        cmocka_unit_test(units_go_to_those_who_wait_and_the_rest_is_counted),
        cmocka_unit_test(units_go_past_those_who_were_cancelled),
        cmocka_unit_test(an_event_lets_all_go_on_until_it_is_reset),
        cmocka_unit_test(a_run_is_not_cancelled_with_what_ran_on_its_strand_before),
        cmocka_unit_test(a_barrier_lets_them_go_on_together),
        cmocka_unit_test(who_was_cancelled_at_a_barrier_has_not_come),
        cmocka_unit_test(a_barrier_stays_right_when_the_last_comes_as_another_is_cancelled),
        cmocka_unit_test(once_calls_until_it_succeeds_and_never_again),
        cmocka_unit_test(one_who_waits_calls_when_the_first_was_cancelled),
        cmocka_unit_test(a_period_does_not_drift_and_counts_what_was_missed),
        cmocka_unit_test(a_period_ends_when_the_task_is_cancelled),
        cmocka_unit_test(counts_add_up_under_stress),
    };
    return cmocka_run_group_tests_name("sync", tests, watchdog_start, watchdog_stop);
}
