/* SPDX-License-Identifier: MIT */
/*
 * A soak test: for long, tasks and threads use everything at random. That is locks, channels,
 * futures, forks, calls that block, and scopes that are cancelled or reach their deadline. The
 * counts must add up; the watchdog ends a hang.
 *
 * FILCH_SOAK_SECONDS sets the duration [30], FILCH_TEST_SEED the choices.
 */
#include "watchdog.h"

#include <filch/blocking.h>
#include <filch/channel.h>
#include <filch/future.h>

#define TASKS 40
#define THREADS 3

static uint64_t end_ns;

static struct {
    filch_mutex mutex;
    uint64_t guarded, rounds; /* protected by the mutex; equal */
    filch_rwlock rwlock;
    uint64_t left, right; /* written together */
    filch_sem sem;
    counter inside;
    filch_cond cond;
    uint64_t tickets; /* protected by the mutex */
    filch_channel *channels[3];
    counter sent, received;
    counter forked, cancelled, timed_out, called;
} all;

typedef struct actor {
    filch_rng rng;
    uint64_t locked; /* how often the actor locked the mutex */
} actor;

static uint32_t below(actor *a, uint32_t n)
{
    return filch_rng_below(&a->rng, n);
}

/* A deadline that is far away, near, or in the past. */
static uint64_t some_deadline(actor *a)
{
    switch (below(a, 4)) {
    case 0:
        return filch_after_ns(below(a, 300000));
    case 1:
        return 1;
    default:
        return filch_after_ms(50);
    }
}

/* Returns whether the call succeeded. It may also time out, or be cancelled. */
static bool got(int err)
{
    CHECK(err >= 0 || err == -ETIMEDOUT || err == -ECANCELED);
    counter_add(&all.timed_out, err == -ETIMEDOUT);
    counter_add(&all.cancelled, err == -ECANCELED);
    return err >= 0;
}

static void lock_some(filch_frame *f, actor *a)
{
    if (!got(filch_mutex_lock_until(f, &all.mutex, some_deadline(a))))
        return;
    a->locked++;
    all.guarded++;
    if (below(a, 8) == 0)
        filch_yield(f);
    all.rounds++;
    CHECK(all.guarded == all.rounds);
    if (below(a, 3) == 0) {
        all.tickets++;
        filch_cond_signal(&all.cond);
    } else if (below(a, 3) == 0) {
        if (all.tickets == 0)
            got(filch_cond_wait_until(f, &all.cond, &all.mutex, some_deadline(a)));
        all.tickets -= all.tickets > 0;
    }
    filch_mutex_unlock(&all.mutex);
}

static void read_or_write(filch_frame *f, actor *a)
{
    if (below(a, 4) == 0) {
        if (!got(filch_rwlock_write_lock_until(f, &all.rwlock, some_deadline(a))))
            return;
        all.left++;
        if (below(a, 4) == 0)
            filch_yield(f);
        all.right++;
    } else {
        if (!got(filch_rwlock_read_lock_until(f, &all.rwlock, some_deadline(a))))
            return;
        if (below(a, 4) == 0)
            filch_yield(f);
        CHECK(all.left == all.right);
    }
    filch_rwlock_unlock(&all.rwlock);
}

static void be_one_of_five(filch_frame *f, actor *a)
{
    if (!got(filch_sem_acquire_until(f, &all.sem, some_deadline(a))))
        return;
    counter_add(&all.inside, 1);
    CHECK(counter_get(&all.inside) <= 5);
    if (below(a, 4) == 0)
        filch_sleep_ns(f, below(a, 50000));
    counter_add(&all.inside, -1ull);
    filch_sem_release(&all.sem, 1);
}

static void send_or_receive(filch_frame *f, actor *a)
{
    filch_channel *channel = all.channels[below(a, COUNT_OF(all.channels))];
    uint64_t value = 1 + below(a, 1000), other = 1 + below(a, 1000), in = 0;

    if (below(a, 3) == 0) {
        filch_case cases[] = {
            filch_case_receive(channel, &in),
            filch_case_send(all.channels[below(a, COUNT_OF(all.channels))], &other),
            filch_case_time(some_deadline(a)),
        };
        int chosen = filch_select(f, cases, COUNT_OF(cases));
        if (!got(chosen))
            return;
        counter_add(&all.received, chosen == 0 ? in : 0);
        counter_add(&all.sent, chosen == 1 ? other : 0);
    } else if (below(a, 2)) {
        counter_add(&all.sent, got(filch_channel_send_until(f, channel, &value, some_deadline(a)))
                                   ? value
                                   : 0);
    } else if (got(filch_channel_receive_until(f, channel, &in, some_deadline(a)))) {
        counter_add(&all.received, in);
    }
}

static void act(filch_frame *f, actor *a, int depth);

static void fork_one(filch_frame *f, void *seed)
{
    actor child = {.rng = {.state = (uintptr_t)seed}};
    counter_add(&all.forked, 1);
    act(f, &child, 1);
}

static void fork_some(filch_frame *f, actor *a)
{
    filch_frame *mark = f;

    for (uint32_t i = below(a, 4); i > 0; i--)
        f = filch_fork(f, fork_one, (void *)(uintptr_t)filch_rng_next(&a->rng));
    act(f, a, 1);
    filch_join(f, mark);
}

static int run_child(filch_frame *f, void *seed)
{
    actor child = {.rng = {.state = (uintptr_t)seed}};

    for (int i = 0; i < 3; i++)
        act(f, &child, 1);
    return below(&child, 10) == 0 ? -EDOM : 0;
}

