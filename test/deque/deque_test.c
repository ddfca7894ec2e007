/* SPDX-License-Identifier: MIT */
/*
 * The contract of filch/deque.h, for every kind of deque, with one thread; deque_stress_test.c has
 * more threads. Compiled once for each kind, TEST_DEQUE.
 */
#include "child.h"

#include "deque_kind.h"

typedef struct item {
    int taken;
} item;

static item items[1000];

static void take(void *entry)
{
    item *i = entry;

    assert_true(i >= items && i < items + COUNT_OF(items));
    assert_int_equal(i->taken++, 0);
}

/* Take an entry as a thief; or as the owner, if the kind keeps entries from thieves while the owner
 * makes no calls. */
static void *steal_or_pop(deque *d)
{
    void *entry = NULL;

    if (deque_steal(d, &entry) != FILCH_STEAL_WON) {
        assert_false(kind.is_open);
        assert_true(deque_pop(d, &entry));
    }
    return entry;
}

/* Pop and steal in turns until the deque is empty. Returns how many entries that were. */
static size_t drain(deque *d)
{
    size_t count = 0;
    void *entry;

    while (deque_pop(d, &entry)) {
        take(entry);
        count++;
        if (deque_steal(d, &entry) == FILCH_STEAL_WON) {
            take(entry);
            count++;
        }
    }
    assert_int_equal(deque_steal(d, &entry), FILCH_STEAL_EMPTY);
    return count;
}

/* ---- one by one ------------------------------------------------------------------------------ */

TEST(a_new_deque_is_empty)
{
    deque d;
    void *entry = &d, *batch[2] = {&d, &d};
    size_t count = 77;
    assert_int_equal(deque_init(&d, 4), 0);

    assert_false(deque_pop(&d, &entry));
    assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_EMPTY);
    assert_int_equal(deque_steal_batch(&d, batch, 2, &count), FILCH_STEAL_EMPTY);
    assert_int_equal(deque_size_hint(&d), 0);

    assert_ptr_equal(entry, &d);
    assert_ptr_equal(batch[0], &d);
    deque_fini(&d);
}

TEST(one_entry_is_popped_or_stolen)
{
    deque d;
    void *entry;

    assert_int_equal(deque_init(&d, 0), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(deque_push(&d, &items[i]), 0);
        assert_int_equal(deque_size_hint(&d), 1);

        if (i % 2) {
            assert_true(deque_pop(&d, &entry));
            assert_ptr_equal(entry, &items[i]);
        } else {
            assert_ptr_equal(steal_or_pop(&d), &items[i]);
        }

        assert_false(deque_pop(&d, &entry));
        assert_int_equal(deque_steal(&d, &entry), FILCH_STEAL_EMPTY);
        assert_int_equal(deque_size_hint(&d), 0);
    }
    deque_fini(&d);
}

TEST(null_is_an_entry)
{
    deque d;
    void *entry = &d;
    assert_int_equal(deque_init(&d, 2), 0);

    assert_int_equal(deque_push(&d, NULL), 0);
    assert_int_equal(deque_size_hint(&d), 1);
    assert_true(deque_pop(&d, &entry));
    assert_null(entry);

    assert_int_equal(deque_push(&d, NULL), 0);
    assert_null(steal_or_pop(&d));
    assert_false(deque_pop(&d, &entry));
    deque_fini(&d);
}

/* Counters that start here change their sign, or wrap, during a test. */
static const uint64_t starts[] = {0, INT64_MAX - 3, INT64_MAX, UINT64_MAX - 3, UINT64_MAX};

TEST(every_pushed_entry_is_obtained_once)
{
    filch_rng rng = {test_seed()};

    for (int round = 0; round < 2000 / TEST_SLOWNESS; round++) {
        size_t pushed = 0, taken = 0, capacity = 1 + filch_rng_next(&rng) % 20, count;
        filch_steal_result result;
        void *batch[3];
        deque d;
        memset(items, 0, sizeof items);
        assert_int_equal(deque_init_at(&d, capacity, starts[round % COUNT_OF(starts)]), 0);

        unsigned pushes = 1 + (unsigned)(filch_rng_next(&rng) % 9); /* of 10 operations */
        for (int i = 0; i < 500; i++) {
            assert_int_equal(deque_size_hint(&d), pushed - taken);
            if (filch_rng_next(&rng) % 10 < pushes) {
                pushed += deque_push(&d, &items[pushed]) == 0;
                continue;
            }
            count = 1;
            switch (filch_rng_next(&rng) % 4) {
            case 0:
                result = deque_steal(&d, batch);
                break;
            case 1:
                result = deque_steal_batch(&d, batch, 1 + filch_rng_next(&rng) % 3, &count);
                break;
            default:
                result = deque_pop(&d, batch) ? FILCH_STEAL_WON : FILCH_STEAL_LOST;
                assert_int_equal(result == FILCH_STEAL_WON, pushed > taken);
            }
            if (kind.is_open || pushed == taken)
                assert_int_equal(result == FILCH_STEAL_WON, pushed > taken);
            for (size_t k = 0; result == FILCH_STEAL_WON && k < count; k++)
                take(batch[k]), taken++;
        }

        assert_int_equal(drain(&d), pushed - taken);
        for (size_t i = 0; i < pushed; i++)
            assert_int_equal(items[i].taken, 1);
        deque_fini(&d);
    }
}

