/* SPDX-License-Identifier: MIT */
/*
 * Loops in which a few iterations are long. While one of them runs, an idle worker gets the others
 * (src/loop/README.md). A long iteration waits until another worker has begun one, too: long
 * iterations that lie hidden behind each other are a hang.
 */
#include "base/fault.h"
#include "worker/worker.h"

#include "watchdog.h"

#include <filch/loop.h>

#define LONG 20 /* an even number */
#define SHORT 200
#define COUNT (SHORT + LONG)

static filch_atomic_u32 has_no_memory;

bool filch_fault(enum filch_fault_kind kind)
{
    /* relaxed: the thread that sets it waits for the loop that reads it. */
    return kind == FILCH_FAULT_MALLOC && filch_load_relaxed(&has_no_memory);
}

enum where { BEGINNING, MIDDLE, END, SCATTERED, WHERE_COUNT };

static bool is_long(size_t i, enum where where, size_t count)
{
    size_t first = where == BEGINNING ? 0 : where == MIDDLE ? (count - LONG) / 2 : count - LONG;

    if (where == SCATTERED)
        return i % (count / LONG) == 3;
    return i >= first && i < first + LONG;
}

/* ---- long iterations, two at a time ---------------------------------------------------------- */

static counter begun;
static unsigned char visits[COUNT];

/* The first waits for the second, the third for the fourth ... If `begun` is COUNT at first, none
 * waits. */
static void run_long(void)
{
    /* relaxed: a count. */
    uint64_t number = filch_fetch_add_relaxed(&begun, 1);
    UNTIL(number >= COUNT || counter_get(&begun) > (number | 1));
}

/* So long that a call gets one iteration. */
static void run_short(void)
{
    spin(10000);
}

static void visit(filch_frame *f, void *context, size_t begin, size_t end)
{
    enum where where = *(enum where *)context;

    (void)f;
    for (size_t i = begin; i < end; i++) {
        visits[i]++;
        if (is_long(i, where, COUNT))
            run_long();
        else
            run_short();
    }
}

FILCH_TASK(int, loop_over, (filch_for_fn *, body), (enum where, where))
{
    filch_for(FILCH_HERE, 0, COUNT, body, &where);
    return 0;
}

static void check_loop(filch_for_fn *body)
{
    for (unsigned workers = 2; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        for (enum where where = 0; where < WHERE_COUNT; where++)
            for (int repeat = 0; repeat < 3; repeat++) {
                memset(visits, 0, sizeof visits);
                counter_set(&begun, 0);

                FILCH_RUN(pool, loop_over, body, where);

                for (size_t i = 0; i < COUNT; i++)
                    assert_int_equal(visits[i], 1);
                watchdog_kick();
            }
        watched_pool_destroy(pool);
    }
}

TEST(a_long_iteration_does_not_hide_others)
{
    check_loop(visit);
}

/* ---- what a body does ------------------------------------------------------------------------ */

static void increment(filch_frame *f, void *arg)
{
    (void)f;
    ++*(int *)arg;
}

/* A wait publishes the rest, and a join inside the body may hide it again. */
static void visit_and_wait(filch_frame *f, void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        int number = 0;
        filch_frame *g = filch_fork(f, increment, &number);
        CHECK(i % 2 == 0 || filch_yield(g) == 0);
        filch_join(g, f);
        CHECK(number == 1);
        visit(f, context, i, i + 1);
    }
}

TEST(a_body_may_fork_and_wait)
{
    check_loop(visit_and_wait);
}

static void visit_by_loop(filch_frame *f, void *context, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        filch_for(f, row * COUNT / 4, (row + 1) * COUNT / 4, visit, context);
}

FILCH_TASK(int, loop_over_rows, (enum where, where))
{
    filch_for(FILCH_HERE, 0, 4, visit_by_loop, &where);
    return 0;
}

