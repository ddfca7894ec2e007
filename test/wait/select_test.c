/* SPDX-License-Identifier: MIT */
/* Select: exactly one of several cases happens. */
#include "wait/channel.h"
#include "wait/future.h"

#include "pools.h"

static filch_channel *channel_of(size_t capacity)
{
    filch_channel *channel = NULL;
    CHECK(filch_channel_create(&channel, sizeof(int), capacity) == 0);
    return channel;
}

static bool has_waiter(filch_lock *lock, filch_waiters *list)
{
    filch_lock_acquire(lock);
    bool has = list->first != NULL;
    filch_lock_release(lock);
    return has;
}

static void until_waits(filch_lock *lock, filch_waiters *list)
{
    UNTIL(has_waiter(lock, list));
}

static bool is_waited_for(filch_channel *channel)
{
    return has_waiter(&channel->lock, &channel->senders) ||
           has_waiter(&channel->lock, &channel->receivers);
}

/* One select, made by a task or by a thread. */
typedef struct one_select {
    filch_case *cases;
    unsigned count;
    int chosen;
} one_select;

static int do_select(filch_frame *f, void *arg)
{
    one_select *s = arg;
    s->chosen = filch_select(f, s->cases, s->count);
    return 0;
}

static void *select_on_thread(void *arg)
{
    do_select(NULL, arg);
    return NULL;
}

/* ---- without waiting ------------------------------------------------------------------------- */

TEST(one_ready_case_happens_and_no_other)
{
    filch_channel *full = channel_of(1), *empty = channel_of(1);
    int one = 1, two = 2, in = 0, other = 0;
    assert_int_equal(filch_channel_try_send(full, &one), 0);

    filch_case receive[] = {filch_case_receive(empty, &other), filch_case_receive(full, &in)};
    assert_int_equal(filch_select(NULL, receive, 2), 1);
    assert_int_equal(receive[1].result, 0);
    assert_int_equal(in, 1);
    assert_int_equal(filch_select_try(receive, 2), -EAGAIN);

    assert_int_equal(filch_channel_try_send(full, &one), 0);
    filch_case send[] = {filch_case_send(full, &two), filch_case_send(empty, &two)};
    assert_int_equal(filch_select_try(send, 2), 1);
    assert_int_equal(filch_channel_count(full), 1);
    assert_int_equal(filch_channel_count(empty), 1);
    assert_int_equal(filch_select_try(send, 2), -EAGAIN);

    assert_int_equal(other, 0);
    filch_channel_destroy(full);
    filch_channel_destroy(empty);
}

TEST(a_closed_channel_is_something_that_came)
{
    filch_channel *open = channel_of(0), *closed = channel_of(1);
    int value = 1;
    assert_int_equal(filch_channel_try_send(closed, &value), 0);
    filch_channel_close(closed);

    filch_case send[] = {filch_case_send(open, &value), filch_case_send(closed, &value)};
    assert_int_equal(filch_select(NULL, send, 2), 1);
    assert_int_equal(send[1].result, -EPIPE);
    filch_case receive[] = {filch_case_receive(open, &value), filch_case_receive(closed, &value)};
    assert_int_equal(filch_select(NULL, receive, 2), 1);
    assert_int_equal(receive[1].result, 0);
    assert_int_equal(filch_select(NULL, receive, 2), 1);
    assert_int_equal(receive[1].result, -EPIPE);

    filch_channel_destroy(open);
    filch_channel_destroy(closed);
}

TEST(a_future_that_is_complete_is_chosen_with_its_error)
{
    filch_future pending = FILCH_FUTURE_INIT, good = FILCH_FUTURE_INIT, bad = FILCH_FUTURE_INIT;
    filch_future again = FILCH_FUTURE_INIT;
    int value = 0;
    filch_future_set(&good, &value, 0);
    filch_future_set(&bad, NULL, -EIO);
    filch_future_set(&again, NULL, -EAGAIN);

    filch_case cases[] = {filch_case_future(&pending), filch_case_future(&good)};
    assert_int_equal(filch_select(NULL, cases, 2), 1);
    assert_int_equal(cases[1].result, 0);
    cases[1] = filch_case_future(&bad);
    assert_int_equal(filch_select_try(cases, 2), 1);
    assert_int_equal(cases[1].result, -EIO);
    cases[1] = filch_case_future(&again);
    assert_int_equal(filch_select_try(cases, 2), 1);
    assert_int_equal(cases[1].result, -EAGAIN);
    assert_int_equal(filch_select_try(cases, 1), -EAGAIN);
}

