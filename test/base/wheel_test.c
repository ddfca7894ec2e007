/* SPDX-License-Identifier: MIT */
#include "base/wheel.h"

#include "support.h"

#define ENTRIES 2000

static filch_wheel wheel;
static filch_wheel_entry entries[ENTRIES];

static int setup(void **state TEST_UNUSED)
{
    memset(entries, 0, sizeof entries);
    filch_wheel_init(&wheel, 1000);
    return 0;
}

/* Returns how many entries are due up to `now`. No entry is due before its tick. */
static unsigned advance(uint64_t now)
{
    unsigned count = 0;
    filch_wheel_entry *due;

    while ((due = filch_wheel_advance(&wheel, now)))
        for (; due; due = due->next) {
            assert_true(due->tick <= now);
            assert_true(wheel.now >= due->tick);
            assert_false(filch_wheel_has(due));
            count++;
        }
    return count;
}

TEST(an_empty_wheel_is_never_due)
{
    assert_int_equal(filch_wheel_next(&wheel), FILCH_WHEEL_NEVER);
    assert_null(filch_wheel_advance(&wheel, UINT64_MAX - 1));
}

TEST(an_entry_is_due_at_its_tick_and_not_before)
{
    for (unsigned shift = 0; shift < 63; shift++) {
        uint64_t tick = 1000 + ((uint64_t)1 << shift);
        filch_wheel_init(&wheel, 1000);
        filch_wheel_insert(&wheel, &entries[0], tick);

        assert_int_equal(advance(tick - 1), 0);
        assert_true(filch_wheel_has(&entries[0]));
        assert_int_equal(advance(tick), 1);
        assert_int_equal(filch_wheel_next(&wheel), FILCH_WHEEL_NEVER);
    }
}

TEST(an_entry_of_the_past_is_due_at_once)
{
    filch_wheel_insert(&wheel, &entries[0], 3);

    assert_int_equal(filch_wheel_next(&wheel), 1000);
    assert_int_equal(advance(1000), 1);
}

TEST(the_next_tick_is_not_later_than_the_earliest_entry)
{
    filch_rng rng = {.state = 7};

    for (unsigned i = 0; i < 200; i++) {
        uint64_t tick = 1000 + filch_rng_next(&rng) % 100000, earliest = FILCH_WHEEL_NEVER;
        filch_wheel_insert(&wheel, &entries[i], tick);
        for (unsigned k = 0; k <= i; k++)
            earliest = entries[k].tick < earliest ? entries[k].tick : earliest;
        assert_true(filch_wheel_next(&wheel) <= earliest);
        assert_true(filch_wheel_next(&wheel) > 1000);
    }
}

TEST(a_removed_entry_is_not_due)
{
    filch_wheel_insert(&wheel, &entries[0], 1005);
    filch_wheel_insert(&wheel, &entries[1], 1005);
    filch_wheel_insert(&wheel, &entries[2], 1005);

    filch_wheel_remove(&wheel, &entries[1]);
    filch_wheel_remove(&wheel, &entries[1]);

    assert_int_equal(advance(2000), 2);
    filch_wheel_remove(&wheel, &entries[0]);
    assert_int_equal(filch_wheel_next(&wheel), FILCH_WHEEL_NEVER);
}

TEST(random_entries_are_due_once_each_in_the_order_of_their_ticks)
{
    filch_rng rng = {.state = test_seed() | 1};
    uint64_t now = 1000;
    unsigned left = 0, seen = 0, removed = 0;

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < ENTRIES; i++)
            if (!filch_wheel_has(&entries[i])) {
                filch_wheel_insert(&wheel, &entries[i],
                                   now + 1 +
                                       (filch_rng_next(&rng) >> (filch_rng_next(&rng) % 50 + 14)));
                left++;
            } else if (filch_rng_next(&rng) % 8 == 0) {
                filch_wheel_remove(&wheel, &entries[i]);
                removed++;
            }
        now += filch_rng_next(&rng) >> (filch_rng_next(&rng) % 40 + 20);
        seen += advance(now);
        for (unsigned i = 0; i < ENTRIES; i++)
            assert_true(!filch_wheel_has(&entries[i]) || entries[i].tick > now);
    }
    seen += advance(UINT64_MAX);

    assert_int_equal(seen + removed, left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_empty_wheel_is_never_due, setup),
        cmocka_unit_test_setup(an_entry_is_due_at_its_tick_and_not_before, setup),
        cmocka_unit_test_setup(an_entry_of_the_past_is_due_at_once, setup),
        cmocka_unit_test_setup(the_next_tick_is_not_later_than_the_earliest_entry, setup),
        cmocka_unit_test_setup(a_removed_entry_is_not_due, setup),
        cmocka_unit_test_setup(random_entries_are_due_once_each_in_the_order_of_their_ticks, setup),
    };
    return cmocka_run_group_tests_name("wheel", tests, NULL, NULL);
}
