/* SPDX-License-Identifier: MIT */
/*
 * Deques of numbers: every value is an entry, also 0 and the largest. Compiled for each kind,
 * TEST_DEQUE, and for numbers of 4 and of 8 bytes, FILCH_ENTRY.
 */
#include "watchdog.h"

#include "deque_kind.h"

static const filch_entry values[] = {0, 1, 0, (filch_entry)-1, 0x7fffffff, (filch_entry)-2, 0};

TEST(an_entry_is_as_large_as_said)
{
    assert_int_equal(sizeof(filch_entry), sizeof(FILCH_ENTRY));
    assert_int_equal(sizeof(filch_deque_slot), sizeof(FILCH_ENTRY));
}

TEST(every_value_comes_back)
{
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        filch_entry got = 77;
        deque d;
        assert_int_equal(deque_init(&d, 3), 0);

        assert_int_equal(deque_push(&d, values[i]), 0);
        assert_true(deque_pop(&d, &got));
        assert_true(got == values[i]);
        assert_false(deque_pop(&d, &got));

        assert_int_equal(deque_push(&d, values[i]), 0);
        got = 77;
        if (deque_steal(&d, &got) != FILCH_STEAL_WON)
            assert_true(deque_pop(&d, &got));
        assert_true(got == values[i]);
        assert_int_equal(deque_steal(&d, &got), FILCH_STEAL_EMPTY);
        deque_fini(&d);
    }
}

/* So many entries that the deque grows, wraps, or fills block after block. */
TEST(no_value_changes)
{
    filch_rng rng = {test_seed()};
    uint64_t in = 0, out = 0;
    filch_entry got[4], next = 0;
    deque d;
    assert_int_equal(deque_init(&d, 5), 0);

    for (int i = 0; i < 100000 / TEST_SLOWNESS; i++) {
        size_t count = 0;
        if (filch_rng_next(&rng) % 5 < 3) {
            filch_entry value = (filch_entry)filch_rng_next(&rng);
            if (deque_push(&d, value) == 0)
                in += value, next++;
        } else if (filch_rng_next(&rng) % 2) {
            count = deque_pop(&d, got);
        } else if (deque_steal_batch(&d, got, 4, &count) != FILCH_STEAL_WON) {
            count = 0;
        }
        for (size_t k = 0; k < count; k++)
            out += got[k];
    }
    while (deque_pop(&d, got))
        out += got[0];

    assert_true(next > 0);
    assert_true(in == out);
    deque_fini(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_as_large_as_said),
        cmocka_unit_test(every_value_comes_back),
        cmocka_unit_test(no_value_changes),
    };
    return cmocka_run_group_tests_name("deque_values", tests, watchdog_start, watchdog_stop);
}
