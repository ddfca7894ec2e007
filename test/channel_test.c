/* SPDX-License-Identifier: MIT */
/* Channels: what they promise to tasks and to threads. */
#include "join/channel.h"

#include "watchdog.h"

#include <filch/scope.h>

static filch_channel *channel_of(size_t entry_bytes, size_t capacity)
{
    filch_channel *channel = NULL;
    CHECK(filch_channel_create(&channel, entry_bytes, capacity) == 0);
    return channel;
}

static unsigned length(filch_channel *channel, filch_waiters *list)
{
    unsigned count = 0;
    filch_lock_acquire(&channel->lock);
    for (filch_waiter *waiter = list->first; waiter; waiter = waiter->next)
        count++;
    filch_lock_release(&channel->lock);
    return count;
}

/* Go on when so many wait. */
static void until_senders(filch_channel *channel, unsigned count)
{
    while (length(channel, &channel->senders) != count)
        sched_yield();
}

static void until_receivers(filch_channel *channel, unsigned count)
{
    while (length(channel, &channel->receivers) != count)
        sched_yield();
}

/* One call, made by a task or by a thread. */
typedef struct one_call {
    filch_channel *channel;
    bool is_send;
    int value, result;
    uint64_t deadline_ns;
    counter *ended;
} one_call;

static int do_call(filch_slot *f, void *arg)
{
    one_call *c = arg;
    uint64_t deadline_ns = c->deadline_ns ? c->deadline_ns : FILCH_NO_DEADLINE;

    c->result = c->is_send ? filch_channel_send_until(f, c->channel, &c->value, deadline_ns)
                           : filch_channel_receive_until(f, c->channel, &c->value, deadline_ns);
    if (c->ended)
        counter_add(c->ended, 1);
    return 0;
}

static void *call_on_thread(void *arg)
{
    do_call(NULL, arg);
    return NULL;
}

static void open_scope(filch_scope *scope, filch_pool *pool)
{
    assert_int_equal(filch_scope_open(scope, NULL, pool, NULL), 0);
}

/* ---- one thread -------------------------------------------------------------------------------- */

TEST(entries_come_out_in_the_order_in_which_they_went_in)
{
    filch_channel *channel = channel_of(sizeof(int), 3);
    int sent = 0, received = 0;

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 1 + round % 3; i++, sent++)
            assert_int_equal(filch_channel_send(NULL, channel, &sent), 0);
        assert_int_equal(filch_channel_count(channel), (size_t)(sent - received));
        for (; received < sent; received++) {
            int value = -1;
            assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
            assert_int_equal(value, received);
        }
    }
    filch_channel_destroy(channel);
}

TEST(a_full_channel_takes_nothing_and_an_empty_one_has_nothing)
{
    for (size_t capacity = 0; capacity < 3; capacity++) {
        filch_channel *channel = channel_of(sizeof(int), capacity);
        int value = 7;

        assert_int_equal(filch_channel_try_receive(channel, &value), -EAGAIN);
        for (size_t i = 0; i < capacity; i++)
            assert_int_equal(filch_channel_try_send(channel, &value), 0);
        assert_int_equal(filch_channel_try_send(channel, &value), -EAGAIN);

        assert_int_equal(filch_channel_count(channel), capacity);
        filch_channel_destroy(channel);
    }
}

TEST(a_closed_channel_gives_what_is_in_it_and_then_says_so)
{
    filch_channel *channel = channel_of(sizeof(int), 2);
    int value = 5;
    assert_int_equal(filch_channel_try_send(channel, &value), 0);

    filch_channel_close(channel);
    filch_channel_close(channel);

    assert_int_equal(filch_channel_try_send(channel, &value), -EPIPE);
    assert_int_equal(filch_channel_send(NULL, channel, &value), -EPIPE);
    value = 0;
    assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
    assert_int_equal(value, 5);
    assert_int_equal(filch_channel_receive(NULL, channel, &value), -EPIPE);
    assert_int_equal(filch_channel_try_receive(channel, &value), -EPIPE);
    filch_channel_destroy(channel);
}

