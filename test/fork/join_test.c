/* SPDX-License-Identifier: MIT */
/*
 * A join of a stolen child suspends its strand: no other task runs on that stack meanwhile, and the
 * number of strands is bounded (src/wait/README.md).
 *
 * Each strand has a note that only code on that strand touches. The note names the child that the
 * innermost task there is joining: no other task may start on the strand until the join returns.
 */
#include "worker/worker.h"

#include "watchdog.h"

#define NOTES 4096

typedef struct note {
    uint64_t joining; /* the number of the child; 0: none */
} note;

static note notes[NOTES];

static note *note_of(const filch_frame *f)
{
    unsigned id = filch_strand_of(f)->id;
    CHECK(id < NOTES);
    return &notes[id];
}

/* A task with this number starts on the strand of `f`. Returns the argument for `end`. */
static uint64_t begin(const filch_frame *f, uint64_t number)
{
    note *n = note_of(f);
    uint64_t outer = n->joining;

    CHECK(outer == 0 || outer == number);
    n->joining = 0;
    return outer;
}

static void end(const filch_frame *f, uint64_t outer)
{
    CHECK(note_of(f)->joining == 0);
    note_of(f)->joining = outer;
}

/* A worker that is about to sleep may still create one more strand. */
static unsigned strand_count(filch_pool *pool)
{
    return filch_slabs_count(&pool->strands.slabs);
}

/* ---- no other task on the stack -------------------------------------------------------------- */

FILCH_TASK(uint64_t, watched_tree, (uint64_t, number), (int, depth))
{
    uint64_t outer = begin(FILCH_HERE, number), sum = 1;

    spin(number * 2654435761u % 2000);
    if (depth > 0) {
        FILCH_FORK(a, watched_tree, 3 * number, depth - 1);
        FILCH_FORK(b, watched_tree, 3 * number + 1, depth - 1);
        sum += FILCH_CALL(watched_tree, 3 * number + 2, depth - 1);
        note_of(FILCH_HERE)->joining = 3 * number + 1;
        sum += FILCH_JOIN(b);
        note_of(FILCH_HERE)->joining = 3 * number;
        sum += FILCH_JOIN(a);
        note_of(FILCH_HERE)->joining = 0;
    }
    end(FILCH_HERE, outer);
    return sum;
}

#define DEPTH 7
#define TREE_COUNT 3280 /* (3^8 - 1) / 2 */

static void submitted_tree(filch_frame *f, void *arg)
{
    CHECK(note_of(f)->joining == 0);
    CHECK(watched_tree_body(f, f, 1, 4) == 121);
    counter_add(arg, 1);
}

TEST(no_other_task_starts_on_a_strand_that_waits_in_a_join)
{
    for (unsigned workers = 1; workers <= 8; workers *= 2) {
        filch_pool *pool = watched_pool_of(workers);
        counter c = {0};

        memset(notes, 0, sizeof notes);
        for (unsigned i = 0; i < 20; i++) {
            for (int k = 0; k < 5; k++)
                assert_int_equal(filch_submit(pool, submitted_tree, &c), 0);
            assert_int_equal(FILCH_RUN(pool, watched_tree, 1, DEPTH), TREE_COUNT);
            watchdog_kick();
        }
        assert_int_equal(filch_pool_wait(pool), 0);

        assert_int_equal(counter_get(&c), 100);
        /* Waiting strands, and free ones: a worker makes one although others keep free strands. */
        unsigned kept = workers > 1 ? FILCH_MAGAZINE_MAX : 0;
        assert_true(strand_count(pool) <= workers * (DEPTH + 2 + kept));
        watched_pool_destroy(pool);
    }
}

/* ---- a chain of waiting strands -------------------------------------------------------------- */

static uint64_t suspensions_of(const filch_pool *pool)
{
    filch_counters counters = {.size = sizeof counters};
    CHECK(filch_pool_counters(pool, &counters) == 0);
    return counters.suspensions;
}

/* Every level is stolen, and ends only after the level above has suspended. */
FILCH_TASK(unsigned, chain, (filch_pool *, pool), (unsigned, levels), (latch *, is_started))
{
    uint64_t number = 1000 + levels, outer = begin(FILCH_HERE, number);
    uint64_t suspensions = suspensions_of(pool);
    latch child_started;
    unsigned depth = 1;

    CHECK(outer == 0);
    latch_init(&child_started, 1);
    if (is_started)
        latch_open(is_started);
    if (levels > 0) {
        FILCH_FORK(child, chain, pool, levels - 1, &child_started);
        latch_wait(&child_started);
        note_of(FILCH_HERE)->joining = UINT64_MAX; /* no task has this number */
        depth += FILCH_JOIN(child);
        note_of(FILCH_HERE)->joining = 0;
    } else {
        /* The level above suspends, at the latest after all older ones. */
        while (suspensions_of(pool) == suspensions)
            sched_yield();
    }
    end(FILCH_HERE, outer);
    return depth;
}