TEST(a_time_comes_also_if_it_has_passed)
{
    filch_channel *channel = channel_of(0);
    int value = 1;
    filch_case cases[] = {filch_case_send(channel, &value), filch_case_time(FILCH_NO_DEADLINE),
                          filch_case_time(filch_after_ns(200000)),
                          filch_case_receive(channel, &value)};

    assert_int_equal(filch_select_try(cases, 2), -EAGAIN);
    assert_int_equal(filch_select(NULL, cases, 4), 2);
    assert_int_equal(cases[2].result, 0);
    assert_int_equal(filch_select_try(cases, 4), 2);
    assert_int_equal(filch_select(NULL, cases + 2, 1), 0);

    assert_false(is_waited_for(channel));
    filch_channel_destroy(channel);
}

TEST(wrong_arguments_are_errors)
{
    filch_channel *channel = channel_of(1);
    int value = 1;
    filch_case cases[65];
    for (int i = 0; i < 65; i++)
        cases[i] = filch_case_send(channel, &value);
    filch_case off = {.kind = FILCH_CASE_NONE}, no_channel = filch_case_send(NULL, &value),
               no_entry = filch_case_receive(channel, NULL), no_future = filch_case_future(NULL),
               unknown = {.kind = (filch_case_kind)77};
    filch_future future = FILCH_FUTURE_INIT, *futures[65] = {&future, NULL};

    assert_int_equal(filch_select(NULL, cases, 0), -EINVAL);
    assert_int_equal(filch_select(NULL, cases, 65), -EINVAL);
    assert_int_equal(filch_select(NULL, NULL, 1), -EINVAL);
    assert_int_equal(filch_select(NULL, &off, 1), -EINVAL);
    assert_int_equal(filch_select(NULL, &no_channel, 1), -EINVAL);
    assert_int_equal(filch_select(NULL, &no_entry, 1), -EINVAL);
    assert_int_equal(filch_select(NULL, &no_future, 1), -EINVAL);
    assert_int_equal(filch_select_try(&unknown, 1), -EINVAL);
    assert_int_equal(filch_future_wait_any(NULL, futures, 0, FILCH_NO_DEADLINE), -EINVAL);
    assert_int_equal(filch_future_wait_any(NULL, futures, 2, FILCH_NO_DEADLINE), -EINVAL);
    assert_int_equal(filch_future_wait_any(NULL, futures, 65, FILCH_NO_DEADLINE), -EINVAL);
    assert_int_equal(filch_future_wait_any(NULL, NULL, 1, FILCH_NO_DEADLINE), -EINVAL);

    cases[3] = off;
    assert_in_range(filch_select(NULL, cases, 64), 0, 63);
    filch_channel_destroy(channel);
}

