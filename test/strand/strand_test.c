/* SPDX-License-Identifier: MIT */
/*
 * Strands and their slabs: memory use, guard pages, and reuse of free strands.
 */
#include "strand/strand.h"

#include "base/memory.h"
#include "deadly.h"

#define STACK_BYTES ((size_t)64 << 10)

static filch_context native;

static filch_strand *take(filch_strands *list)
{
    filch_strand *strand = filch_strand_take(list);
    CHECK(strand);
    return strand;
}

/* Touch the memory that a waiting task has touched: some of its stack, and a slot. */
static void fork_and_wait(filch_strand *self)
{
    volatile char frame[512];
    filch_slot *slot = filch_split_slots(&self->split);

    frame[0] = 1;
    slot->room[0] = 1;
    filch_strand_leave(self);
    CHECK(frame[0] == 1 && slot->room[0] == 1);
}

static filch_strand *start(filch_strands *list)
{
    filch_strand *strand = take(list);
    strand->body = fork_and_wait;
    filch_strand_enter(strand, &native);
    return strand;
}

static void finish(filch_strands *list, filch_strand *strand)
{
    filch_strand_enter(strand, &native);
    filch_strand_give(list, strand);
}

TEST(a_strand_is_found_from_each_of_its_slots)
{
    static const size_t stacks[] = {16 << 10, 64 << 10, 192 << 10, 1 << 20, 8 << 20};

    for (size_t i = 0; i < COUNT_OF(stacks); i++) {
        filch_strands list;
        filch_strands_init(&list, NULL, stacks[i]);
        filch_strand *previous = NULL;
        for (int k = 0; k < 5; k++) {
            filch_strand *strand = take(&list);
            filch_slot *first = filch_split_slots(&strand->split), *end = strand->split.end;

            assert_true(strand != previous);
            assert_int_equal((uintptr_t)strand % FILCH_CACHE_LINE, 0);
            assert_true(end - first >= 900);
            assert_ptr_equal(filch_strand_of(first), strand);
            assert_ptr_equal(filch_strand_of(end + 1), strand);
            first->room[0] = end[1].room[0] = 1;
            *((char *)strand - stacks[i]) = 1;
            previous = strand;
        }
        filch_strands_fini(&list);
    }
}

TEST(a_guard_lies_below_each_stack_and_is_found)
{
    size_t page = filch_page_bytes();
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);

    for (int i = 0; i < 20; i++) {
        filch_strand *strand = take(&list);
        char *low = (char *)strand - FILCH_HEADER_OFFSET - strand->stack_bytes;

        low[0] = 1;
        assert_ptr_equal(filch_strand_find_guard(&list, low - 1), strand);
        assert_ptr_equal(filch_strand_find_guard(&list, low - (64 << 10)), strand);
        assert_true(filch_strand_find_guard(&list, low - (64 << 10) - 1) != strand);
        assert_null(filch_strand_find_guard(&list, low));
        assert_null(filch_strand_find_guard(&list, strand));
        assert_null(filch_strand_find_guard(&list, strand->split.end + 1));
        if (i % 7 == 0) {
            assert_true(is_deadly(low - 1));
            assert_true(is_deadly(low - page));
            assert_true(is_deadly(low - (64 << 10)));
        }
    }
    filch_strands_fini(&list);
}

TEST(the_strand_given_last_is_taken_first)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);
    filch_strand *a = take(&list), *b = take(&list), *c = take(&list);

    filch_strand_give(&list, b);
    assert_ptr_equal(take(&list), b);
    filch_strand_give(&list, c);
    filch_strand_give(&list, b);
    assert_ptr_equal(take(&list), b);
    assert_ptr_equal(take(&list), c);
    filch_strand_give(&list, a);
    assert_ptr_equal(take(&list), a);
    assert_int_equal(filch_slabs_count(&list.slabs), 3);
    filch_strands_fini(&list);
}

/* ---- memory use ------------------------------------------------------------------------------ */

