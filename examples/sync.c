/* SPDX-License-Identifier: MIT */
/*
 * A bakery: bakers and customers are tasks that wait for each other and block no thread.
 *
 *     event      the door opens, once, for all customers
 *     semaphore  two ovens for six bakers
 *     mutex and  a shelf with room for three loaves: bakers wait for room,
 *     condition  customers for a loaf
 *     once       the first sale starts the book
 *     barrier    all bakers clean up after the last one has finished; one of them locks the door
 */
#include <filch/filch.h>
#include <stdio.h>

enum {
    BAKERS = 6,
    CUSTOMERS = 20,
    LOAVES = 10,
    BREAD_EACH = BAKERS * LOAVES / CUSTOMERS,
    ROOM = 3
};

static struct {
    filch_event open;
    filch_sem ovens;
    filch_mutex mutex; /* protects the next two lines */
    filch_cond has_room, has_bread;
    int on_shelf, most, baked, sold;
    filch_once start_book;
    int books;
    filch_barrier clean_up;
} bakery;

/* Every wait may fail: the tasks are cancelled if one of them does not run. */
static int bake_loaf(filch_frame *f)
{
    int err = filch_sem_acquire(f, &bakery.ovens);

    if (err)
        return err;
    err = filch_sleep_ns(f, 100000);
    filch_sem_release(&bakery.ovens, 1);
    if (err || (err = filch_mutex_lock(f, &bakery.mutex)))
        return err;
    while (!err && bakery.on_shelf == ROOM)
        err = filch_cond_wait(f, &bakery.has_room, &bakery.mutex); /* holds the mutex after that */
    if (!err) {
        bakery.baked++;
        if (++bakery.on_shelf > bakery.most)
            bakery.most = bakery.on_shelf;
    }
    filch_mutex_unlock(&bakery.mutex);
    filch_cond_signal(&bakery.has_bread);
    return err;
}

static int bake(filch_frame *f, void *arg)
{
    int err = filch_event_wait(f, &bakery.open);
    (void)arg;

    for (int i = 0; !err && i < LOAVES; i++)
        err = bake_loaf(f);
    if (err)
        return err;
    int last = filch_barrier_wait(f, &bakery.clean_up);
    if (last == 1)
        printf("%d loaves are baked, the ovens are clean\n", bakery.baked);
    return last < 0 ? last : 0;
}

static int start_book(filch_frame *f, void *arg)
{
    (void)arg;
    bakery.books++;
    return filch_sleep_ns(f, 100000);
}

static int buy_loaf(filch_frame *f)
{
    int err = filch_mutex_lock(f, &bakery.mutex);

    if (err)
        return err;
    while (!err && bakery.on_shelf == 0)
        err = filch_cond_wait(f, &bakery.has_bread, &bakery.mutex);
    if (!err) {
        bakery.on_shelf--;
        bakery.sold++;
    }
    filch_mutex_unlock(&bakery.mutex);
    filch_cond_signal(&bakery.has_room);
    return err ? err : filch_once_call(f, &bakery.start_book, start_book, NULL);
}

static int buy(filch_frame *f, void *arg)
{
    int err = filch_event_wait(f, &bakery.open);
    (void)arg;

    for (int i = 0; !err && i < BREAD_EACH; i++)
        err = buy_loaf(f);
    return err;
}

static int fail(int err)
{
    fprintf(stderr, "sync: %s\n", filch_strerror(err));
    return 1;
}

int main(void)
{
    /* Tasks that wait for each other: if one cannot run, because there is no memory for its stack,
     * the others must not wait for it. */
    const filch_scope_options options = {.size = sizeof options, .cancel_on_error = true};
    filch_pool *pool;
    filch_scope day;

    filch_sem_init(&bakery.ovens, 2);
    filch_barrier_init(&bakery.clean_up, BAKERS);
    int err = filch_pool_create(&pool, NULL);
    if (!err)
        err = filch_scope_open(NULL, &day, pool, &options);
    if (err)
        return fail(err);
    for (int i = 0; !err && i < BAKERS + CUSTOMERS; i++)
        err = filch_scope_spawn(NULL, &day, i < BAKERS ? bake : buy, NULL);
    if (err)
        filch_scope_cancel(&day);
    filch_event_set(&bakery.open); /* called on a plain thread */
    int closed = filch_scope_close(NULL, &day);
    filch_pool_destroy(pool);

    if (err || closed)
        return fail(err ? err : closed);
    printf("%d are sold, %d are left, never more than %d on the shelf, %d book\n", bakery.sold,
           bakery.on_shelf, bakery.most > ROOM ? bakery.most : ROOM, bakery.books);
    return 0;
}