TEST(of_several_that_can_be_done_each_is_chosen_about_as_often)
{
    enum { CASES = 4, ROUNDS = 4000 };
    filch_channel *channels[CASES];
    filch_case cases[CASES + 1];
    int value = 0, chosen_count[CASES + 1] = {0};
    for (unsigned i = 0; i < CASES; i++) {
        channels[i] = channel_of(1);
        cases[i] = filch_case_receive(channels[i], &value);
        assert_int_equal(filch_channel_try_send(channels[i], &value), 0);
    }
    cases[CASES] = filch_case_receive(channels[1], &value); /* the same channel a second time */

    for (int i = 0; i < ROUNDS; i++) {
        int chosen = filch_select(NULL, cases, CASES + 1);
        assert_in_range(chosen, 0, CASES);
        chosen_count[chosen]++;
        assert_int_equal(filch_channel_try_send(cases[chosen].channel, &value), 0);
    }

    /* Chance leaves this range in less than one of a million runs. */
    for (unsigned i = 0; i <= CASES; i++)
        assert_in_range(chosen_count[i], ROUNDS / (CASES + 1) * 3 / 4,
                        ROUNDS / (CASES + 1) * 5 / 4);
    for (unsigned i = 0; i < CASES; i++)
        filch_channel_destroy(channels[i]);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A select waits to send, to receive, and for a future. The test lets one of them happen. */
static void let_one_come(filch_pool *pool, int which, bool is_task, bool by_close)
{
    filch_channel *out = channel_of(0), *in = channel_of(0);
    filch_future future = FILCH_FUTURE_INIT;
    int sent = 5, received = 0, value = 6;
    filch_case cases[] = {filch_case_send(out, &sent), filch_case_receive(in, &received),
                          filch_case_future(&future), filch_case_time(FILCH_NO_DEADLINE)};
    one_select s = {cases, 4, -1};
    pthread_t thread;
    filch_scope scope;
    open_scope(&scope, pool);
    if (is_task)
        CHECK(filch_scope_spawn(NULL, &scope, do_select, &s) == 0);
    else
        CHECK(pthread_create(&thread, NULL, select_on_thread, &s) == 0);
    until_waits(filch_future_lock(&future), filch_future_waiters(&future));

    if (which == 2)
        filch_future_set(&future, &value, -EIO);
    else if (by_close)
        filch_channel_close(which == 0 ? out : in);
    else if (which == 0)
        assert_int_equal(filch_channel_try_receive(out, &value), 0);
    else
        assert_int_equal(filch_channel_try_send(in, &value), 0);

    if (!is_task)
        CHECK(pthread_join(thread, NULL) == 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(s.chosen, which);
    assert_int_equal(cases[which].result, which == 2 ? -EIO : by_close ? -EPIPE : 0);
    assert_int_equal(value, which == 0 && !by_close ? 5 : 6);
    assert_int_equal(received, which == 1 && !by_close ? 6 : 0);
    assert_false(is_waited_for(out) || is_waited_for(in));
    assert_false(has_waiter(filch_future_lock(&future), filch_future_waiters(&future)));
    filch_channel_destroy(out);
    filch_channel_destroy(in);
}

TEST(a_select_that_waits_gets_the_first_that_comes)
{
    filch_pool *pool = watched_pool_of(2);

    for (int round = 0; round < 200 / TEST_SLOWNESS; round++)
        for (int which = 0; which < 3; which++)
            for (int flags = 0; flags < 4; flags++)
                let_one_come(pool, which, flags & 1, flags & 2);
    watched_pool_destroy(pool);
}

TEST(a_task_selects_until_a_time_and_has_done_nothing)
{
    filch_pool *pool = watched_pool_of(1);
    filch_channel *channel = channel_of(0);
    int value = 1;
    filch_case cases[] = {filch_case_send(channel, &value), filch_case_receive(channel, &value),
                          filch_case_time(filch_after_ns(300000)),
                          filch_case_time(filch_after_ns(100000))};
    one_select s = {cases, 4, -1};
    filch_scope scope;
    open_scope(&scope, pool);

    assert_int_equal(filch_scope_spawn(NULL, &scope, do_select, &s), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);

    assert_in_range(s.chosen, 2, 3);
    assert_int_equal(cases[s.chosen].result, 0);
    assert_false(is_waited_for(channel));
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

TEST(a_cancelled_select_has_done_nothing)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(0);
    int value = 1;
    filch_case cases[] = {filch_case_send(channel, &value), filch_case_receive(channel, &value)};
    one_select s = {cases, 2, 0};
    filch_scope scope;
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, do_select, &s), 0);
    until_waits(&channel->lock, &channel->senders);

    filch_scope_cancel(&scope);

    assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
    assert_int_equal(s.chosen, -ECANCELED);
    assert_false(is_waited_for(channel));
    assert_int_equal(filch_channel_try_send(channel, &value), -EAGAIN);
    assert_int_equal(filch_channel_try_receive(channel, &value), -EAGAIN);
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

TEST(a_select_does_not_meet_itself_but_another)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(0);

    for (int round = 0; round < 1000 / TEST_SLOWNESS; round++) {
        int out[2] = {10, 20}, in[2] = {0, 0};
        filch_case cases[2][4];
        one_select s[2];
        filch_scope scope;
        open_scope(&scope, pool);
        for (int i = 0; i < 2; i++) {
            cases[i][0] = filch_case_send(channel, &out[i]);
            cases[i][1] = filch_case_receive(channel, &in[i]);
            cases[i][2] = cases[i][0];
            cases[i][3] = cases[i][1];
            s[i] = (one_select){cases[i], 4, -1};
            assert_int_equal(filch_select_try(cases[i], 4), -EAGAIN);
        }

        assert_int_equal(filch_scope_spawn(NULL, &scope, do_select, &s[0]), 0);
        if (round % 2) {
            until_waits(&channel->lock, &channel->senders);
            assert_int_equal(s[0].chosen, -1);
        }
        assert_int_equal(filch_scope_spawn(NULL, &scope, do_select, &s[1]), 0);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_not_equal(s[0].chosen % 2, s[1].chosen % 2);
        int receiver = s[0].chosen % 2 ? 0 : 1;
        assert_int_equal(in[receiver], out[1 - receiver]);
        assert_int_equal(in[1 - receiver], 0);
        assert_false(is_waited_for(channel));
    }
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

/* ---- await_any ------------------------------------------------------------------------------- */

typedef struct any {
    filch_future *const *futures;
    unsigned count;
    uint64_t deadline_ns;
    int chosen;
} any;

static int await_some(filch_frame *f, void *arg)
{
    any *a = arg;
    a->chosen = filch_future_wait_any(f, a->futures, a->count, a->deadline_ns);
    return 0;
}

TEST(wait_any_returns_the_complete_future)
{
    filch_pool *pool = watched_pool_of(2);
    filch_future storage[64], *futures[64];
    filch_scope scope;

    for (unsigned which = 0; which < 64; which++) {
        for (unsigned i = 0; i < 64; i++) {
            filch_future_init(&storage[i]);
            futures[i] = &storage[i];
        }
        any a = {futures, 64, FILCH_NO_DEADLINE, -1};
        open_scope(&scope, pool);
        assert_int_equal(filch_scope_spawn(NULL, &scope, await_some, &a), 0);
        if (which % 2)
            until_waits(filch_future_lock(&storage[63]), filch_future_waiters(&storage[63]));
        filch_future_set(&storage[which], NULL, 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(a.chosen, which);
        /* A complete future wins over a deadline that has passed. */
        assert_int_equal(filch_future_wait_any(NULL, futures, 64, 0), which);
    }

    filch_future_init(&storage[0]);
    any a = {futures, 1, filch_after_ns(100000), 0};
    open_scope(&scope, pool);
    assert_int_equal(filch_scope_spawn(NULL, &scope, await_some, &a), 0);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(a.chosen, -ETIMEDOUT);
    assert_int_equal(filch_future_wait_any(NULL, futures, 1, filch_after_ns(1000)), -ETIMEDOUT);
    watched_pool_destroy(pool);
}

/* When the select returns, its caller may free the future. By then, the task that completed it must
 * not touch it any more. */
static int complete(filch_frame *f TEST_UNUSED, void *arg)
{
    CHECK(filch_future_set(arg, NULL, 0));
    return 0;
}

TEST(a_future_may_be_gone_when_the_select_has_returned)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 3000 / TEST_SLOWNESS; i++) {
        filch_future *future = malloc(sizeof *future);
        filch_scope scope;
        filch_future_init(future);
        open_scope(&scope, pool);
        assert_int_equal(filch_scope_spawn(NULL, &scope, complete, future), 0);

        assert_int_equal(filch_future_wait_any(NULL, &future, 1, FILCH_NO_DEADLINE), 0);

        free(future);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
    }
    watched_pool_destroy(pool);
}

