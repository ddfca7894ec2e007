/* SPDX-License-Identifier: MIT */
/*
 * Properties of the Chase-Lev deque beyond the contract: order, indices that wrap, memory that
 * shrinks. deque_test.c tests the contract.
 */
#include "watchdog.h"

#include <sys/mman.h>

/* Counts allocations, and lets those after the first few fail. */
static unsigned allocations, allocations_max = UINT_MAX;
#define calloc(count, bytes)                                                                       \
    (allocations >= allocations_max ? NULL : (allocations++, calloc(count, bytes)))

#include <filch/deque/chaselev.h>

static char entries[1 << 20]; /* entry i is the address of entries[i] */

/* Returns the popped entry, or NULL. */
static void *pop(filch_chaselev *d)
{
    void *entry = NULL;
    bool is_popped = filch_chaselev_pop(d, &entry);

    assert_int_equal(is_popped, entry != NULL);
    return entry;
}

static uint64_t capacity_of(filch_chaselev *d)
{
    /* relaxed: one thread. */
    return filch_load_relaxed(&d->array)->mask + 1;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Indices that start here change their sign, or wrap, during a test. */
static const uint64_t starts[] = {0, 1, INT64_MAX - 3, INT64_MAX, UINT64_MAX - 3, UINT64_MAX};

TEST(the_newest_is_popped_and_the_oldest_stolen)
{
    for (size_t s = 0; s < COUNT_OF(starts); s++) {
        filch_chaselev d;
        void *entry;
        assert_int_equal(filch_chaselev_init_at(&d, 2, starts[s]), 0);

        for (int i = 0; i < 5; i++)
            assert_int_equal(filch_chaselev_push(&d, &entries[i]), 0);

        assert_ptr_equal(pop(&d), &entries[4]);
        assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);
        assert_ptr_equal(entry, &entries[0]);
        assert_ptr_equal(pop(&d), &entries[3]);
        assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);
        assert_ptr_equal(entry, &entries[1]);
        assert_ptr_equal(pop(&d), &entries[2]);
        assert_null(pop(&d));
        filch_chaselev_fini(&d);
    }
}

/* Compared with an array with two ends, for all starts of the indices and all sizes. */
TEST(every_operation_behaves_like_a_plain_deque)
{
    filch_rng rng = {test_seed()};

    for (int round = 0; round < 600 / TEST_SLOWNESS; round++) {
        size_t oldest = 0, newest = 0, pushed = 0; /* plain[oldest .. newest) */
        static void *plain[4000];
        filch_chaselev d;
        void *entry;
        uint64_t start = starts[round % COUNT_OF(starts)] + filch_rng_next(&rng) % 3;
        assert_int_equal(filch_chaselev_init_at(&d, 1 + round % 3, start), 0);

        unsigned pushes = 5;
        for (int i = 0; i < 4000; i++) {
            if (i % 100 == 0)
                pushes = 1 + (unsigned)(filch_rng_next(&rng) % 9);
            if (filch_rng_next(&rng) % 10 < pushes) {
                plain[newest++] = &entries[pushed];
                assert_int_equal(filch_chaselev_push(&d, &entries[pushed++]), 0);
            } else if (filch_rng_next(&rng) % 3) {
                void *expected = newest > oldest ? plain[--newest] : NULL;
                assert_ptr_equal(pop(&d), expected);
            } else if (newest > oldest) {
                assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);
                assert_ptr_equal(entry, plain[oldest++]);
            } else {
                assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_EMPTY);
            }
            assert_int_equal(filch_chaselev_size_hint(&d), newest - oldest);
        }

        filch_chaselev_fini(&d);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void push_many(filch_chaselev *d, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(filch_chaselev_push(d, &entries[i]), 0);
}

static void pop_all(filch_chaselev *d, size_t count)
{
    for (size_t i = count; i-- > 0;)
        assert_ptr_equal(pop(d), &entries[i]);
}

TEST(each_size_is_allocated_once)
{
    filch_chaselev d;
    allocations = 0;
    assert_int_equal(filch_chaselev_init(&d, 4), 0);

    for (int round = 0; round < 10; round++) {
        push_many(&d, 1000);
        pop_all(&d, 1000);
        while (capacity_of(&d) > 4)
            assert_null(pop(&d));
    }

    assert_int_equal(allocations, 9); /* 4, 8 ... 1024 */
    filch_chaselev_fini(&d);
}