TEST(what_cannot_be_is_an_error)
{
    filch_channel *channel = NULL;
    int value = 0;

    assert_int_equal(filch_channel_create(&channel, 0, 1), -EINVAL);
    assert_int_equal(filch_channel_create(NULL, 1, 1), -EINVAL);
    assert_int_equal(filch_channel_create(&channel, SIZE_MAX, 2), -EINVAL);
    assert_int_equal(filch_channel_create(&channel, 2, SIZE_MAX), -EINVAL);
    assert_int_equal(filch_channel_create(&channel, 1, SIZE_MAX), -EINVAL);
    assert_int_equal(filch_channel_create(&channel, SIZE_MAX / 2, 1), -EINVAL);
#if !defined(TEST_TSAN) && !defined(TEST_ASAN) /* their malloc ends the program */
    assert_int_equal(filch_channel_create(&channel, SIZE_MAX / 8, 2), -ENOMEM);
#endif
    assert_null(channel);
    assert_int_equal(filch_channel_send(NULL, NULL, &value), -EINVAL);
    assert_int_equal(filch_channel_try_send(NULL, &value), -EINVAL);
    assert_int_equal(filch_channel_receive(NULL, NULL, &value), -EINVAL);
    assert_int_equal(filch_channel_try_receive(NULL, &value), -EINVAL);
    assert_int_equal(filch_channel_count(NULL), 0);
    filch_channel_close(NULL);
    filch_channel_destroy(NULL);

    channel = channel_of(sizeof value, 1);
    assert_int_equal(filch_channel_send(NULL, channel, NULL), -EINVAL);
    assert_int_equal(filch_channel_try_send(channel, NULL), -EINVAL);
    assert_int_equal(filch_channel_receive(NULL, channel, NULL), -EINVAL);
    assert_int_equal(filch_channel_try_receive(channel, NULL), -EINVAL);
    filch_channel_destroy(channel);
}

TEST(a_thread_waits_until_its_deadline_and_has_sent_and_received_nothing)
{
    filch_channel *channel = channel_of(sizeof(int), 0);
    int value = 1;

    assert_int_equal(filch_channel_send_until(NULL, channel, &value, 0), -ETIMEDOUT);
    assert_int_equal(filch_channel_send_until(NULL, channel, &value, filch_after_ns(1000)),
                     -ETIMEDOUT);
    assert_int_equal(filch_channel_receive_until(NULL, channel, &value, filch_after_ns(1000)),
                     -ETIMEDOUT);

    assert_int_equal(filch_channel_try_receive(channel, &value), -EAGAIN);
    assert_int_equal(filch_channel_try_send(channel, &value), -EAGAIN);
    filch_channel_destroy(channel);
}

/* ---- those who wait ---------------------------------------------------------------------------- */

TEST(without_capacity_sender_and_receiver_meet)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(sizeof(int), 0);
    counter ended = {0};
    filch_scope scope;

    for (int i = 0; i < 2000 / TEST_SLOWNESS; i++) {
        one_call c = {.channel = channel, .is_send = i % 2, .value = i, .ended = &ended};
        int value = i;
        open_scope(&scope, pool);
        assert_int_equal(filch_spawn(NULL, &scope, do_call, &c), 0);
        if (c.is_send)
            until_senders(channel, 1);
        else
            until_receivers(channel, 1);
        assert_int_equal(counter_get(&ended), i);
        assert_int_equal(filch_channel_count(channel), 0);

        if (c.is_send)
            assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
        else
            assert_int_equal(filch_channel_send(NULL, channel, &value), 0);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(c.result, 0);
        assert_int_equal(c.value, value);
        assert_int_equal(counter_get(&ended), i + 1);
    }
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

