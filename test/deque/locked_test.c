/* SPDX-License-Identifier: MIT */
/*
 * Properties of the deques with a lock beyond the contract: order, batches, memory, and that every
 * thread may call every function. deque_test.c tests the contract.
 */
#include "watchdog.h"

/* The number of rings that are allocated. */
static unsigned rings, rings_max;
#define calloc(count, bytes)                                                                       \
    (rings++, rings_max = rings > rings_max ? rings : rings_max, calloc(count, bytes))
#define free(memory) (rings--, free(memory))

#include <filch/deque/global.h>
#include <filch/deque/locked.h>

#undef calloc
#undef free

static char entries[100000]; /* entry i is the address of entries[i] */

/* ---- order ----------------------------------------------------------------------------------- */

/* Indices that start here change their sign, or wrap, during a test. */
static const uint64_t starts[] = {0, 1, INT64_MAX - 3, INT64_MAX, UINT64_MAX - 3, UINT64_MAX};

/* Compared with an array with two ends, for all starts of the indices. Every function of both
 * kinds. */
TEST(every_operation_behaves_like_a_plain_deque)
{
    filch_rng rng = {test_seed()};

    for (int round = 0; round < 600 / TEST_SLOWNESS; round++) {
        size_t oldest = 0, newest = 0, pushed = 0, count; /* plain[oldest .. newest) */
        static void *plain[4000];
        void *got[5] = {NULL};
        bool is_global = round % 2;
        filch_locked locked;
        filch_global global;
        size_t capacity = 1 + filch_rng_next(&rng) % 5;
        uint64_t start = starts[filch_rng_next(&rng) % COUNT_OF(starts)];
        assert_int_equal(filch_locked_init_at(&locked, capacity, start), 0);
        assert_int_equal(filch_global_init_at(&global, capacity, start), 0);

        unsigned pushes = 5;
        for (int i = 0; i < 4000; i++) {
            size_t size = newest - oldest, half = (size + 1) / 2;
            if (i % 100 == 0)
                pushes = 1 + (unsigned)(filch_rng_next(&rng) % 9);
            if (filch_rng_next(&rng) % 10 < pushes) {
                plain[newest++] = &entries[pushed];
                assert_int_equal(is_global ? filch_global_push(&global, &entries[pushed])
                                           : filch_locked_push(&locked, &entries[pushed]),
                                 0);
                pushed++;
            } else if (filch_rng_next(&rng) % 3 == 0) {
                assert_int_equal(is_global ? filch_global_pop(&global, got)
                                           : filch_locked_pop(&locked, got),
                                 size > 0);
                if (size > 0)
                    assert_ptr_equal(got[0], is_global ? plain[oldest++] : plain[--newest]);
            } else if (filch_rng_next(&rng) % 2) {
                assert_int_equal(is_global ? filch_global_steal(&global, got)
                                           : filch_locked_steal(&locked, got),
                                 size > 0 ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY);
                if (size > 0)
                    assert_ptr_equal(got[0], plain[oldest++]);
            } else {
                size_t max = filch_rng_next(&rng) % 6, expected = half < max ? half : max;
                assert_int_equal(is_global ? filch_global_steal_batch(&global, got, max, &count)
                                           : filch_locked_steal_batch(&locked, got, max, &count),
                                 expected > 0 ? FILCH_STEAL_WON : FILCH_STEAL_EMPTY);
                if (expected > 0)
                    assert_int_equal(count, expected);
                for (size_t k = 0; k < expected; k++)
                    assert_ptr_equal(got[k], plain[oldest++]);
            }
            assert_int_equal(is_global ? filch_global_size_hint(&global)
                                       : filch_locked_size_hint(&locked),
                             newest - oldest);
        }

        filch_locked_fini(&locked);
        filch_global_fini(&global);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

TEST(a_ring_that_was_too_small_is_freed_at_once)
{
    filch_locked d;
    void *entry;
    rings = rings_max = 0;
    assert_int_equal(filch_locked_init(&d, 1), 0);

    for (int i = 0; i < 10000; i++) {
        assert_int_equal(filch_locked_push(&d, &entries[i]), 0);
        assert_int_equal(rings, 1);
    }

    assert_int_equal(rings_max, 2); /* while entries are copied */
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(filch_locked_steal(&d, &entry), FILCH_STEAL_WON);
        assert_ptr_equal(entry, &entries[i]);
    }
    filch_locked_fini(&d);
    assert_int_equal(rings, 0);
}

/* ---- several threads ------------------------------------------------------------------------- */

#define THREADS 4
#define EACH (20000 / TEST_SLOWNESS)

static struct {
    filch_global global;
    filch_locked locked;
    latch ready;
    unsigned char taken[THREADS * EACH]; /* plain: only the thread that has the entry writes it */
} crowd;

static void take(void *entry)
{
    size_t i = (size_t)((char *)entry - entries);

    CHECK(i < THREADS * EACH);
    CHECK(crowd.taken[i]++ == 0);
}

/* Push entries of its own, and take as many entries of any thread. */
static void *push_and_pop(void *argument)
{
    char *first = argument, *last_of[THREADS] = {NULL};
    unsigned popped = 0, pushed = 0;
    void *entry;

    latch_open(&crowd.ready);
    latch_wait(&crowd.ready);
    while (popped < EACH) {
        for (int i = 0; i < 3 && pushed < EACH; i++)
            CHECK(filch_global_push(&crowd.global, &first[pushed++]) == 0);
        for (int i = 0; i < 3 && popped < EACH && filch_global_pop(&crowd.global, &entry); i++) {
            /* The entries of one thread come in the order of their pushes. */
            char **last = &last_of[((char *)entry - entries) / EACH];
            CHECK((char *)entry > *last);
            *last = entry;
            take(entry);
            popped++;
        }
    }
    return NULL;
}

TEST(a_global_queue_serves_everybody_in_order)
{
    pthread_t threads[THREADS];
    void *entry;
    assert_int_equal(filch_global_init(&crowd.global, 1), 0);
    memset(crowd.taken, 0, sizeof crowd.taken);
    latch_init(&crowd.ready, THREADS);

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, push_and_pop, &entries[i * EACH]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);

    for (int i = 0; i < THREADS * EACH; i++)
        assert_int_equal(crowd.taken[i], 1);
    assert_false(filch_global_pop(&crowd.global, &entry));
    filch_global_fini(&crowd.global);
}