static size_t kib_of(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kib = 0;

    CHECK(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoul(line + strlen(name), NULL, 10);
    fclose(file);
    return kib;
}

/* Includes the page tables. */
static size_t resident_bytes(void)
{
    return (kib_of("VmRSS:") + kib_of("VmPTE:")) << 10;
}

#define MANY 100000u

static filch_strand *many[MANY];

TEST(a_waiting_strand_costs_little_more_than_a_page)
{
    static const struct {
        size_t stack_bytes, pages;
    } cases[] = {{16 << 10, 1}, {64 << 10, 1}, {8 << 20, 2}};

    if (TEST_SLOWNESS > 1 || kib_of("VmPTE:") == 0) {
        print_message("skipped: what is resident is not the program's alone, or not known\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        filch_strands list;
        filch_strands_init(&list, NULL, cases[i].stack_bytes);
        memset(many, 1, sizeof many);
        size_t before = resident_bytes();

        for (unsigned k = 0; k < MANY; k++)
            many[k] = start(&list);
        size_t after = resident_bytes();

        assert_in_range((after - before) / MANY, 1, cases[i].pages * filch_page_bytes() + 1100);
        for (unsigned k = 0; k < MANY; k++)
            finish(&list, many[k]);
        assert_int_equal(filch_slabs_count(&list.slabs), MANY);
        filch_strands_fini(&list);
    }
}

/* Deep and wide trees have thousands of open tasks, and a task without a slot cannot be stolen. */
TEST(a_strand_has_thousands_of_slots)
{
    static const size_t sizes[] = {16 << 10, 320 << 10, 8 << 20};

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        filch_strands list;
        filch_strands_init(&list, NULL, sizes[i]);
        filch_strand *strand = filch_strand_take(&list);

        size_t slots = (size_t)(strand->split.end - filch_split_slots(&strand->split));
        assert_true(slots >= (sizes[i] == 320 << 10 ? 2000u : 6000u));

        filch_strand_give(&list, strand);
        filch_strands_fini(&list);
    }
}

TEST(after_a_burst_the_memory_goes_back)
{
    const unsigned count = TEST_SLOWNESS > 1 ? 2000 : 20000;
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);

    for (int round = 0; round < 3; round++) {
        size_t before = resident_bytes();
        for (unsigned k = 0; k < count; k++)
            many[k] = start(&list);
        assert_false(filch_strands_trim(&list));
        /* The first strand still waits, and keeps the memory of its slab. */
        for (unsigned k = 1; k < count; k++)
            finish(&list, many[k]);

        while (filch_strands_trim(&list))
            ;
        size_t after = resident_bytes();

        assert_in_range(filch_slabs_count(&list.slabs), 1, 1024 + 4 * FILCH_SLAB_MAX);
        if (TEST_SLOWNESS == 1)
            assert_true(after < before + count * 1024 + (10 << 20));
        finish(&list, many[0]);
    }
    filch_strands_fini(&list);
}

TEST(a_thief_finds_nothing_on_a_strand_whose_memory_went_back)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);
    for (unsigned k = 0; k < 2000; k++)
        many[k] = start(&list);
    for (unsigned k = 0; k < 2000; k++)
        finish(&list, many[k]);
    while (filch_strands_trim(&list))
        ;

    for (unsigned k = 0; k < 2000; k++) {
        filch_slot *task;
        assert_int_equal(filch_strand_steal(many[k], &task), FILCH_STEAL_EMPTY);
        filch_split_ask(&many[k]->split, true);
        assert_false(filch_strand_has_public(many[k]));
    }

    for (unsigned k = 0; k < 2000; k++)
        many[k] = start(&list);
    for (unsigned k = 0; k < 2000; k++)
        finish(&list, many[k]);
    filch_strands_fini(&list);
}

TEST(strands_have_guards_also_when_they_are_made_anew_after_their_memory_went_back)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);
    for (unsigned k = 0; k < 2000; k++)
        many[k] = start(&list);
    for (unsigned k = 0; k < 2000; k++)
        finish(&list, many[k]);
    while (filch_strands_trim(&list))
        ;

    filch_strands_rebuild(&list); /* as in the child of a fork() */

    for (unsigned k = 0; k < 2000; k++) {
        filch_strand *strand = start(&list);
        if (k % 97 == 0)
            assert_true(is_deadly((char *)strand - FILCH_HEADER_OFFSET - strand->stack_bytes - 1));
    }
    filch_strands_fini(&list);
}

/* ---- at the same time ------------------------------------------------------------------------ */

/* Edges
 *   shown   play -> look_at_all   carries the strand's memory. */
static FILCH_ATOMIC(filch_strand *) shown[2];
static filch_atomic_u32 playing;
static filch_strands common;

/* A worker: takes many strands, gives them back, and gives pages back. Two of them run at once. */
static void *play(void *argument)
{
    const size_t me = (size_t)argument, rounds = TEST_SLOWNESS > 1 ? 2 : 20, count = 1500;
    filch_strand **mine = calloc(count, sizeof mine[0]);
    filch_magazine magazine = {0};
    filch_context own;

    CHECK(mine);
    memset(&own, 0, sizeof own);
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            mine[i] = filch_magazine_take(&magazine, &common);
            CHECK(mine[i]);
            mine[i]->body = fork_and_wait;
            filch_strand_arm(mine[i]);
            /* release [shown] */
            filch_store_release(&shown[me], mine[i]);
            filch_strand_enter(mine[i], &own);
        }
        for (size_t i = 0; i < count; i++) {
            filch_strand_enter(mine[i], &own);
            filch_magazine_give(&magazine, &common, mine[i]);
        }
        filch_magazine_empty(&magazine, &common);
        while (filch_strands_trim(&common))
            ;
    }
    free(mine);
    /* relaxed: the joins of both threads order the rest. */
    filch_fetch_add_relaxed(&playing, -1u);
    return NULL;
}