/* ---- stress ---------------------------------------------------------------------------------- */

/* All peers select over sends and receives on all channels. Every sent entry is received. */
enum { PEERS = 6, CHANNELS = 3 };

typedef struct crowd {
    filch_channel *channels[CHANNELS];
    unsigned rounds;
    counter sent, received, sent_sum, received_sum, done;
} crowd;

typedef struct peer {
    crowd *crowd;
    filch_rng rng;
} peer;

static int mingle(filch_frame *f, void *arg)
{
    peer *p = arg;
    crowd *c = p->crowd;
    bool is_done = false;

    for (unsigned i = 0;; i++) {
        int out = (int)filch_rng_below(&p->rng, 1000), in = 0;
        filch_case cases[2 * CHANNELS + 1];
        unsigned count = 0;
        if (i == c->rounds) {
            counter_add(&c->done, 1);
            is_done = true;
        }
        for (unsigned k = 0; k < CHANNELS; k++) {
            unsigned first = (unsigned)filch_rng_below(&p->rng, CHANNELS);
            filch_channel *channel = c->channels[is_done ? k : first];
            /* A peer that is done only receives, until all are done. */
            if (!is_done)
                cases[count++] = filch_case_send(channel, &out);
            cases[count++] = filch_case_receive(channel, &in);
        }
        if (filch_rng_below(&p->rng, 4) == 0 || is_done)
            cases[count++] = filch_case_time(filch_after_ns(filch_rng_below(&p->rng, 40000)));
        int chosen = filch_select(f, cases, count);
        CHECK(chosen >= 0 && cases[chosen].result == 0);
        if (cases[chosen].kind == FILCH_CASE_SEND) {
            counter_add(&c->sent, 1);
            counter_add(&c->sent_sum, (uint64_t)out);
        } else if (cases[chosen].kind == FILCH_CASE_RECEIVE) {
            counter_add(&c->received, 1);
            counter_add(&c->received_sum, (uint64_t)in);
        } else if (is_done && counter_get(&c->done) == PEERS) {
            return 0;
        }
    }
}

