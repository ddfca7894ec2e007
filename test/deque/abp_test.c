/* SPDX-License-Identifier: MIT */
/*
 * Properties of the ABP deque beyond the contract: order, a capacity that shrinks, tags that wrap.
 * deque_test.c tests the contract.
 */
#include "watchdog.h"

#include <filch/deque/abp.h>

static char entries[5000]; /* entry i is the address of entries[i] */

static void push_many(filch_abp *d, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        assert_int_equal(filch_abp_push(d, &entries[i]), 0);
}

static void steal_many(filch_abp *d, size_t first, size_t count)
{
    void *entry = NULL;

    for (size_t i = first; i < first + count; i++) {
        assert_int_equal(filch_abp_steal(d, &entry), FILCH_STEAL_WON);
        assert_ptr_equal(entry, &entries[i]);
    }
}

static void pop_one(filch_abp *d, size_t expected)
{
    void *entry = NULL;

    assert_true(filch_abp_pop(d, &entry));
    assert_ptr_equal(entry, &entries[expected]);
}

static uint64_t tag_of(filch_abp *d)
{
    /* relaxed: one thread. */
    return filch_load_relaxed(&d->age) / (d->top_mask + 1);
}

static uint64_t largest_tag(filch_abp *d)
{
    return UINT64_MAX / (d->top_mask + 1);
}

TEST(the_newest_is_popped_and_the_oldest_stolen)
{
    filch_abp d;
    void *entry = NULL;
    assert_int_equal(filch_abp_init(&d, 5), 0);

    push_many(&d, 0, 5);

    pop_one(&d, 4);
    steal_many(&d, 0, 1);
    pop_one(&d, 3);
    steal_many(&d, 1, 1);
    pop_one(&d, 2);
    assert_false(filch_abp_pop(&d, &entry));
    filch_abp_fini(&d);
}

TEST(a_capacity_is_exact)
{
    for (size_t capacity = 1; capacity < 70; capacity++) {
        filch_abp d;
        assert_int_equal(filch_abp_init(&d, capacity), 0);

        push_many(&d, 0, capacity);

        assert_int_equal(filch_abp_push(&d, &entries[capacity]), -ENOBUFS);
        assert_int_equal(filch_abp_size_hint(&d), capacity);
        filch_abp_fini(&d);
    }
}

TEST(the_default_has_room_for_1024)
{
    filch_abp d;
    assert_int_equal(filch_abp_init(&d, 0), 0);

    push_many(&d, 0, 1024);

    assert_int_equal(filch_abp_push(&d, &entries[1024]), -ENOBUFS);
    filch_abp_fini(&d);
}

/* The drawing in filch/deque/abp.h, step by step. */
TEST(stolen_entries_take_up_room_until_the_rest_is_popped)
{
    filch_abp d;
    assert_int_equal(filch_abp_init(&d, 8), 0);
    push_many(&d, 0, 8);
    steal_many(&d, 0, 6);

    assert_int_equal(filch_abp_size_hint(&d), 2);
    assert_int_equal(filch_abp_push(&d, &entries[8]), -ENOBUFS);
    pop_one(&d, 7);
    push_many(&d, 8, 1);
    assert_int_equal(filch_abp_push(&d, &entries[9]), -ENOBUFS);
    pop_one(&d, 8);
    pop_one(&d, 6);

    push_many(&d, 10, 8);
    filch_abp_fini(&d);
}

TEST(a_pop_in_vain_makes_room)
{
    filch_abp d;
    void *entry = NULL;
    assert_int_equal(filch_abp_init(&d, 4), 0);
    push_many(&d, 0, 4);
    steal_many(&d, 0, 4);

    /* Empty, but without room: the stolen entries still take it up. */
    assert_int_equal(filch_abp_size_hint(&d), 0);
    assert_int_equal(filch_abp_steal(&d, &entry), FILCH_STEAL_EMPTY);
    assert_int_equal(filch_abp_push(&d, &entries[4]), -ENOBUFS);

    assert_false(filch_abp_pop(&d, &entry));
    push_many(&d, 4, 4);
    steal_many(&d, 4, 4);
    filch_abp_fini(&d);
}

