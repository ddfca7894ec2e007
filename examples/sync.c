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

static int bake(filch_frame *f, void *arg)
{
    (void)arg;
    filch_event_wait(f, &bakery.open);
    for (int i = 0; i < LOAVES; i++) {
        filch_sem_acquire(f, &bakery.ovens);
        filch_sleep_ns(f, 100000);
        filch_sem_release(&bakery.ovens, 1);

        filch_mutex_lock(f, &bakery.mutex);
        while (bakery.on_shelf == ROOM)
            filch_cond_wait(f, &bakery.has_room, &bakery.mutex);
        bakery.baked++;
        if (++bakery.on_shelf > bakery.most)
            bakery.most = bakery.on_shelf;
        filch_mutex_unlock(&bakery.mutex);
        filch_cond_signal(&bakery.has_bread);
    }
    if (filch_barrier_wait(f, &bakery.clean_up) == 1)
        printf("%d loaves are baked, the ovens are clean\n", bakery.baked);
    return 0;
}

static int start_book(filch_frame *f, void *arg)
{
    (void)arg;
    bakery.books++;
    return filch_sleep_ns(f, 100000);
}

static int buy(filch_frame *f, void *arg)
{
    (void)arg;
    filch_event_wait(f, &bakery.open);
    for (int i = 0; i < BREAD_EACH; i++) {
        filch_mutex_lock(f, &bakery.mutex);
        while (bakery.on_shelf == 0)
            filch_cond_wait(f, &bakery.has_bread, &bakery.mutex);
        bakery.on_shelf--;
        bakery.sold++;
        filch_mutex_unlock(&bakery.mutex);
        filch_cond_signal(&bakery.has_room);
        filch_once_call(f, &bakery.start_book, start_book, NULL);
    }
    return 0;
}

int main(void)
{
    filch_pool *pool;
    filch_scope day;

    filch_sem_init(&bakery.ovens, 2);
    filch_barrier_init(&bakery.clean_up, BAKERS);
    if (filch_pool_create(&pool, NULL) || filch_scope_open(NULL, &day, pool, NULL))
        return 1;
    for (int i = 0; i < BAKERS; i++)
        filch_scope_spawn(NULL, &day, bake, NULL);
    for (int i = 0; i < CUSTOMERS; i++)
        filch_scope_spawn(NULL, &day, buy, NULL);
    filch_event_set(&bakery.open); /* called on a plain thread */
    int err = filch_scope_close(NULL, &day);
    filch_pool_destroy(pool);

    printf("%d are sold, %d are left, never more than %d on the shelf, %d book\n", bakery.sold,
           bakery.on_shelf, bakery.most > ROOM ? bakery.most : ROOM, bakery.books);
    return err != 0;
}