TEST(what_a_waiting_sender_brings_follows_what_is_in_the_channel)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(sizeof(int), 2);
    one_call calls[3];
    filch_scope scope;
    open_scope(&scope, pool);
    for (int i = 0; i < 2; i++)
        assert_int_equal(filch_channel_try_send(channel, &i), 0);
    for (int i = 0; i < 3; i++) {
        calls[i] = (one_call){.channel = channel, .is_send = true, .value = 2 + i};
        assert_int_equal(filch_spawn(NULL, &scope, do_call, &calls[i]), 0);
        until_senders(channel, (unsigned)i + 1);
    }

    unsigned brought = 0;
    for (int i = 0; i < 5; i++) {
        int value = -1;
        assert_int_equal(filch_channel_receive(NULL, channel, &value), 0);
        if (i < 2)
            assert_int_equal(value, i);
        else
            brought |= 1u << value;
    }

    assert_int_equal(brought, 1u << 2 | 1u << 3 | 1u << 4);
    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    assert_int_equal(filch_channel_count(channel), 0);
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

/* So many tasks wait to receive from a channel with room for so many, and get what the caller sends. */
static void let_wait(filch_scope *scope, one_call *calls, unsigned count, filch_channel *channel)
{
    for (unsigned i = 0; i < count; i++) {
        calls[i] = (one_call){.channel = channel, .value = -1};
        assert_int_equal(filch_spawn(NULL, scope, do_call, &calls[i]), 0);
        until_receivers(channel, i + 1);
    }
}

TEST(who_waits_longest_receives_first)
{
    filch_pool *pool = watched_pool_of(2);
    filch_channel *channel = channel_of(sizeof(int), 0);
    one_call calls[4];
    filch_scope scope;
    open_scope(&scope, pool);
    let_wait(&scope, calls, 4, channel);

    for (int i = 0; i < 4; i++)
        assert_int_equal(filch_channel_try_send(channel, &i), 0);

    assert_int_equal(filch_scope_close(NULL, &scope), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(calls[i].value, i);
    filch_channel_destroy(channel);
    watched_pool_destroy(pool);
}

TEST(what_is_sent_to_many_who_wait_is_received_once_each)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    for (int round = 0; round < 500 / TEST_SLOWNESS; round++) {
        filch_channel *channel = channel_of(sizeof(int), 2);
        one_call calls[6];
        unsigned received = 0;
        open_scope(&scope, pool);
        let_wait(&scope, calls, 6, channel);

        for (int i = 0; i < 6; i++)
            assert_int_equal(filch_channel_send(NULL, channel, &i), 0);

        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(calls[i].result, 0);
            received |= 1u << calls[i].value;
        }
        assert_int_equal(received, (1u << 6) - 1);
        filch_channel_destroy(channel);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

TEST(what_is_left_in_a_channel_that_is_closed_is_for_those_who_wait)
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

/* Tasks and threads in turn. */
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
            CHECK(filch_spawn(NULL, &scope, do_call, &calls[i]) == 0);
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

TEST(closing_tells_all_who_wait_on_either_end)
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
        assert_int_equal(filch_spawn(NULL, &scope, do_call, &past), 0);
        assert_int_equal(filch_spawn(NULL, &scope, do_call, &soon), 0);
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

static int call_shielded(filch_slot *f, void *arg)
{
    filch_slot *shield = filch_shield(f);
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
            assert_int_equal(filch_spawn(NULL, &scope, do_call, &calls[i]), 0);
        }
        assert_int_equal(filch_spawn(NULL, &scope, call_shielded, &shielded), 0);
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

static int receive_all(filch_slot *f, void *arg)
{
    one_call *c = arg;
    int value, err;
    while ((err = filch_channel_receive(f, c->channel, &value)) == 0)
        c->value += value;
    c->result = err;
    filch_channel_destroy(c->channel);
    return 0;
}

TEST(who_learns_of_the_end_may_destroy_the_channel_at_once)
{
    filch_pool *pool = watched_pool_of(2);
    filch_scope scope;

    for (int i = 0; i < 3000 / TEST_SLOWNESS; i++) {
        one_call c = {.channel = channel_of(sizeof(int), (size_t)i % 3)};
        open_scope(&scope, pool);
        assert_int_equal(filch_spawn(NULL, &scope, receive_all, &c), 0);
        filch_channel *channel = c.channel;
        for (int k = 1; k < 4; k++)
            assert_int_equal(filch_channel_send(NULL, channel, &k), 0);
        filch_channel_close(channel);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(c.value, 6);
        assert_int_equal(c.result, -EPIPE);

        /* The same with the one entry that it is for. */
        c = (one_call){
            .channel = channel_of(sizeof(int), (size_t)i % 2), .is_send = true, .value = i};
        int value = -1;
        open_scope(&scope, pool);
        assert_int_equal(filch_spawn(NULL, &scope, do_call, &c), 0);
        assert_int_equal(filch_channel_receive(NULL, c.channel, &value), 0);
        filch_channel_destroy(c.channel);
        assert_int_equal(filch_scope_close(NULL, &scope), 0);
        assert_int_equal(value, i);
        watchdog_kick();
    }
    watched_pool_destroy(pool);
}

FILCH_TASK(int, send_number, (filch_channel *, channel), (int, number))
{
    return filch_channel_send(FILCH_HERE, channel, &number);
}

FILCH_TASK(int, sum_of_forked, (filch_channel *, channel), (int, depth))
{
    int first = 0, second = 0;

    if (depth == 0)
        return 1;
    FILCH_FORK(left, send_number, channel, depth);
    FILCH_FORK(below, sum_of_forked, channel, depth - 1);
    FILCH_FORK(right, send_number, channel, depth);
    CHECK(filch_channel_receive(FILCH_HERE, channel, &first) == 0);
    CHECK(filch_channel_receive(FILCH_HERE, channel, &second) == 0);
    CHECK(FILCH_JOIN(right) == 0);
    int sum = first + second + FILCH_JOIN(below);
    CHECK(FILCH_JOIN(left) == 0);
    return sum;
}

TEST(a_task_may_wait_for_what_it_has_forked)
{
    /* What does not fit into a deque is run by its join, which comes after the wait. */
    const char *deque = getenv("FILCH_DEQUE");
    if (deque && strcmp(deque, "abp:3") == 0)
        skip();
    for (unsigned workers = 1; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);
        for (size_t capacity = 0; capacity < 3; capacity++)
            for (int round = 0; round < 200 / TEST_SLOWNESS; round++) {
                filch_channel *channel = channel_of(sizeof(int), capacity);
                assert_int_equal(FILCH_RUN(pool, sum_of_forked, channel, 9), 2 * 45 + 1);
                filch_channel_destroy(channel);
                watchdog_kick();
            }
        watched_pool_destroy(pool);
    }
}