TEST(starting_again_changes_the_tag)
{
    filch_abp d;
    void *entry = NULL;
    assert_int_equal(filch_abp_init(&d, 4), 0);

    assert_false(filch_abp_pop(&d, &entry)); /* a pop of a new deque does not change the tag */
    assert_int_equal(tag_of(&d), 0);
    push_many(&d, 0, 2);
    pop_one(&d, 1);
    assert_int_equal(tag_of(&d), 0);
    pop_one(&d, 0);
    assert_int_equal(tag_of(&d), 1);
    push_many(&d, 2, 1);
    steal_many(&d, 2, 1);
    assert_int_equal(tag_of(&d), 1);
    assert_false(filch_abp_pop(&d, &entry));
    assert_int_equal(tag_of(&d), 2);
    filch_abp_fini(&d);
}

TEST(a_tag_has_32_bits_at_least_and_wraps)
{
    static const size_t capacities[] = {1, 2, 3, 1000, 1024, 4000};

    for (size_t c = 0; c < COUNT_OF(capacities); c++) {
        filch_abp d;
        assert_int_equal(filch_abp_init_at(&d, capacities[c], UINT64_MAX), 0);
        assert_true(largest_tag(&d) >= UINT32_MAX);
        assert_true(tag_of(&d) == largest_tag(&d));

        push_many(&d, 0, 1);
        pop_one(&d, 0);

        assert_int_equal(tag_of(&d), 0);
        push_many(&d, 0, capacities[c]);
        steal_many(&d, 0, capacities[c]);
        filch_abp_fini(&d);
    }
}

TEST(more_than_32_bits_of_slots_cannot_be)
{
    filch_abp d;
    assert_int_equal(filch_abp_init(&d, (size_t)UINT32_MAX + 1), -EINVAL);
}

/* Compared with an array with two ends and the same bounds. */
TEST(every_operation_behaves_like_a_plain_deque)
{
    filch_rng rng = {test_seed()};

    for (int round = 0; round < 600 / TEST_SLOWNESS; round++) {
        size_t top = 0, bottom = 0, pushed = 0, capacity = 1 + filch_rng_next(&rng) % 12;
        void *plain[12], *entry = NULL;
        filch_abp d;
        assert_int_equal(filch_abp_init_at(&d, capacity, UINT64_MAX - filch_rng_next(&rng) % 200),
                         0);

        for (int i = 0; i < 4000; i++) {
            if (filch_rng_next(&rng) % 2) {
                void *next = &entries[pushed++];
                assert_int_equal(filch_abp_push(&d, next), bottom < capacity ? 0 : -ENOBUFS);
                if (bottom < capacity)
                    plain[bottom++] = next;
            } else if (filch_rng_next(&rng) % 2) {
                assert_int_equal(filch_abp_pop(&d, &entry), bottom > top);
                if (bottom > top)
                    assert_ptr_equal(entry, plain[--bottom]);
                if (bottom == top)
                    bottom = top = 0;
            } else if (bottom > top) {
                assert_int_equal(filch_abp_steal(&d, &entry), FILCH_STEAL_WON);
                assert_ptr_equal(entry, plain[top++]);
            } else {
                assert_int_equal(filch_abp_steal(&d, &entry), FILCH_STEAL_EMPTY);
            }
            assert_int_equal(filch_abp_size_hint(&d), bottom - top);
        }

        filch_abp_fini(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_popped_and_the_oldest_stolen),
        cmocka_unit_test(a_capacity_is_exact),
        cmocka_unit_test(the_default_has_room_for_1024),
        cmocka_unit_test(stolen_entries_take_up_room_until_the_rest_is_popped),
        cmocka_unit_test(a_pop_in_vain_makes_room),
        cmocka_unit_test(starting_again_changes_the_tag),
        cmocka_unit_test(a_tag_has_32_bits_at_least_and_wraps),
        cmocka_unit_test(more_than_32_bits_of_slots_cannot_be),
        cmocka_unit_test(every_operation_behaves_like_a_plain_deque),
    };
    return cmocka_run_group_tests_name("abp", tests, watchdog_start, watchdog_stop);
}
