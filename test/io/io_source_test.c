/* SPDX-License-Identifier: MIT */
/*
 * The source of a worker, where rings and epoll can be made only at times. Each of them needs an
 * eventfd first, so eventfd fails as often as a test says. Run once for each way of I/O: FILCH_IO.
 */
#include "pools.h"

#include <filch/filch.h>

#include <errno.h>
#include <sys/eventfd.h>

static filch_atomic_u32 failures; /* how many calls of eventfd are still to fail */

int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);

/* The library calls this one. */
int __wrap_eventfd(unsigned value, int flags)
{
    /* relaxed: the pool has one worker. */
    uint32_t left = filch_load_relaxed(&failures);

    if (left == 0)
        return __real_eventfd(value, flags);
    filch_store_relaxed(&failures, left - 1);
    errno = EMFILE;
    return -1;
}

typedef struct late {
    int pair[2];
    latch is_started;
} late;

static void *send_when_started(void *arg)
{
    late *l = arg;

    latch_wait(&l->is_started);
    CHECK(write(l->pair[1], "x", 1) == 1);
    return NULL;
}

static void receive_late(filch_frame *f, void *arg)
{
    late *l = arg;
    char byte;
    filch_op op = filch_op_recv(l->pair[0], &byte, 1, 0);

    CHECK(filch_op_start(f, &op) == 0);
    latch_open(&l->is_started);
    CHECK(filch_op_wait(f, &op, FILCH_NO_DEADLINE) == 1 && byte == 'x');
}

/* The first operation may find neither a ring nor epoll, and epoll a moment later. */
TEST(an_operation_ends_however_often_its_source_could_not_be_made)
{
    for (uint32_t count = 0; count < 6; count++) {
        filch_pool *pool = watched_pool_of(1);
        late l;
        pthread_t sender;
        open_pair(l.pair);
        latch_init(&l.is_started, 1);
        assert_int_equal(pthread_create(&sender, NULL, send_when_started, &l), 0);
        /* relaxed: the pool's thread starts later. */
        filch_store_relaxed(&failures, count);

        assert_int_equal(filch_run(pool, receive_late, &l), 0);

        pthread_join(sender, NULL);
        watched_pool_destroy(pool);
        close(l.pair[0]);
        close(l.pair[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_ends_however_often_its_source_could_not_be_made),
    };
    return cmocka_run_group_tests_name("io_source", tests, watchdog_start, watchdog_stop);
}
