/* SPDX-License-Identifier: MIT */
/* Waits at channels that end by a close, a deadline or a cancellation; and freeing a channel. */
#include "channel_support.h"

TEST(waiters_receive_the_entries_of_a_closed_channel)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    for (int round = 0; round < 500 / TEST_SLOWNESS; round++) {
        filch_channel *channel = channel_of(sizeof(int), 4);
        one_call calls[5];
        unsigned received = 0, told = 0;
        open_scope(&scope, pool);
        let_wait(&scope, calls, 5, channel);

        for (int i = 0; i < 3; i++)
            assert_int_equal(filch_channel_try_send(channel, &i), 0);
        filch_channel_close(channel);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        for (int i = 0; i < 5; i++)
            if (calls[i].result == 0)
                received |= 1u << calls[i].value;
            else
                told += calls[i].result == -EPIPE;
        assert_int_equal(received, (1u << 3) - 1);
        assert_int_equal(told, 2);
        assert_int_equal(filch_channel_count(channel), 0);
        filch_channel_destroy(channel);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

/* Six calls wait, of tasks and of threads in turn; then the channel is closed. */
static void close_over(filch_pool *pool, filch_channel *channel, bool is_send)
{
    one_call calls[6];
    pthread_t threads[6];
    filch_scope scope;

    open_scope(&scope, pool);
    for (unsigned i = 0; i < 6; i++) {
        calls[i] = (one_call){.channel = channel, .is_send = is_send};
        if (i % 2)
            CHECK(pthread_create(&threads[i], NULL, call_on_thread, &calls[i]) == 0);
        else
            CHECK(filch_scope_spawn(NULL, &scope, do_call, &calls[i]) == 0);
    }
    if (is_send)
        until_senders(channel, 6);
    else
        until_receivers(channel, 6);

    filch_channel_close(channel);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    for (unsigned i = 0; i < 6; i++) {
        if (i % 2)
            CHECK(pthread_join(threads[i], NULL) == 0);
        assert_int_equal(calls[i].result, -EPIPE);
    }
}

TEST(closing_ends_the_waits_on_both_sides)
{
    filch_pool *pool = watched_pool_of(2);
    int value = 3;

    for (size_t capacity = 0; capacity < 2; capacity++) {
        filch_channel *channel = channel_of(sizeof(int), capacity);
        close_over(pool, channel, false);
        filch_channel_destroy(channel);

        channel = channel_of(sizeof(int), capacity);
        if (capacity)
            assert_int_equal(filch_channel_try_send(channel, &value), 0);
        close_over(pool, channel, true);
        assert_int_equal(filch_channel_count(channel), capacity);
        filch_channel_destroy(channel);
    }
    watched_pool_destroy(pool);
}

TEST(a_task_waits_until_its_deadline_and_has_sent_and_received_nothing)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(sizeof(int), 1);
    filch_scope scope;
    int value = 9;

    for (int is_send = 0; is_send < 2; is_send++) {
        one_call past = {.channel = channel, .is_send = is_send, .value = 1, .deadline_ns = 1};
        one_call soon = {.channel = channel,
                         .is_send = is_send,
                         .value = 1,
                         .deadline_ns = filch_after_ns(100000)};
        open_scope(&scope, pool);
        assert_int_equal(filch_scope_spawn(NULL, &scope, do_call, &past), 0);
        assert_int_equal(filch_scope_spawn(NULL, &scope, do_call, &soon), 0);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);

        assert_int_equal(past.result, -ETIMEDOUT);
        assert_int_equal(soon.result, -ETIMEDOUT);
        assert_int_equal(length(channel, &channel->senders), 0);
        assert_int_equal(length(channel, &channel->receivers), 0);
        if (!is_send)
            assert_int_equal(filch_channel_try_send(channel, &value), 0);
    }

    assert_int_equal(filch_channel_try_receive(channel, &value), 0);
    assert_int_equal(value, 9);
    assert_int_equal(filch_channel_try_receive(channel, &value), -EAGAIN);
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

static int call_shielded(filch_frame *f, void *arg)
{
    filch_frame *shield = filch_shield(f);
    do_call(f, arg);
    filch_unshield(f, shield);
    return 0;
}

TEST(a_cancelled_task_has_sent_and_received_nothing)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(sizeof(int), 0);
    filch_scope scope;

    for (int is_send = 0; is_send < 2; is_send++) {
        one_call calls[3], shielded = {.channel = channel, .is_send = is_send, .value = 4};
        open_scope(&scope, pool);
        for (int i = 0; i < 3; i++) {
            calls[i] = (one_call){.channel = channel, .is_send = is_send, .value = i};
            assert_int_equal(filch_scope_spawn(NULL, &scope, do_call, &calls[i]), 0);
        }
        assert_int_equal(filch_scope_spawn(NULL, &scope, call_shielded, &shielded), 0);
        if (is_send)
            until_senders(channel, 4);
        else
            until_receivers(channel, 4);

        filch_scope_cancel(&scope);

        if (is_send)
            until_senders(channel, 1);
        else
            until_receivers(channel, 1);
        int value = 4;
        assert_int_equal(is_send ? filch_channel_try_receive(channel, &value)
                                 : filch_channel_try_send(channel, &value),
                         0);
        assert_int_equal(filch_scope_close(NULL, &scope), -ECANCELED);
        assert_int_equal(value, 4);
        assert_int_equal(shielded.value, 4);
        assert_int_equal(shielded.result, 0);
        for (int i = 0; i < 3; i++)
            assert_int_equal(calls[i].result, -ECANCELED);
    }
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

static int receive_all(filch_frame *f, void *arg)
{
    one_call *c = arg;
    int value, err;
    while ((err = filch_channel_receive(f, c->channel, &value)) == 0)
        c->value += value;
    c->result = err;
    filch_channel_destroy(c->channel);
    return 0;
}

TEST(the_last_receiver_may_destroy_the_channel_at_once)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    for (int i = 0; i < 3000 / TEST_SLOWNESS; i++) {
        one_call c = {.channel = channel_of(sizeof(int), (size_t)i % 3)};
        open_scope(&scope, pool);
        assert_int_equal(filch_scope_spawn(NULL, &scope, receive_all, &c), 0);
        filch_channel *channel = c.channel;
        for (int k = 1; k < 4; k++)
            assert_int_equal(filch_channel_send(NULL, channel, &k), 0);
        filch_channel_close(channel);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(c.value, 6);
        assert_int_equal(c.result, -EPIPE);

        /* The receiver destroys a channel that was made for one entry. */
        c = (one_call){
            .channel = channel_of(sizeof(int), (size_t)i % 2), .is_send = true, .value = i};
        int value = -1;
        open_scope(&scope, pool);
        assert_int_equal(filch_scope_spawn(NULL, &scope, do_call, &c), 0);
        assert_int_equal(filch_channel_receive(NULL, c.channel, &value), 0);
        filch_channel_destroy(c.channel);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(value, i);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_receive_the_entries_of_a_closed_channel),
        cmocka_unit_test(closing_ends_the_waits_on_both_sides),
        cmocka_unit_test(a_task_waits_until_its_deadline_and_has_sent_and_received_nothing),
        cmocka_unit_test(a_cancelled_task_has_sent_and_received_nothing),
        cmocka_unit_test(the_last_receiver_may_destroy_the_channel_at_once),
    };
    return cmocka_run_group_tests_name("channel_end", tests, watchdog_start, watchdog_stop);
}