TEST(without_memory_a_full_array_stays_full)
{
    filch_chaselev d;
    void *entry;
    allocations = 0;
    allocations_max = 2;
    assert_int_equal(filch_chaselev_init(&d, 4), 0);

    push_many(&d, 8);
    assert_int_equal(filch_chaselev_push(&d, &entries[8]), -ENOMEM);
    assert_int_equal(filch_chaselev_push(&d, &entries[8]), -ENOMEM);
    assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);
    assert_ptr_equal(entry, &entries[0]);
    assert_int_equal(filch_chaselev_push(&d, &entries[8]), 0);
    assert_int_equal(filch_chaselev_push(&d, &entries[9]), -ENOMEM);
    allocations_max = UINT_MAX;
    assert_int_equal(filch_chaselev_push(&d, &entries[9]), 0);

    for (int i = 9; i > 0; i--)
        assert_ptr_equal(pop(&d), &entries[i]);
    assert_null(pop(&d));
    filch_chaselev_fini(&d);
}

TEST(a_capacity_is_rounded_up_and_never_undercut)
{
    filch_chaselev d;

    assert_int_equal(filch_chaselev_init(&d, 5), 0);
    assert_int_equal(capacity_of(&d), 8);
    for (int i = 0; i < 3; i++)
        assert_null(pop(&d));
    assert_int_equal(capacity_of(&d), 8);
    filch_chaselev_fini(&d);

    assert_int_equal(filch_chaselev_init(&d, 0), 0);
    assert_int_equal(capacity_of(&d), FILCH_CHASELEV_CAPACITY);
    filch_chaselev_fini(&d);
    assert_int_equal(filch_chaselev_init(&d, SIZE_MAX), -EINVAL);
    assert_int_equal(filch_chaselev_init(&d, SIZE_MAX / 32), -ENOMEM);
}

/* The owner only pushes, and a thief takes every entry. */
TEST(it_shrinks_also_without_pops)
{
    filch_chaselev d;
    void *entry;
    assert_int_equal(filch_chaselev_init(&d, 4), 0);
    push_many(&d, 1000);
    for (int i = 0; i < 998; i++)
        assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);

    for (int i = 1000; i < 5000; i++) {
        assert_int_equal(filch_chaselev_push(&d, &entries[i]), 0);
        assert_int_equal(filch_chaselev_steal(&d, &entry), FILCH_STEAL_WON);
        assert_ptr_equal(entry, &entries[i - 2]);
    }

    /* Three entries are more than a quarter of 8, so it shrinks to 8 or 16. */
    assert_true(capacity_of(&d) <= 16);
    filch_chaselev_fini(&d);
}

/* Count resident pages among the slots of the array of this capacity. */
static size_t resident_pages(filch_chaselev *d, uint64_t capacity)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    static unsigned char is_resident[1 << 16];
    /* relaxed: one thread. */
    filch_chaselev_array *a = filch_load_relaxed(&d->array);

    while (a->mask + 1 < capacity)
        a = a->larger;
    uintptr_t begin = ((uintptr_t)(a + 1) + page - 1) / page * page;
    size_t pages = ((uintptr_t)(a + 1) + capacity * sizeof(void *) - begin) / page;
    assert_true(pages <= sizeof is_resident);
    assert_int_equal(mincore((void *)begin, pages * page, is_resident), 0);
    for (size_t i = 0; i < pages; i++)
        count += is_resident[i] & 1;
    return count;
}

TEST(after_a_burst_the_memory_goes_back)
{
    const uint64_t most = 1 << 19;
    filch_chaselev d;
    assert_int_equal(filch_chaselev_init(&d, 64), 0);
    push_many(&d, most);
    assert_int_equal(capacity_of(&d), most);
    size_t in_use = resident_pages(&d, most), left = 0;

    pop_all(&d, most);
    for (int i = 0; i < 4; i++)
        assert_null(pop(&d));

    assert_int_equal(capacity_of(&d), most / 16);
    for (uint64_t c = most; c >= most / 4; c /= 2)
        left += resident_pages(&d, c);
    assert_true(left < in_use / 8); /* a page of 64 KB may be shared with other memory */

    push_many(&d, most); /* the memory comes back when it is needed */
    pop_all(&d, most);
    filch_chaselev_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_popped_and_the_oldest_stolen),
        cmocka_unit_test(every_operation_behaves_like_a_plain_deque),
        cmocka_unit_test(each_size_is_allocated_once),
        cmocka_unit_test(without_memory_a_full_array_stays_full),
        cmocka_unit_test(a_capacity_is_rounded_up_and_never_undercut),
        cmocka_unit_test(it_shrinks_also_without_pops),
        cmocka_unit_test(after_a_burst_the_memory_goes_back),
    };
    return cmocka_run_group_tests_name("chaselev", tests, watchdog_start, watchdog_stop);
}