TEST(a_chain_of_stolen_tasks_takes_a_strand_each)
{
    unsigned levels = 150;

    for (unsigned workers = 2; workers <= 4; workers++) {
        filch_pool *pool = watched_pool_of(workers);

        memset(notes, 0, sizeof notes);
        for (int i = 0; i < 20; i++) {
            assert_int_equal(FILCH_RUN(pool, chain, pool, levels, NULL), levels + 1);
            watchdog_kick();
        }

        assert_true(suspensions_of(pool) > 0);
        assert_true(strand_count(pool) <= workers * (levels + 1));
        /* Free strands are reused: one per level, and per worker its spare, its shelf and its
         * magazine. */
        assert_true(strand_count(pool) <= levels + 1 + (2 + FILCH_MAGAZINE_MAX) * workers);
        watched_pool_destroy(pool);
    }
}

/* ---- a lock over a join ---------------------------------------------------------------------- */

typedef struct locked {
    filch_pool *pool;
    latch is_held, is_released, is_wanted, is_had;
} locked;

FILCH_TASK(void, end_when_wanted, (locked *, l), (latch *, is_started))
{
    latch_open(is_started);
    latch_wait(&l->is_wanted);
}

/* Holds the lock over a join, and so while it is suspended. */
static void hold(filch_frame *f, void *arg)
{
    filch_slot *filch_here = f;
    locked *l = arg;
    latch is_started;

    latch_init(&is_started, 1);
    FILCH_FORK(child, end_when_wanted, l, &is_started);
    latch_wait(&is_started);
    latch_open(&l->is_held);
    FILCH_JOIN(child);
    latch_open(&l->is_released);
}

/* Runs on the worker that the holder left. On top of the holder's stack it would wait for ever. */
static void want(filch_frame *f TEST_UNUSED, void *arg)
{
    locked *l = arg;
    latch_open(&l->is_wanted);
    latch_wait(&l->is_released);
    latch_open(&l->is_had);
}

TEST(a_lock_may_be_held_over_a_join)
{
    filch_pool *pool = watched_pool_of(2);

    for (int i = 0; i < 500 / TEST_SLOWNESS; i++) {
        locked l = {.pool = pool};
        latch_init(&l.is_held, 1);
        latch_init(&l.is_released, 1);
        latch_init(&l.is_wanted, 1);
        latch_init(&l.is_had, 1);

        assert_int_equal(filch_submit(pool, hold, &l), 0);
        latch_wait(&l.is_held);
        assert_int_equal(filch_submit(pool, want, &l), 0);
        latch_wait(&l.is_had);
        assert_int_equal(filch_pool_wait(pool), 0);
        watchdog_kick();
    }

    assert_true(suspensions_of(pool) > 0);
    watched_pool_destroy(pool);
}

/* ---- thread-local things --------------------------------------------------------------------- */

/* A strand may resume on another thread: the local variables of its tasks keep their values. */
FILCH_TASK(long, with_locals, (long, depth))
{
    long array[32], sum = 0;
    double product = 1;

    for (long i = 0; i < 32; i++)
        array[i] = i * depth;
    if (depth > 0) {
        FILCH_FORK(child, with_locals, depth - 1);
        product *= 1.5;
        sum += FILCH_CALL(with_locals, depth - 1);
        sum += FILCH_JOIN(child);
        product *= 2;
        CHECK(product == 3);
    }
    for (long i = 0; i < 32; i++)
        CHECK(array[i] == i * depth);
    return sum + 1;
}

TEST(a_task_keeps_its_variables_over_a_join)
{
    filch_pool *pool = watched_pool_of(4);

    for (int i = 0; i < 50; i++)
        assert_int_equal(FILCH_RUN(pool, with_locals, 9), (1 << 10) - 1);
    watched_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_task_starts_on_a_strand_that_waits_in_a_join),
        cmocka_unit_test(a_chain_of_stolen_tasks_takes_a_strand_each),
        cmocka_unit_test(a_lock_may_be_held_over_a_join),
        cmocka_unit_test(a_task_keeps_its_variables_over_a_join),
    };
    return cmocka_run_group_tests_name("join", tests, watchdog_start, watchdog_stop);
}
