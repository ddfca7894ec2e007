/* SPDX-License-Identifier: MIT */
/*
 * Pools with each kind of deque: each kind can be chosen, a full deque loses nothing, and wrong
 * kinds are refused. Tests with DEQUES in CMakeLists.txt run again with every kind.
 */
#include "child.h"
#include "pools.h"

#include "deque/kind.h"
#include "worker/worker.h"

#define KINDS 7

FILCH_TASK(void, touch, (filch_atomic_u32 *, count))
{
    /* relaxed: joins order it. */
    filch_fetch_add_relaxed(count, 1);
}

/* All tasks are in the deque at once. */
FILCH_TASK(void, spawn_many, (filch_atomic_u32 *, count), (unsigned, n))
{
    for (unsigned i = 0; i < n; i++)
        FILCH_SPAWN(touch, count);
    FILCH_SYNC();
}

static filch_pool *create(filch_deque_kind kind, unsigned workers, size_t capacity, size_t block)
{
    filch_options options = {.size = sizeof options,
                             .workers = workers,
                             .deque = kind,
                             .deque_capacity = capacity,
                             .deque_block = block};
    filch_pool *pool = NULL;

    assert_int_equal(filch_pool_create(&pool, &options), 0);
    return pool;
}

TEST(every_kind_gives_the_same_answers_with_any_capacity)
{
    static const size_t capacities[] = {0, 1, 2, 3, 8, 1000};

    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < COUNT_OF(capacities); i++)
            for (unsigned workers = 1; workers <= 4; workers += 3) {
                filch_pool *pool =
                    create((filch_deque_kind)kind, workers, capacities[i], i % 2 ? 1 : 0);
                filch_atomic_u32 count = {0};
                assert_int_equal(FILCH_RUN(pool, fib, 15), 610);
                FILCH_RUN(pool, spawn_many, &count, 3000);
                assert_int_equal(filch_load_relaxed(&count), 3000);
                assert_int_equal(filch_pool_destroy(pool), 0);
            }
}

FILCH_TASK(void, set, (int *, to))
{
    *to = 1;
}

FILCH_TASK(void, fork_three, (int *, values))
{
    FILCH_FORK(a, set, &values[0]);
    FILCH_FORK(b, set, &values[1]);
    FILCH_FORK(c, set, &values[2]);
    /* No fork runs before its join, because the caller may hold a lock until then. */
    CHECK(values[0] + values[1] + values[2] == 0);
    FILCH_JOIN(c);
    FILCH_JOIN(b);
    CHECK(values[0] == 0 && values[1] + values[2] == 2);
    FILCH_JOIN(a);
}

TEST(a_task_that_finds_the_deque_full_runs_at_its_join)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        filch_pool *pool = create((filch_deque_kind)kind, 1, 1, 1);
        int values[3] = {0};
        FILCH_RUN(pool, fork_three, values);
        assert_int_equal(values[0] + values[1] + values[2], 3);
        assert_int_equal(filch_pool_destroy(pool), 0);
    }
}

FILCH_TASK(void, wait_for_thieves, (filch_pool *, pool), (uint64_t, stolen))
{
    filch_atomic_u32 count = {0};
    filch_counters counters = {.size = sizeof counters};

    for (int i = 0; i < 4; i++)
        FILCH_SPAWN(touch, &count);
    do
        CHECK(filch_pool_counters(pool, &counters) == 0);
    while (counters.stolen < stolen);
    FILCH_SYNC();
}

/* Steals use up the room of the ABP deque. The owner must notice that it is empty, or no task can
 * be stolen from it again. */
TEST(a_deque_that_thieves_have_emptied_has_room_again)
{
    filch_pool *pool = create(FILCH_DEQUE_ABP, 2, 4, 0);

    for (uint64_t round = 1; round <= 20; round++)
        FILCH_RUN(pool, wait_for_thieves, pool, 4 * round);
    assert_int_equal(filch_pool_destroy(pool), 0);
}

/* A join takes back its task, but the entry stays in the queue. Such entries must not pile up. */
TEST(entries_without_a_task_are_put_away)
{
    filch_pool *pool = create(FILCH_DEQUE_GLOBAL, 1, 0, 0);
    void *queue = pool->strands.shared;

    assert_int_equal(FILCH_RUN(pool, fib, 22), 17711);
    assert_in_range(pool->kind->size_hint(queue), 0, 2100);
    assert_int_equal(filch_pool_destroy(pool), 0);
}

