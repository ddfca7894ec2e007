/* SPDX-License-Identifier: MIT */
/* Channels with senders and receivers of all sorts. */
#include "channel_support.h"

/* Every entry of a successful send is received once, and the entries of one sender arrive in
 * order. */
enum { SIDES = 6 };

typedef struct traffic {
    filch_channel *channel;
    unsigned count; /* entries per sender */
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

static int send_some(filch_frame *f, void *arg)
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

static int receive_some(filch_frame *f, void *arg)
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
        CHECK(filch_scope_spawn(NULL, of_sender, send_some, &senders[i]) == 0);
        CHECK(filch_scope_spawn(NULL, of_receiver, receive_some, &receivers[i]) == 0);
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

TEST(nothing_is_lost_or_received_twice_although_waits_end_early)
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
        cmocka_unit_test(nothing_is_lost_or_received_twice_although_waits_end_early),
    };
    return cmocka_run_group_tests_name("channel_traffic", tests, watchdog_start, watchdog_stop);
}