static int compute(filch_frame *f, void *seed, void **value)
{
    run_child(f, seed);
    *value = seed;
    return 0;
}

static void open_a_scope(filch_frame *f, actor *a)
{
    filch_scope_options options = {.size = sizeof options,
                                   .deadline_ns =
                                       below(a, 2) ? 0 : filch_after_ns(below(a, 2000000)),
                                   .task_limit = below(a, 3),
                                   .cancel_on_error = below(a, 2)};
    filch_future future = FILCH_FUTURE_INIT;
    filch_scope scope;
    void *value, *seed = (void *)(uintptr_t)filch_rng_next(&a->rng);

    CHECK(filch_scope_open(f, &scope, NULL, &options) == 0);
    bool is_async = filch_future_spawn(f, &scope, &future, compute, seed) == 0;
    for (uint32_t i = below(a, 5); i > 0; i--)
        got(filch_scope_spawn(f, &scope, run_child, (void *)(uintptr_t)filch_rng_next(&a->rng)));
    if (is_async && below(a, 2) &&
        got(filch_future_get_until(f, &future, &value, some_deadline(a))))
        CHECK(value == seed);
    if (below(a, 4) == 0)
        filch_scope_cancel(&scope);
    int err = filch_scope_close(f, &scope);
    if (err != -EDOM)
        got(err);
}

static int call(void *arg)
{
    counter_add(arg, 1);
    return 3;
}

static void act(filch_frame *f, actor *a, int depth)
{
    switch (below(a, f ? (depth == 0 ? 11 : 9) : 6)) {
    case 0:
    case 1:
        lock_some(f, a);
        break;
    case 2:
        read_or_write(f, a);
        break;
    case 3:
        be_one_of_five(f, a);
        break;
    case 4:
    case 5:
        send_or_receive(f, a);
        break;
    case 6:
        got(filch_yield(f));
        break;
    case 7:
        got(filch_sleep_ns(f, below(a, 100000)));
        break;
    case 8:
        if (below(a, 10) == 0) {
            int result = filch_blocking(f, FILCH_LANE_ANY, call, &all.called);
            CHECK(!got(result) || result == 3);
        }
        break;
    case 9:
        fork_some(f, a);
        break;
    case 10:
        open_a_scope(f, a);
        break;
    }
    watchdog_kick();
}

static int act_for_long(filch_frame *f, void *seed)
{
    actor a = {.rng = {.state = (uintptr_t)seed}};

    while (filch_now_ns() < end_ns)
        act(f, &a, 0);
    return 0;
}

static void *act_as_thread(void *seed)
{
    act_for_long(NULL, seed);
    return NULL;
}

static void act_all(filch_frame *f, void *seed)
{
    filch_rng rng = {.state = *(uint64_t *)seed};
    filch_scope scope;

    CHECK(filch_scope_open(f, &scope, NULL, NULL) == 0);
    for (int i = 0; i < TASKS; i++)
        CHECK(filch_scope_spawn(f, &scope, act_for_long, (void *)(uintptr_t)filch_rng_next(&rng)) ==
              0);
    CHECK(filch_scope_close(f, &scope) == 0);
}

static void soak(unsigned workers, double seconds, uint64_t seed)
{
    filch_options options = {.size = sizeof options, .workers = workers, .stack_bytes = 128 << 10};
    filch_pool *pool = watched_pool_create(&options);
    pthread_t threads[THREADS];
    uint64_t entry, rest = 0;

    memset(&all, 0, sizeof all);
    filch_sem_init(&all.sem, 5);
    for (size_t i = 0; i < COUNT_OF(all.channels); i++)
        assert_int_equal(filch_channel_create(&all.channels[i], sizeof(uint64_t), i * 3), 0);
    end_ns = filch_now_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, act_as_thread,
                       (void *)(uintptr_t)(seed + 1 + (uint64_t)i));
    assert_int_equal(filch_run(pool, act_all, &seed), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    watched_pool_destroy(pool);

    for (size_t i = 0; i < COUNT_OF(all.channels); i++) {
        while (filch_channel_try_receive(all.channels[i], &entry) == 0)
            rest += entry;
        filch_channel_destroy(all.channels[i]);
    }
    printf("%u workers: sum %llu sent; %llu forks, %llu calls, %llu cancelled, %llu too late\n",
           workers, (unsigned long long)counter_get(&all.sent),
           (unsigned long long)counter_get(&all.forked),
           (unsigned long long)counter_get(&all.called),
           (unsigned long long)counter_get(&all.cancelled),
           (unsigned long long)counter_get(&all.timed_out));
    assert_int_equal(counter_get(&all.sent), counter_get(&all.received) + rest);
    assert_int_equal(all.guarded, all.rounds);
    assert_int_equal(counter_get(&all.inside), 0);
    for (int i = 0; i < 5; i++)
        assert_true(filch_sem_try_acquire(&all.sem));
    assert_false(filch_sem_try_acquire(&all.sem));
}

TEST(everything_at_random_loses_nothing)
{
    const char *text = getenv("FILCH_SOAK_SECONDS");
    static const unsigned worker_counts[] = {1, 2, 8};
    double seconds = text ? atof(text) : 30;

    for (size_t i = 0; i < COUNT_OF(worker_counts); i++)
        soak(worker_counts[i], seconds / COUNT_OF(worker_counts), test_seed() + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_at_random_loses_nothing)};
    return cmocka_run_group_tests_name("soak", tests, watchdog_start, watchdog_stop);
}