TEST(a_capacity_or_a_block_that_cannot_be_is_refused)
{
    const filch_options wrong[] = {
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_ABP, .deque_capacity = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_CHASELEV, .deque_capacity = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_LOCKED, .deque_capacity = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_GLOBAL, .deque_capacity = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_BWOS_LIFO, .deque_block = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = FILCH_DEQUE_BWOS_FIFO, .deque_capacity = SIZE_MAX},
        {.size = sizeof wrong[0], .deque = (filch_deque_kind)KINDS},
    };
    filch_pool *pool = NULL;

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(filch_pool_create(&pool, &wrong[i]), -EINVAL);
    assert_null(pool);
}

/* ---- the environment ------------------------------------------------------------------------- */

TEST(a_kind_is_read_with_its_sizes)
{
    static const char *const nonsense[] = {
        "",
        "cilk",
        "abp:",
        "abp:x",
        "abp:-1",
        "abp:1:2:3",
        "abp:1:",
        "abp 1",
        "ABP",
        "abp:1x",
        "abp:99999999999999999999",
        ":1",
    };
    const filch_kind *kind = NULL;
    size_t capacity = 7, block = 7;

    assert_true(filch_kind_parse("split", &kind, &capacity, &block));
    assert_null(kind);
    assert_true(filch_kind_parse("chaselev", &kind, &capacity, &block));
    assert_string_equal(kind->name, "chaselev");
    assert_int_equal(capacity, 0);
    assert_int_equal(block, 0);
    assert_true(filch_kind_parse("bwos_fifo:1024:8", &kind, &capacity, &block));
    assert_string_equal(kind->name, "bwos_fifo");
    assert_int_equal(capacity, 1024);
    assert_int_equal(block, 8);
    for (size_t i = 0; i < COUNT_OF(nonsense); i++)
        assert_false(filch_kind_parse(nonsense[i], &kind, &capacity, &block));
    assert_int_equal(capacity, 1024);
    assert_string_equal(kind->name, "bwos_fifo");
}

static void create_one(void *kind)
{
    filch_options options = {
        .size = sizeof options, .workers = 1, .deque = *(filch_deque_kind *)kind, .name = "one"};
    filch_pool *pool;

    CHECK(filch_pool_create(&pool, &options) == 0);
    fprintf(stderr, "%s\n", pool->kind ? pool->kind->name : "split");
    CHECK(filch_pool_destroy(pool) == 0);
}

TEST(FILCH_DEQUE_replaces_the_default_but_not_the_programs_choice)
{
    setenv("FILCH_DEQUE", "abp:64", 1);
    ended by_default = run_in_child(create_one, &(filch_deque_kind){FILCH_DEQUE_SPLIT});
    ended by_choice = run_in_child(create_one, &(filch_deque_kind){FILCH_DEQUE_LOCKED});
    setenv("FILCH_DEQUE", "what?", 1);
    setenv("FILCH_VERBOSE", "1", 1);
    ended nonsense = run_in_child(create_one, &(filch_deque_kind){FILCH_DEQUE_SPLIT});
    unsetenv("FILCH_VERBOSE");
    unsetenv("FILCH_DEQUE");

    assert_exit_code(&by_default, 0);
    assert_string_equal(by_default.text, "abp\n");
    assert_exit_code(&by_choice, 0);
    assert_string_equal(by_choice.text, "locked\n");
    assert_exit_code(&nonsense, 0);
    assert_non_null(strstr(nonsense.text, "deque 'what?' in FILCH_DEQUE ignored"));
    assert_non_null(strstr(nonsense.text, "split\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: with ThreadSanitizer, a child cannot start threads once the parent has had
         * some. */
        cmocka_unit_test(FILCH_DEQUE_replaces_the_default_but_not_the_programs_choice),
        cmocka_unit_test(every_kind_gives_the_same_answers_with_any_capacity),
        cmocka_unit_test(a_task_that_finds_the_deque_full_runs_at_its_join),
        cmocka_unit_test(a_deque_that_thieves_have_emptied_has_room_again),
        cmocka_unit_test(entries_without_a_task_are_put_away),
        cmocka_unit_test(a_capacity_or_a_block_that_cannot_be_is_refused),
        cmocka_unit_test(a_kind_is_read_with_its_sizes),
    };
    return cmocka_run_group_tests(tests, watchdog_start, watchdog_stop);
}