/* A late thief: the strand that it looks at may be busy, free or new by then. */
static void look_at_all(void)
{
    filch_strand *seen[64] = {NULL};
    filch_slot *task;

    /* relaxed: a sign to stop. */
    for (unsigned i = 0; filch_load_relaxed(&playing) > 0; i++) {
        /* acquire [shown] */
        seen[i % 64] = filch_load_acquire(&shown[i % 2]);
        filch_strand *victim = seen[i * 7 % 64];
        if (!victim)
            continue;
        CHECK(filch_strand_steal(victim, &task) == FILCH_STEAL_EMPTY);
        filch_split_ask(&victim->split, i % 3 == 0);
        CHECK(!filch_strand_has_public(victim));
        if (i % 64 == 0)
            sched_yield();
    }
}

TEST(workers_take_give_and_trim_while_thieves_look_on)
{
    pthread_t threads[2];
    filch_strands_init(&common, NULL, STACK_BYTES);
    /* relaxed: before the threads start. */
    filch_store_relaxed(&playing, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)i), 0);

    look_at_all();

    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_in_range(filch_slabs_count(&common.slabs), 1, 1024 + 4 * FILCH_SLAB_MAX);
    filch_strands_fini(&common);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static int good_calls, bad_calls; /* after good_calls calls, bad_calls calls fail */

bool filch_fault(enum filch_fault_kind kind TEST_UNUSED)
{
    return bad_calls > 0 && good_calls-- <= 0 && bad_calls-- > 0;
}

static void let_fail(int from, int count)
{
    good_calls = from;
    bad_calls = count;
}

TEST(without_memory_there_is_no_strand_and_existing_ones_stay)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);

    /* The failing call: the slab's descriptor, the mapping, the guards. */
    for (int i = 0; i < 3; i++) {
        let_fail(i, 1);
        assert_null(filch_strand_take(&list));
        assert_int_equal(filch_slabs_count(&list.slabs), 0);
    }
    filch_strand *first = start(&list);
    let_fail(0, INT_MAX);
    assert_null(filch_strand_take(&list));
    finish(&list, first);
    assert_ptr_equal(filch_strand_take(&list), first);
    let_fail(0, 0);
    filch_strands_fini(&list);
}

TEST(without_room_for_a_large_slab_there_is_a_small_one)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);
    for (unsigned k = 0; k < 1 + 2 + 4 + 8; k++)
        many[k] = start(&list);

    let_fail(0, 2);
    many[15] = start(&list);
    let_fail(0, 0);

    assert_int_equal(many[15]->slab->count, 4);
    assert_int_equal(many[15]->id, 15);
    for (unsigned k = 16; k < 20; k++)
        many[k] = start(&list);
    assert_int_equal(many[19]->slab->count, 8);
    filch_strands_fini(&list);
}

TEST(all_strands_are_new_after_a_rebuild)
{
    filch_strands list;
    filch_strands_init(&list, NULL, STACK_BYTES);
    for (unsigned k = 0; k < 200; k++)
        many[k] = start(&list);

    filch_strands_rebuild(&list);

    assert_int_equal(filch_slabs_count(&list.slabs), 1);
    for (unsigned k = 0; k < 200; k++)
        many[k] = start(&list);
    for (unsigned k = 0; k < 200; k++)
        finish(&list, many[k]);
    assert_int_equal(filch_slabs_count(&list.slabs), 200);
    filch_strands_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strand_is_found_from_each_of_its_slots),
        cmocka_unit_test(a_guard_lies_below_each_stack_and_is_found),
        cmocka_unit_test(the_strand_given_last_is_taken_first),
        cmocka_unit_test(a_waiting_strand_costs_little_more_than_a_page),
        cmocka_unit_test(a_strand_has_thousands_of_slots),
        cmocka_unit_test(after_a_burst_the_memory_goes_back),
        cmocka_unit_test(a_thief_finds_nothing_on_a_strand_whose_memory_went_back),
        cmocka_unit_test(
            strands_have_guards_also_when_they_are_made_anew_after_their_memory_went_back),
        cmocka_unit_test(workers_take_give_and_trim_while_thieves_look_on),
        cmocka_unit_test(without_memory_there_is_no_strand_and_existing_ones_stay),
        cmocka_unit_test(without_room_for_a_large_slab_there_is_a_small_one),
        cmocka_unit_test(all_strands_are_new_after_a_rebuild),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