static void *mingle_on_thread(void *arg)
{
    mingle(NULL, arg);
    return NULL;
}

static void run_crowd(filch_pool *pool, filch_rng *rng)
{
    crowd c = {.rounds = 1 + filch_rng_below(rng, 2000 / TEST_SLOWNESS)};
    peer peers[PEERS];
    pthread_t thread;
    filch_scope scope;

    for (unsigned i = 0; i < CHANNELS; i++)
        c.channels[i] = channel_of(filch_rng_below(rng, 2) ? 0 : filch_rng_below(rng, 3));
    open_scope(&scope, pool);
    for (unsigned i = 0; i < PEERS; i++) {
        peers[i].crowd = &c;
        filch_rng_seed(&peers[i].rng, filch_rng_next(rng));
        if (i == 0)
            CHECK(pthread_create(&thread, NULL, mingle_on_thread, &peers[i]) == 0);
        else
            CHECK(filch_scope_spawn(NULL, &scope, mingle, &peers[i]) == 0);
    }
    CHECK(filch_scope_close(NULL, &scope) == 0);
    CHECK(pthread_join(thread, NULL) == 0);

    for (unsigned i = 0; i < CHANNELS; i++) {
        CHECK(!is_waited_for(c.channels[i]));
        for (int value; filch_channel_try_receive(c.channels[i], &value) == 0;) {
            counter_add(&c.received, 1);
            counter_add(&c.received_sum, (uint64_t)value);
        }
        filch_channel_destroy(c.channels[i]);
    }
    CHECK(counter_get(&c.sent) == counter_get(&c.received));
    CHECK(counter_get(&c.sent_sum) == counter_get(&c.received_sum));
}

TEST(selects_that_meet_selects_lose_nothing)
{
    const uint64_t end_ns = filch_after_ns((uint64_t)(test_seconds() * 1e9));
    filch_rng rng;
    filch_rng_seed(&rng, test_seed());

    do {
        filch_pool *pool = watched_pool_of(1 + filch_rng_below(&rng, 8));
        for (int i = 0; i < 4; i++) {
            run_crowd(pool, &rng);
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    } while (filch_now_ns() < end_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ready_case_happens_and_no_other),
        cmocka_unit_test(a_closed_channel_is_something_that_came),
        cmocka_unit_test(a_future_that_is_complete_is_chosen_with_its_error),
        cmocka_unit_test(a_time_comes_also_if_it_has_passed),
        cmocka_unit_test(wrong_arguments_are_errors),
        cmocka_unit_test(of_several_that_can_be_done_each_is_chosen_about_as_often),
        cmocka_unit_test(a_select_that_waits_gets_the_first_that_comes),
        cmocka_unit_test(a_task_selects_until_a_time_and_has_done_nothing),
        cmocka_unit_test(a_cancelled_select_has_done_nothing),
        cmocka_unit_test(a_select_does_not_meet_itself_but_another),
        cmocka_unit_test(wait_any_returns_the_complete_future),
        cmocka_unit_test(a_future_may_be_gone_when_the_select_has_returned),
        cmocka_unit_test(selects_that_meet_selects_lose_nothing),
    };
    return cmocka_run_group_tests_name("select", tests, watchdog_start, watchdog_stop);
}