TEST(a_long_iteration_does_not_hide_those_of_outer_loops)
{
    filch_pool *pool = watched_pool_of(2);

    for (enum where where = 0; where < WHERE_COUNT; where++)
        for (int repeat = 0; repeat < 3; repeat++) {
            memset(visits, 0, sizeof visits);
            counter_set(&begun, 0);

            FILCH_RUN(pool, loop_over_rows, where);

            for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(visits[i], 1);
            watchdog_kick();
        }
    watched_pool_destroy(pool);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* A range of indices, without gaps. Merging is not commutative. */
typedef struct range {
    size_t begin, end;
    unsigned char pad[1000]; /* of the large one */
} range;

static void add_range(filch_frame *f, void *accumulator, void *context, size_t begin, size_t end)
{
    range *r = accumulator;

    CHECK(r->begin == r->end || r->end == begin);
    if (r->begin == r->end)
        r->begin = begin;
    r->end = end;
    visit(f, context, begin, end);
}

static void merge_ranges(void *left, const void *right, void *context)
{
    range *l = left;
    const range *r = right;

    (void)context;
    if (r->begin == r->end)
        return;
    CHECK(l->begin == l->end || l->end == r->begin);
    if (l->begin == l->end)
        l->begin = r->begin;
    l->end = r->end;
}

FILCH_TASK(int, reduce_ranges, (enum where, where), (size_t, size))
{
    const filch_reducer reducer = {.size = size, .add = add_range, .merge = merge_ranges};
    range all;

    filch_reduce(FILCH_HERE, 0, COUNT, &reducer, &where, &all);
    CHECK(all.begin == 0 && all.end == COUNT);
    return 0;
}

TEST(a_long_iteration_of_a_reduction_does_not_hide_others)
{
    const size_t sizes[] = {offsetof(range, pad), sizeof(range)};
    filch_pool *pool = watched_pool_of(2);

    for (unsigned s = 0; s < COUNT_OF(sizes); s++)
        for (enum where where = 0; where < WHERE_COUNT; where++)
            for (int repeat = 0; repeat < 3; repeat++) {
                memset(visits, 0, sizeof visits);
                counter_set(&begun, 0);

                FILCH_RUN(pool, reduce_ranges, where, sizes[s]);

                for (size_t i = 0; i < COUNT; i++)
                    assert_int_equal(visits[i], 1);
                watchdog_kick();
            }
    watched_pool_destroy(pool);
}

TEST(without_memory_a_reduction_has_the_same_result)
{
    filch_pool *pool = watched_pool_of(2);

    memset(visits, 0, sizeof visits);
    counter_set(&begun, COUNT);
    /* relaxed: filch_run carries it. */
    filch_store_relaxed(&has_no_memory, 1);

    FILCH_RUN(pool, reduce_ranges, MIDDLE, sizeof(range));

    /* relaxed: as above. */
    filch_store_relaxed(&has_no_memory, 0);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(visits[i], 1);
    watched_pool_destroy(pool);
}

/* ---- several iterations in one call ---------------------------------------------------------- */

#define MANY 20000

static counter threads; /* that have begun a long iteration */
static FILCH_ATOMIC(pthread_t) first_thread;

static void await_two_threads(void)
{
    pthread_t none = 0;

    /* acq_rel: the first thread sets it. */
    if (filch_cas_acq_rel(&first_thread, &none, pthread_self()))
        counter_add(&threads, 1);
    else if (!pthread_equal(none, pthread_self()))
        counter_add(&threads, 1);
    UNTIL(counter_get(&threads) >= 2);
}

/* A short iteration takes so long that a call gets fewer than LONG. */
static void visit_many(filch_frame *f, void *context, size_t begin, size_t end)
{
    (void)f;
    for (size_t i = begin; i < end; i++)
        if (is_long(i, *(enum where *)context, MANY))
            await_two_threads();
        else
            spin(200);
}

FILCH_TASK(int, loop_over_many, (enum where, where))
{
    filch_for(FILCH_HERE, 0, MANY, visit_many, &where);
    return 0;
}

TEST(a_call_gets_a_few_iterations_only)
{
    for (unsigned workers = 2; workers <= 3; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        for (enum where where = 0; where < WHERE_COUNT; where++)
            for (int repeat = 0; repeat < 10; repeat++) {
                counter_set(&threads, 0);
                /* relaxed: filch_run carries it. */
                filch_store_relaxed(&first_thread, 0);

                FILCH_RUN(pool, loop_over_many, where);

                assert_true(counter_get(&threads) >= 2);
                watchdog_kick();
            }
        watched_pool_destroy(pool);
    }
}

/* ---- a full region --------------------------------------------------------------------------- */

#define TASKS_MAX 20000

static void visit_short(filch_frame *f, void *context, size_t begin, size_t end)
{
    filch_frame *mark = f;
    int number = 0;

    f = filch_fork(f, increment, &number);
    f = filch_join(f, mark);
    CHECK(number == 1);
    for (size_t i = begin; i < end; i++)
        ((unsigned char *)context)[i]++;
}

/* Leave `left` slots free, if that is possible. */
FILCH_TASK(int, loop_in_full_region, (int, left))
{
    filch_frame *f = FILCH_HERE, *next = f;
    static int number[TASKS_MAX];
    int capacity = 0;

    memset(number, 0, sizeof number);
    for (; capacity < TASKS_MAX; capacity++) {
        next = filch_fork(f, increment, &number[capacity]);
        if (next == f)
            break;
        f = next;
    }
    filch_join(f, FILCH_HERE);
    f = FILCH_HERE;
    for (int i = 0; i < capacity - left; i++)
        f = filch_fork(f, increment, &number[i]);
    filch_for(f, 0, COUNT, visit_short, visits);
    filch_join(f, FILCH_HERE);
    for (int i = 0; i < capacity - left; i++)
        CHECK(number[i] == 2);
    return 0;
}

TEST(a_loop_needs_no_slot)
{
    filch_pool *pool = watched_pool_of(2);

    for (int left = 0; left < 4; left++) {
        memset(visits, 0, sizeof visits);

        FILCH_RUN(pool, loop_in_full_region, left);

        for (size_t i = 0; i < COUNT; i++)
            assert_int_equal(visits[i], 1);
    }
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_iteration_does_not_hide_others),
        cmocka_unit_test(a_body_may_fork_and_wait),
        cmocka_unit_test(a_long_iteration_does_not_hide_those_of_outer_loops),
        cmocka_unit_test(a_long_iteration_of_a_reduction_does_not_hide_others),
        cmocka_unit_test(without_memory_a_reduction_has_the_same_result),
        cmocka_unit_test(a_call_gets_a_few_iterations_only),
        cmocka_unit_test(a_loop_needs_no_slot),
    };
    return cmocka_run_group_tests_name("lumps", tests, watchdog_start, watchdog_stop);
}