TEST(a_batch_is_no_larger_than_wanted)
{
    void *batch[8] = {NULL};
    size_t count = 0;
    deque d;
    memset(items, 0, sizeof items);
    assert_int_equal(deque_init(&d, 64), 0);
    for (int i = 0; i < 60; i++)
        assert_int_equal(deque_push(&d, &items[i]), 0);

    assert_int_equal(deque_steal_batch(&d, batch, 0, &count), FILCH_STEAL_EMPTY);
    assert_int_equal(deque_steal_batch(&d, batch, 3, &count), FILCH_STEAL_WON);

    assert_in_range(count, 1, 3);
    for (size_t i = 0; i < count; i++)
        take(batch[i]);
    assert_null(batch[count]);
    assert_int_equal(drain(&d), 60 - count);
    deque_fini(&d);
}

/* ---- capacities, memory ---------------------------------------------------------------------- */

TEST(any_capacity_will_do)
{
    for (size_t capacity = 0; capacity <= 130; capacity++) {
        deque d;
        memset(items, 0, sizeof items);
        assert_int_equal(deque_init(&d, capacity), 0);

        size_t fit = capacity > 0 ? capacity : 16;
        for (size_t i = 0; i < fit; i++)
            assert_int_equal(deque_push(&d, &items[i]), 0);

        assert_int_equal(deque_size_hint(&d), fit);
        assert_int_equal(drain(&d), fit);
        deque_fini(&d);
    }
}

TEST(a_capacity_that_cannot_be_is_refused)
{
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 2, SIZE_MAX / 4 + 1,
                                  SIZE_MAX / 8 + 2};

    for (size_t i = 0; i < COUNT_OF(huge); i++) {
        deque d;
        assert_int_equal(deque_init(&d, huge[i]), -EINVAL);
    }
}

TEST(without_memory_there_is_no_deque)
{
    deque d;

    is_memory_out = true;
    int err = deque_init(&d, 1000);
    is_memory_out = false;

    assert_int_equal(err, -ENOMEM);
}

TEST(a_push_that_fails_changes_nothing)
{
    deque d;
    size_t pushed = 0;
    void *entry = NULL;
    int err;
    memset(items, 0, sizeof items);
    assert_int_equal(deque_init(&d, 8), 0);

    is_memory_out = true;
    while ((err = deque_push(&d, &items[pushed])) == 0)
        pushed++;
    assert_true(err == -ENOMEM || err == -ENOBUFS);
    assert_true(pushed >= 8);
    assert_int_equal(deque_push(&d, &items[pushed]), err);
    assert_int_equal(deque_size_hint(&d), pushed);
    assert_true(deque_pop(&d, &entry));
    take(entry);
    assert_int_equal(deque_push(&d, &items[pushed++]), 0); /* there is room again */
    is_memory_out = false;
    if (err == -ENOMEM)
        for (int i = 0; i < 100; i++)
            assert_int_equal(deque_push(&d, &items[pushed++]), 0);

    assert_int_equal(drain(&d), pushed - 1);
    for (size_t i = 0; i < pushed; i++)
        assert_int_equal(items[i].taken, 1);
    deque_fini(&d);
}

TEST(entries_that_are_left_are_forgotten)
{
    for (size_t count = 1; count < 300; count += 13) {
        deque d;
        assert_int_equal(deque_init(&d, 1000), 0);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(deque_push(&d, &items[i]), 0);

        deque_fini(&d);
    }
}

/* ---- a second owner -------------------------------------------------------------------------- */

#if !defined NDEBUG && !defined TEST_TSAN /* ThreadSanitizer would report the race */
#define HAS_OWNER_TEST
static latch both_ready;

static void *push_and_pop(void *arg)
{
    deque *d = arg;
    void *entry;

    latch_open(&both_ready);
    latch_wait(&both_ready);
    for (long i = 0; i < 1000000000; i++) {
        deque_push(d, &items[0]);
        deque_pop(d, &entry);
    }
    return NULL;
}

static void have_two_owners(void *arg)
{
    pthread_t other;

    latch_init(&both_ready, 2);
    CHECK(pthread_create(&other, NULL, push_and_pop, arg) == 0);
    push_and_pop(arg);
}

TEST(two_owners_stop_the_program)
{
    static deque d;
    if (!kind.has_owner)
        return;
    assert_int_equal(deque_init(&d, 64), 0);

    ended c = run_in_child(have_two_owners, &d);

    assert_true(has_ended_by(&c, SIGABRT));
    assert_non_null(strstr(c.text, "a deque has one owner"));
    deque_fini(&d);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_deque_is_empty),
        cmocka_unit_test(one_entry_is_popped_or_stolen),
        cmocka_unit_test(null_is_an_entry),
        cmocka_unit_test(every_pushed_entry_is_obtained_once),
        cmocka_unit_test(a_batch_is_no_larger_than_wanted),
        cmocka_unit_test(any_capacity_will_do),
        cmocka_unit_test(a_capacity_that_cannot_be_is_refused),
        cmocka_unit_test(without_memory_there_is_no_deque),
        cmocka_unit_test(a_push_that_fails_changes_nothing),
        cmocka_unit_test(entries_that_are_left_are_forgotten),
#ifdef HAS_OWNER_TEST
        cmocka_unit_test(two_owners_stop_the_program),
#endif
    };
    return cmocka_run_group_tests_name("deque", tests, watchdog_start, watchdog_stop);
}