/* ---- sizes and pools --------------------------------------------------------------------------- */

enum { SIZE_LARGEST = 70 };

typedef struct stream {
    filch_channel *channel;
    size_t bytes;
    int count;
} stream;

static int send_stream(filch_slot *f, void *arg)
{
    stream *s = arg;
    unsigned char entry[SIZE_LARGEST];
    for (int i = 0; i < s->count; i++) {
        memset(entry, i, s->bytes);
        CHECK(filch_channel_send(f, s->channel, entry) == 0);
    }
    return 0;
}

static int receive_stream(filch_slot *f, void *arg)
{
    stream *s = arg;
    unsigned char entry[SIZE_LARGEST + 1];
    for (int i = 0; i < s->count; i++) {
        memset(entry, 0xee, sizeof entry);
        CHECK(filch_channel_receive(f, s->channel, entry) == 0);
        for (size_t k = 0; k < s->bytes; k++)
            CHECK(entry[k] == i);
        CHECK(entry[s->bytes] == 0xee);
    }
    return 0;
}

TEST(entries_of_every_size_arrive_whole_also_from_pool_to_pool)
{
    filch_pool *from = watched_pool_of(1), *to = watched_pool_of(2);
    filch_scope senders, receivers;

    for (size_t bytes = 1; bytes <= SIZE_LARGEST; bytes++) {
        stream s = {channel_of(bytes, bytes % 4), bytes, 20};
        open_scope(&senders, from);
        open_scope(&receivers, to);
        assert_int_equal(filch_spawn(NULL, &senders, send_stream, &s), 0);
        assert_int_equal(filch_spawn(NULL, &receivers, receive_stream, &s), 0);
        assert_int_equal(filch_scope_close(NULL, &senders), 0);
        assert_int_equal(filch_scope_close(NULL, &receivers), 0);
        filch_channel_destroy(s.channel);
    }
    watched_pool_destroy(from);
    watched_pool_destroy(to);
}