static void *push_pop_and_steal(void *argument)
{
    char *first = argument;
    void *batch[4];
    size_t count;

    latch_open(&crowd.ready);
    latch_wait(&crowd.ready);
    for (int i = 0; i < EACH; i++) {
        CHECK(filch_locked_push(&crowd.locked, &first[i]) == 0);
        if (i % 3 == 0 && filch_locked_pop(&crowd.locked, batch))
            take(batch[0]);
        if (i % 4 == 0 &&
            filch_locked_steal_batch(&crowd.locked, batch, 4, &count) == FILCH_STEAL_WON)
            while (count-- > 0)
                take(batch[count]);
    }
    return NULL;
}

TEST(a_locked_deque_may_have_several_owners)
{
    pthread_t threads[THREADS];
    void *entry;
    assert_int_equal(filch_locked_init(&crowd.locked, 1), 0);
    memset(crowd.taken, 0, sizeof crowd.taken);
    latch_init(&crowd.ready, THREADS);

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, push_pop_and_steal, &entries[i * EACH]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    while (filch_locked_pop(&crowd.locked, &entry))
        take(entry);

    for (int i = 0; i < THREADS * EACH; i++)
        assert_int_equal(crowd.taken[i], 1);
    filch_locked_fini(&crowd.locked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_behaves_like_a_plain_deque),
        cmocka_unit_test(a_ring_that_was_too_small_is_freed_at_once),
        cmocka_unit_test(a_global_queue_serves_everybody_in_order),
        cmocka_unit_test(a_locked_deque_may_have_several_owners),
    };
    return cmocka_run_group_tests_name("locked", tests, watchdog_start, watchdog_stop);
}
