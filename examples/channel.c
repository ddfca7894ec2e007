/* SPDX-License-Identifier: MIT */
/* Producers and consumers share a channel; a select waits for the first of several events. */
#include <errno.h>
#include <filch/filch.h>
#include <stdio.h>

enum { PRODUCERS = 3, CONSUMERS = 2, EACH = 1000 };

struct shop {
    filch_channel *orders; /* long */
    filch_channel *sums;   /* long, one per consumer */
};

static int produce(filch_frame *f, void *arg)
{
    struct shop *shop = arg;
    int err = 0;

    for (long i = 1; i <= EACH && !err; i++)
        err = filch_channel_send(f, shop->orders, &i); /* waits while the channel is full */
    return err;
}

static int consume(filch_frame *f, void *arg)
{
    struct shop *shop = arg;
    long sum = 0, order;

    while (filch_channel_receive(f, shop->orders, &order) == 0) /* until closed and empty */
        sum += order;
    return filch_channel_send(f, shop->sums, &sum);
}

/* Add up the sums of the consumers. Stop if no sum arrives for a while. */
static int report(filch_frame *f, struct shop *shop)
{
    long total = 0, sum;
    int reports = 0;

    for (;;) {
        filch_case cases[] = {
            filch_case_receive(shop->sums, &sum),
            filch_case_time(filch_after_ms(reports < CONSUMERS ? 10000 : 1)),
        };
        switch (filch_select(f, cases, 2)) {
        case 0:
            total += sum;
            reports++;
            break;
        case 1:
            printf("%d consumers got %ld in all, and then nothing came\n", reports, total);
            return 0;
        default:
            return -ECANCELED;
        }
    }
}

static int run(filch_frame *f, void *arg)
{
    struct shop *shop = arg;
    filch_scope producers, consumers;
    int err = filch_scope_open(f, &producers, NULL, NULL);

    if (err)
        return err;
    err = filch_scope_open(f, &consumers, NULL, NULL);
    if (err) {
        filch_scope_close(f, &producers);
        return err;
    }
    for (int i = 0; i < PRODUCERS && !err; i++)
        err = filch_scope_spawn(f, &producers, produce, shop);
    for (int i = 0; i < CONSUMERS && !err; i++)
        err = filch_scope_spawn(f, &consumers, consume, shop);
    int produced = filch_scope_close(f, &producers); /* every order has been sent */
    filch_channel_close(shop->orders);
    if (!err)
        err = report(f, shop);
    int consumed = filch_scope_close(f, &consumers);
    return err ? err : produced ? produced : consumed;
}

int main(void)
{
    struct shop shop = {NULL, NULL};
    filch_pool *pool;
    filch_scope scope;

    int err = filch_pool_create(&pool, NULL);
    if (err)
        return 1;
    err = filch_channel_create(&shop.orders, sizeof(long), 16);
    if (!err)
        err = filch_channel_create(&shop.sums, sizeof(long), 0); /* sender and receiver meet */
    if (!err)
        err = filch_scope_open(NULL, &scope, pool, NULL);
    if (!err) {
        filch_scope_spawn(NULL, &scope, run, &shop);
        err = filch_scope_close(NULL, &scope);
    }
    filch_channel_destroy(shop.sums);
    filch_channel_destroy(shop.orders);
    filch_pool_destroy(pool);
    return err ? 1 : 0;
}