/* ---- stress ------------------------------------------------------------------------------------ */

/* Senders and receivers of all sorts; whatever a call said was sent is received, once, and in the order of its sender. */
enum { SIDES = 6 };

typedef struct traffic {
    filch_channel *channel;
    unsigned count; /* of entries of each sender */
    counter sent, sent_sum, received, received_sum;
} traffic;

typedef struct side {
    traffic *traffic;
    unsigned index;
    filch_rng rng;
} side;

typedef struct entry {
    uint32_t sender, number;
} entry;

static int send_some(filch_slot *f, void *arg)
{
    side *s = arg;
    traffic *t = s->traffic;

    for (uint32_t i = 1; i <= t->count; i++) {
        entry e = {s->index, i};
        uint32_t way = filch_rng_below(&s->rng, 8);
        int err = way == 0 ? filch_channel_try_send(t->channel, &e)
                  : way == 1
                      ? filch_channel_send_until(f, t->channel, &e,
                                                 filch_after_ns(filch_rng_below(&s->rng, 30000)))
                      : filch_channel_send(f, t->channel, &e);
        CHECK(err == 0 || (way == 0 && err == -EAGAIN) || (way == 1 && err == -ETIMEDOUT) ||
              (f && err == -ECANCELED));
        if (err == -ECANCELED)
            break;
        if (err == 0) {
            counter_add(&t->sent, 1);
            counter_add(&t->sent_sum, i * (s->index + 1));
        }
    }
    return 0;
}

static int receive_some(filch_slot *f, void *arg)
{
    side *s = arg;
    traffic *t = s->traffic;
    uint32_t last[SIDES] = {0};

    for (;;) {
        entry e;
        uint32_t way = filch_rng_below(&s->rng, 8);
        int err = way == 0 ? filch_channel_try_receive(t->channel, &e)
                  : way == 1
                      ? filch_channel_receive_until(f, t->channel, &e,
                                                    filch_after_ns(filch_rng_below(&s->rng, 30000)))
                      : filch_channel_receive(f, t->channel, &e);
        if (err == -EPIPE || err == -ECANCELED)
            break;
        CHECK(err == 0 || (way == 0 && err == -EAGAIN) || (way == 1 && err == -ETIMEDOUT));
        if (err == 0) {
            CHECK(e.sender < SIDES && e.number > last[e.sender]);
            last[e.sender] = e.number;
            counter_add(&t->received, 1);
            counter_add(&t->received_sum, e.number * (e.sender + 1));
        }
    }
    return 0;
}

static void *send_on_thread(void *arg)
{
    send_some(NULL, arg);
    return NULL;
}

static void *receive_on_thread(void *arg)
{
    receive_some(NULL, arg);
    return NULL;
}

static void run_traffic(filch_pool *pool, size_t capacity, filch_rng *rng)
{
    traffic t = {.channel = channel_of(sizeof(entry), capacity),
                 .count = 1 + filch_rng_below(rng, 3000 / TEST_SLOWNESS)};
    side senders[SIDES], receivers[SIDES];
    pthread_t sending, receiving;
    filch_scope send_scope, cancelled_scope, receive_scope, lazy_scope;

    open_scope(&send_scope, pool);
    open_scope(&cancelled_scope, pool);
    open_scope(&receive_scope, pool);
    open_scope(&lazy_scope, pool);
    for (unsigned i = 0; i < SIDES; i++) {
        senders[i] = receivers[i] = (side){.traffic = &t, .index = i};
        filch_rng_seed(&senders[i].rng, filch_rng_next(rng));
        filch_rng_seed(&receivers[i].rng, filch_rng_next(rng));
    }
    CHECK(pthread_create(&sending, NULL, send_on_thread, &senders[0]) == 0);
    CHECK(pthread_create(&receiving, NULL, receive_on_thread, &receivers[0]) == 0);
    for (unsigned i = 1; i < SIDES; i++) {
        filch_scope *of_sender = i == 1 ? &cancelled_scope : &send_scope;
        filch_scope *of_receiver = i == 1 ? &lazy_scope : &receive_scope;
        CHECK(filch_spawn(NULL, of_sender, send_some, &senders[i]) == 0);
        CHECK(filch_spawn(NULL, of_receiver, receive_some, &receivers[i]) == 0);
    }
    while (counter_get(&t.received) < t.count / 2)
        sched_yield();
    filch_scope_cancel(&cancelled_scope);
    filch_scope_cancel(&lazy_scope);

    CHECK(pthread_join(sending, NULL) == 0);
    filch_scope_close(NULL, &cancelled_scope);
    CHECK(filch_scope_close(NULL, &send_scope) == 0);
    filch_channel_close(t.channel);
    filch_scope_close(NULL, &lazy_scope);
    CHECK(filch_scope_close(NULL, &receive_scope) == 0);
    CHECK(pthread_join(receiving, NULL) == 0);

    CHECK(counter_get(&t.received) == counter_get(&t.sent));
    CHECK(counter_get(&t.received_sum) == counter_get(&t.sent_sum));
    filch_channel_destroy(t.channel);
}

TEST(nothing_is_lost_or_received_twice_whoever_gives_up)
{
    const uint64_t end_ns = filch_after_ns((uint64_t)(test_seconds() * 1e9));
    filch_rng rng;
    filch_rng_seed(&rng, test_seed());

    do {
        filch_pool *pool = watched_pool_of(1 + filch_rng_below(&rng, 8));
        for (int i = 0; i < 4; i++) {
            run_traffic(pool, filch_rng_below(&rng, 2) ? 0 : filch_rng_below(&rng, 9), &rng);
            watchdog_kick();
        }
        watched_pool_destroy(pool);
    } while (filch_now_ns() < end_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_out_in_the_order_in_which_they_went_in),
        cmocka_unit_test(a_full_channel_takes_nothing_and_an_empty_one_has_nothing),
        cmocka_unit_test(a_closed_channel_gives_what_is_in_it_and_then_says_so),
        cmocka_unit_test(what_cannot_be_is_an_error),
        cmocka_unit_test(a_thread_waits_until_its_deadline_and_has_sent_and_received_nothing),
        cmocka_unit_test(without_capacity_sender_and_receiver_meet),
        cmocka_unit_test(what_a_waiting_sender_brings_follows_what_is_in_the_channel),
        cmocka_unit_test(who_waits_longest_receives_first),
        cmocka_unit_test(what_is_sent_to_many_who_wait_is_received_once_each),
        cmocka_unit_test(what_is_left_in_a_channel_that_is_closed_is_for_those_who_wait),
        cmocka_unit_test(closing_tells_all_who_wait_on_either_end),
        cmocka_unit_test(a_task_waits_until_its_deadline_and_has_sent_and_received_nothing),
        cmocka_unit_test(a_cancelled_task_has_sent_and_received_nothing),
        cmocka_unit_test(who_learns_of_the_end_may_destroy_the_channel_at_once),
        cmocka_unit_test(a_task_may_wait_for_what_it_has_forked),
        cmocka_unit_test(entries_of_every_size_arrive_whole_also_from_pool_to_pool),
        cmocka_unit_test(nothing_is_lost_or_received_twice_whoever_gives_up),
    };
    return cmocka_run_group_tests_name("channel", tests, watchdog_start, watchdog_stop);
}
