/* SPDX-License-Identifier: MIT */
/*
 * Tasks: results, arguments, forks wherever C allows them, and more forks than a strand has slots.
 *
 * Every test runs in each of the places below. Where there is a second worker, a child that waits to be
 * stolen is: the first fork of a strand is public at once.
 */
#include "watchdog.h"

#include <stdalign.h>

/* More than the slots of a strand. */
#define MANY 20000

static filch_pool *pools[4]; /* none, 1, 2 and 4 workers */

static bool can_steal(filch_pool *pool)
{
    return filch_pool_workers(pool) > 1;
}

#define FOR_EACH_POOL(pool)                                                                        \
    for (filch_pool **at = pools, *pool; at < pools + COUNT_OF(pools) && (pool = *at, true);       \
         at++, watchdog_kick())

/* The children below open it when they start. */
static latch started;

static void wait_if(bool is_to_be_stolen)
{
    if (is_to_be_stolen)
        latch_wait(&started);
}

/* ---- results ----------------------------------------------------------------------------------- */

typedef struct fitting {
    char text[FILCH_SLOT_ROOM];
} fitting;

typedef struct large {
    long values[40];
} large;

static int void_result;
static int target;

FILCH_TASK(void, give_void, (int, value))
{
    latch_open(&started);
    void_result = value;
}

FILCH_TASK(char, give_char, (char, value))
{
    latch_open(&started);
    return (char)(value + 1);
}

FILCH_TASK(double, give_double, (double, value))
{
    latch_open(&started);
    return value / 3;
}

FILCH_TASK(fitting, give_fitting, (char, value))
{
    fitting result;
    latch_open(&started);
    memset(result.text, value, sizeof result.text);
    return result;
}

FILCH_TASK(large, give_large, (long, value))
{
    large result;
    latch_open(&started);
    for (int i = 0; i < 40; i++)
        result.values[i] = value * i;
    return result;
}

FILCH_TASK(int *, give_pointer, (int *, value))
{
    latch_open(&started);
    return value;
}

FILCH_TASK(void *, give_void_pointer, (void *, value))
{
    latch_open(&started);
    return value;
}

FILCH_TASK(bool, give_bool, (bool, value))
{
    latch_open(&started);
    return !value;
}

static bool is_right_fitting(fitting value, char expected)
{
    bool is_right = true;
    for (size_t i = 0; i < sizeof value.text; i++)
        is_right &= value.text[i] == expected;
    return is_right;
}

static bool is_right_large(large value, long factor)
{
    bool is_right = true;
    for (int i = 0; i < 40; i++)
        is_right &= value.values[i] == factor * i;
    return is_right;
}

/* A task that forks `child` and says whether its result was right, forked and called. */
#define ROOT_OF(child, is_right, ...)                                                              \
    FILCH_TASK(bool, root_of_##child, (bool, is_to_be_stolen))                                     \
    {                                                                                              \
        bool all_right;                                                                            \
        {                                                                                          \
            FILCH_FORK(c, child, __VA_ARGS__);                                                     \
            wait_if(is_to_be_stolen);                                                              \
            all_right = is_right(FILCH_JOIN(c));                                                   \
        }                                                                                          \
        return all_right && is_right(FILCH_CALL(child, __VA_ARGS__));                              \
    }

#define IS_A_VOID(run) ((run), void_result == 7 ? (void_result = 0, true) : false)
#define IS_A_CHAR(c) ((c) == 'b')
#define IS_A_DOUBLE(d) ((d) == 10. / 3)
#define IS_A_FITTING(s) is_right_fitting(s, 'x')
#define IS_A_LARGE(s) is_right_large(s, 5)
#define IS_A_POINTER(p) ((p) == &target)
#define IS_A_BOOL(b) (b)

ROOT_OF(give_void, IS_A_VOID, 7)
ROOT_OF(give_char, IS_A_CHAR, 'a')
ROOT_OF(give_double, IS_A_DOUBLE, 10.)
ROOT_OF(give_fitting, IS_A_FITTING, 'x')
ROOT_OF(give_large, IS_A_LARGE, 5)
ROOT_OF(give_pointer, IS_A_POINTER, &target)
ROOT_OF(give_void_pointer, IS_A_POINTER, &target)
ROOT_OF(give_bool, IS_A_BOOL, false)

/* As the root of a run, stolen where that is possible, and not stolen. */
#define ASSERT_RIGHT_EVERYWHERE(child, is_right, ...)                                              \
    FOR_EACH_POOL(pool)                                                                            \
    {                                                                                              \
        assert_true(is_right(FILCH_RUN(pool, child, __VA_ARGS__)));                                \
        assert_true(FILCH_RUN(pool, root_of_##child, false));                                      \
        latch_init(&started, 1);                                                                   \
        assert_true(FILCH_RUN(pool, root_of_##child, can_steal(pool)));                            \
    }

TEST(a_task_may_return_nothing){ASSERT_RIGHT_EVERYWHERE(give_void, IS_A_VOID, 7)}

TEST(a_task_may_return_a_char){ASSERT_RIGHT_EVERYWHERE(give_char, IS_A_CHAR, 'a')}

TEST(a_task_may_return_a_double){ASSERT_RIGHT_EVERYWHERE(give_double, IS_A_DOUBLE, 10.)}

TEST(a_task_may_return_a_bool){ASSERT_RIGHT_EVERYWHERE(give_bool, IS_A_BOOL, false)}

TEST(a_task_may_return_a_struct_that_fills_its_slot){
    ASSERT_RIGHT_EVERYWHERE(give_fitting, IS_A_FITTING, 'x')}

TEST(a_task_may_return_a_struct_larger_than_its_slot)
{
    assert_false(give_large_fits);
    ASSERT_RIGHT_EVERYWHERE(give_large, IS_A_LARGE, 5)
}

TEST(a_task_may_return_a_pointer)
{
    ASSERT_RIGHT_EVERYWHERE(give_pointer, IS_A_POINTER, &target)
    ASSERT_RIGHT_EVERYWHERE(give_void_pointer, IS_A_POINTER, &target)
}

/* ---- arguments --------------------------------------------------------------------------------- */

/* Each sums its arguments, weighted by their place, so that no two may be exchanged. */
#define TAKE(count, sum, ...)                                                                      \
    FILCH_TASK(long, take##count, __VA_ARGS__)                                                     \
    {                                                                                              \
        latch_open(&started);                                                                      \
        return sum;                                                                                \
    }

/* clang-format off */
FILCH_TASK(long, take0)
{
    latch_open(&started);
    return 0;
}
TAKE(1, a, (long, a))
TAKE(2, a + 2 * b, (long, a), (char, b))
TAKE(3, a + 2 * b + 3 * c, (char, a), (long, b), (char, c))
TAKE(4, a + 2 * b + 3 * c + 4 * d, (long, a), (long, b), (long, c), (long, d))
TAKE(5, a + 2 * b + 3 * c + 4 * d + 5 * e, (long, a), (long, b), (long, c), (long, d), (long, e))
TAKE(6, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f,
     (long, a), (long, b), (long, c), (long, d), (long, e), (long, f))
TAKE(7, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g,
     (long, a), (long, b), (long, c), (long, d), (long, e), (long, f), (long, g))
TAKE(8, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h,
     (long, a), (long, b), (long, c), (long, d), (long, e), (long, f), (long, g), (long, h))
TAKE(9, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i))
TAKE(10, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j))
TAKE(11, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j), (int, k))
TAKE(12, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k
     + 12 * l,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j), (int, k), (int, l))
TAKE(13, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k
     + 12 * l + 13 * m,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j), (int, k), (int, l), (int, m))
TAKE(14, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k
     + 12 * l + 13 * m + 14 * n,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j), (int, k), (int, l), (int, m), (int, n))
TAKE(15, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k
     + 12 * l + 13 * m + 14 * n + 15 * o,
     (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h), (int, i),
     (int, j), (int, k), (int, l), (int, m), (int, n), (int, o))
TAKE(16, a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k
     + 12 * l + 13 * m + 14 * n + 15 * o + 16 * p,
     (long, a), (long, b), (long, c), (long, d), (long, e), (long, f), (long, g), (long, h),
     (long, i), (long, j), (long, k), (long, l), (long, m), (long, n), (long, o), (long, p))

FILCH_TASK(bool, root_of_take0, (bool, is_to_be_stolen))
{
    FILCH_FORK(c, take0);
    wait_if(is_to_be_stolen);
    return FILCH_JOIN(c) == 0 && FILCH_CALL(take0) == 0;
}

/* 1 * 1 + 2 * 2 + ... */
#define IS_SQUARES(n, sum) ((sum) == (n) * ((n) + 1) * (2 * (n) + 1) / 6)
#define IS_SUM_1(s) IS_SQUARES(1, s)
#define IS_SUM_2(s) IS_SQUARES(2, s)
#define IS_SUM_3(s) IS_SQUARES(3, s)
#define IS_SUM_4(s) IS_SQUARES(4, s)
#define IS_SUM_5(s) IS_SQUARES(5, s)
#define IS_SUM_6(s) IS_SQUARES(6, s)
#define IS_SUM_7(s) IS_SQUARES(7, s)
#define IS_SUM_8(s) IS_SQUARES(8, s)
#define IS_SUM_9(s) IS_SQUARES(9, s)
#define IS_SUM_10(s) IS_SQUARES(10, s)
#define IS_SUM_11(s) IS_SQUARES(11, s)
#define IS_SUM_12(s) IS_SQUARES(12, s)
#define IS_SUM_13(s) IS_SQUARES(13, s)
#define IS_SUM_14(s) IS_SQUARES(14, s)
#define IS_SUM_15(s) IS_SQUARES(15, s)
#define IS_SUM_16(s) IS_SQUARES(16, s)

#define EACH_COUNT(X)                                                                              \
    X(1, 1) X(2, 1, 2) X(3, 1, 2, 3) X(4, 1, 2, 3, 4) X(5, 1, 2, 3, 4, 5) X(6, 1, 2, 3, 4, 5, 6)   \
    X(7, 1, 2, 3, 4, 5, 6, 7) X(8, 1, 2, 3, 4, 5, 6, 7, 8) X(9, 1, 2, 3, 4, 5, 6, 7, 8, 9)         \
    X(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) X(11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)                  \
    X(12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) X(13, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)  \
    X(14, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)                                           \
    X(15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)                                       \
    X(16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)

#define ROOT_OF_COUNT(n, ...) ROOT_OF(take##n, IS_SUM_##n, __VA_ARGS__)
EACH_COUNT(ROOT_OF_COUNT)
/* clang-format on */

TEST(a_task_takes_no_to_sixteen_arguments){FOR_EACH_POOL(pool){latch_init(&started, 1);
assert_true(FILCH_RUN(pool, root_of_take0, can_steal(pool)));
assert_int_equal(FILCH_RUN(pool, take0), 0);
}
#define ASSERT_COUNT(n, ...) ASSERT_RIGHT_EVERYWHERE(take##n, IS_SUM_##n, __VA_ARGS__)
EACH_COUNT(ASSERT_COUNT)
}

FILCH_TASK(long, take_large, (large, a), (char, b), (large, c))
{
    latch_open(&started);
    return is_right_large(a, 3) && is_right_large(c, 4) ? b : -1;
}

static large large_of(long factor)
{
    large result;
    for (int i = 0; i < 40; i++)
        result.values[i] = factor * i;
    return result;
}

#define IS_NINE(x) ((x) == 9)
ROOT_OF(take_large, IS_NINE, large_of(3), 9, large_of(4))

TEST(arguments_may_be_larger_than_a_slot)
{
    assert_false(take_large_fits);
    ASSERT_RIGHT_EVERYWHERE(take_large, IS_NINE, large_of(3), 9, large_of(4))
}

typedef struct aligned {
    alignas(32) char byte;
} aligned;

typedef struct more_aligned {
    alignas(64) char byte;
} more_aligned;

/* By pointer the compiler cannot know that it is aligned, so it is asked. */
static bool is_aligned(const volatile void *address, uintptr_t to)
{
    return (uintptr_t)address % to == 0;
}

FILCH_TASK(bool, take_aligned, (char, a), (aligned, b))
{
    latch_open(&started);
    return a == 1 && b.byte == 2 && is_aligned(&b, 32);
}

FILCH_TASK(bool, take_more_aligned, (char, a), (more_aligned, b))
{
    latch_open(&started);
    return a == 1 && b.byte == 2 && is_aligned(&b, 64);
}

FILCH_TASK(long double, take_long_double, (char, a), (long double, b), (long double, c))
{
    latch_open(&started);
    return a * b - c;
}

#define IS_TRUE(x) (x)
#define IS_LONG_DOUBLE(x) ((x) == 3 * 1.5L - 0.25L)
ROOT_OF(take_aligned, IS_TRUE, 1, ((aligned){2}))
ROOT_OF(take_more_aligned, IS_TRUE, 1, ((more_aligned){2}))
ROOT_OF(take_long_double, IS_LONG_DOUBLE, 3, 1.5L, 0.25L)

TEST(arguments_keep_their_alignment){
    ASSERT_RIGHT_EVERYWHERE(take_aligned, IS_TRUE, 1, ((aligned){2}))
        ASSERT_RIGHT_EVERYWHERE(take_more_aligned, IS_TRUE, 1, ((more_aligned){2}))
            ASSERT_RIGHT_EVERYWHERE(take_long_double, IS_LONG_DOUBLE, 3, 1.5L, 0.25L)}

/* ---- where a fork may stand -------------------------------------------------------------------- */

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

static long serial_fib(long n)
{
    return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2);
}

TEST(a_recursive_task_gives_the_result_of_the_recursive_function)
{
    long n = TEST_SLOWNESS > 1 ? 20 : 27, expected = serial_fib(n);

    FOR_EACH_POOL(pool)
    for (int i = 0; i < 10; i++)
        assert_int_equal(FILCH_RUN(pool, fib, n), expected);
}

FILCH_TASK(long, in_branches, (long, n))
{
    if (n <= 0)
        return 1;
    if (n % 2) {
        FILCH_FORK(child, in_branches, n - 1);
        return FILCH_JOIN(child) + 1;
    } else {
        FILCH_FORK(first, in_branches, n - 1);
        FILCH_FORK(second, in_branches, n - 2);
        long sum = FILCH_JOIN(second);
        return sum + FILCH_JOIN(first);
    }
}

static long serial_in_branches(long n)
{
    if (n <= 0)
        return 1;
    return n % 2 ? serial_in_branches(n - 1) + 1
                 : serial_in_branches(n - 1) + serial_in_branches(n - 2);
}

TEST(a_fork_may_stand_in_a_branch)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_branches, 20), serial_in_branches(20));
}

FILCH_TASK(long, in_switch, (long, n))
{
    long sum = 0;
    switch (n % 4) {
    case 0: {
        FILCH_FORK(child, fib, 10);
        sum += FILCH_JOIN(child);
        break;
    }
    case 1:
    case 2: {
        FILCH_FORK(child, fib, 8);
        sum += FILCH_JOIN(child);
    }
        /* fall through */
    default: {
        FILCH_FORK(child, fib, 5);
        sum += FILCH_JOIN(child);
    }
    }
    return sum;
}

TEST(a_fork_may_stand_in_a_switch)
{
    FOR_EACH_POOL(pool)
    {
        assert_int_equal(FILCH_RUN(pool, in_switch, 0), 55);
        assert_int_equal(FILCH_RUN(pool, in_switch, 1), 21 + 5);
        assert_int_equal(FILCH_RUN(pool, in_switch, 2), 21 + 5);
        assert_int_equal(FILCH_RUN(pool, in_switch, 3), 5);
    }
}

FILCH_TASK(long, in_blocks, (long, n))
{
    long sum = 0;
    FILCH_FORK(outer, fib, n);
    {
        FILCH_FORK(inner, fib, n - 1);
        for (long i = 0; i < 3; i++) {
            FILCH_FORK(in_loop, fib, i);
            do {
                FILCH_FORK(innermost, fib, n - 2);
                sum += FILCH_JOIN(innermost);
            } while (0);
            sum += FILCH_JOIN(in_loop);
        }
        sum += FILCH_JOIN(inner);
    }
    return sum + FILCH_JOIN(outer);
}

TEST(a_fork_may_stand_in_nested_blocks)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_blocks, 12), 144 + 89 + 3 * 55 + 2);
}

/* The operands of && and of the comma have an order; those of + do not. */
FILCH_TASK(long, in_expressions, (long, n))
{
    FILCH_FORK(a, fib, n);
    FILCH_FORK(b, fib, n - 1);
    FILCH_FORK(c, fib, n - 2);
    return FILCH_JOIN(c) == serial_fib(n - 2) && FILCH_JOIN(b) == serial_fib(n - 1)
               ? FILCH_JOIN(a) * 2
               : -1;
}

TEST(a_join_may_stand_in_an_expression)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_expressions, 12), 288);
}

FILCH_TASK(long, in_arrays, (long, n), (long, depth))
{
    in_arrays_forked child[8];
    fib_forked other[4][2];
    long sum = 1;

    if (depth == 0)
        return FILCH_CALL(fib, n);
    for (int i = 0; i < 8; i++) {
        FILCH_FORK_INTO(child[i], in_arrays, n, depth - 1);
        FILCH_FORK_INTO(other[i / 2][i % 2], fib, i);
    }
    for (int i = 8; i-- > 0;) {
        sum += FILCH_JOIN_FROM(other[i / 2][i % 2], fib);
        sum += FILCH_JOIN_FROM(child[i], in_arrays);
    }
    return sum;
}

TEST(handles_may_be_kept_in_arrays)
{
    long expected = 8;
    for (int i = 0; i < 3; i++)
        expected = 8 * expected + (0 + 1 + 1 + 2 + 3 + 5 + 8 + 13) + 1;

    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, in_arrays, 6, 3), expected);
}

FILCH_DECLARE(bool, is_even, (unsigned, n));

FILCH_TASK(bool, is_odd, (unsigned, n))
{
    if (n == 0)
        return false;
    FILCH_FORK(child, is_even, n - 1);
    return FILCH_JOIN(child);
}

FILCH_BODY(bool, is_even, (unsigned, n))
{
    if (n == 0)
        return true;
    FILCH_FORK(child, is_odd, n - 1);
    return FILCH_JOIN(child);
}

TEST(two_tasks_may_fork_each_other)
{
    FOR_EACH_POOL(pool)
    {
        assert_true(FILCH_RUN(pool, is_even, 1000));
        assert_false(FILCH_RUN(pool, is_even, 1001));
        assert_true(FILCH_RUN(pool, is_odd, 1001));
    }
}

/* ---- spawn and sync ---------------------------------------------------------------------------- */

FILCH_TASK(void, count_one, (counter *, c))
{
    counter_add(c, 1);
}

FILCH_TASK(void, count_tree, (counter *, c), (int, depth))
{
    counter_add(c, 1);
    for (int i = 0; depth > 0 && i < 5; i++)
        FILCH_SPAWN(count_tree, c, depth - 1);
    FILCH_SYNC();
}

TEST(a_sync_joins_all_that_was_spawned)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        FILCH_RUN(pool, count_tree, &c, 6);
        assert_int_equal(counter_get(&c), 1 + 5 + 25 + 125 + 625 + 3125 + 15625);
    }
}

FILCH_TASK(bool, sync_in_parts, (counter *, c))
{
    FILCH_SYNC(); /* of nothing */
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < i; k++)
            FILCH_SPAWN(count_one, c);
        FILCH_SYNC();
        if (counter_get(c) != i * (i + 1) / 2)
            return false;
    }
    FILCH_SYNC();
    return true;
}

TEST(after_each_sync_all_that_was_spawned_so_far_is_complete)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, sync_in_parts, &c));
    }
}

/* What is forked by name between two spawns is joined by name before the next. */
FILCH_TASK(bool, forks_between_spawns, (counter *, c))
{
    bool is_right = true;

    for (long i = 0; i < 20; i++) {
        FILCH_SPAWN(count_one, c);
        FILCH_FORK(child, fib, i);
        long expected = FILCH_CALL(fib, i);
        is_right &= FILCH_JOIN(child) == expected;
    }
    FILCH_SYNC();
    return is_right && counter_get(c) == 20;
}

TEST(forks_that_are_joined_may_stand_between_spawns)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, forks_between_spawns, &c));
    }
}

FILCH_TASK(void, spawn_many, (counter *, c), (long, count))
{
    for (long i = 0; i < count; i++)
        FILCH_SPAWN(count_one, c);
    FILCH_SYNC();
}

TEST(a_million_tasks_may_be_spawned_before_the_first_sync)
{
    long count = 1000000 / TEST_SLOWNESS;

    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        FILCH_RUN(pool, spawn_many, &c, count);
        assert_int_equal(counter_get(&c), count);
    }
}

/* ---- deep and wide ----------------------------------------------------------------------------- */

FILCH_TASK(long, deep, (long, n))
{
    if (n == 0)
        return 0;
    FILCH_FORK(child, deep, n - 1);
    return FILCH_JOIN(child) + 1;
}

/* Every level leaves a fork open. */
FILCH_TASK(long, deep_and_open, (long, n))
{
    if (n == 0)
        return 0;
    FILCH_FORK(child, fib, 2);
    long below = FILCH_CALL(deep_and_open, n - 1);
    return FILCH_JOIN(child) + below;
}

TEST(ten_thousand_levels_of_forks_fit_on_a_stack)
{
    FOR_EACH_POOL(pool)
    {
        assert_int_equal(FILCH_RUN(pool, deep, 10000), 10000);
        assert_int_equal(FILCH_RUN(pool, deep_and_open, 10000), 10000);
    }
}

TEST(a_recursion_may_leave_more_forks_open_than_a_strand_has_slots)
{
    FOR_EACH_POOL(pool)
    assert_int_equal(FILCH_RUN(pool, deep_and_open, MANY), MANY);
}

static counter *runs; /* how often each of the tasks below ran */

FILCH_TASK(long, mark_run, (long, i))
{
    counter_add(&runs[i], 1);
    return i * 3;
}

FILCH_TASK(long, mark_run_large, (long, i), (large, ballast))
{
    counter_add(&runs[i], 1);
    return is_right_large(ballast, 2) ? i * 3 : -1;
}

FILCH_TASK(bool, fork_many, (mark_run_forked *, child), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run, i);
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run) == i * 3;
    return is_right;
}

FILCH_TASK(bool, fork_many_large, (mark_run_large_forked *, child), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run_large, i, large_of(2));
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run_large) == i * 3;
    return is_right;
}

static bool all_ran_once(long count)
{
    bool once = true;
    for (long i = 0; i < count; i++)
        once &= counter_get(&runs[i]) == 1;
    return once;
}

static void start_counting(long count)
{
    runs = calloc((size_t)count, sizeof runs[0]);
    assert_non_null(runs);
}

TEST(a_million_tasks_may_be_forked_before_the_first_join)
{
    long count = 1000000 / TEST_SLOWNESS;
    mark_run_forked *child = calloc((size_t)count, sizeof child[0]);
    assert_non_null(child);

    FOR_EACH_POOL(pool)
    {
        start_counting(count);
        assert_true(FILCH_RUN(pool, fork_many, child, count));
        assert_true(all_ran_once(count));
        free(runs);
    }
    free(child);
}

TEST(tasks_without_a_slot_may_have_large_arguments)
{
    mark_run_large_forked *child = calloc(MANY, sizeof child[0]);
    assert_non_null(child);

    FOR_EACH_POOL(pool)
    {
        start_counting(MANY);
        assert_true(FILCH_RUN(pool, fork_many_large, child, MANY));
        assert_true(all_ran_once(MANY));
        free(runs);
    }
    free(child);
}

/* With no slot left, tasks run as ever: fork, call, spawn and sync, without macros too. */
static void mark_plain(filch_slot *f TEST_UNUSED, void *arg)
{
    counter_add(arg, 1);
}

static void fork_plain(filch_slot *f, counter *c, long count)
{
    filch_slot *const mark = f;
    for (long i = 0; i < count; i++)
        f = filch_fork(f, mark_plain, c);
    f = filch_join(f, mark);
    CHECK(f == mark);
}

FILCH_TASK(bool, all_kinds, (counter *, c))
{
    FILCH_FORK(child, fib, 10);
    FILCH_CALL(spawn_many, c, 100);
    fork_plain(FILCH_HERE, c, 100);
    bool is_right = FILCH_CALL(in_arrays, 6, 1) == 8 * 8 + 33 + 1;
    return FILCH_JOIN(child) == 55 && is_right;
}

FILCH_TASK(bool, all_kinds_when_full, (counter *, c), (mark_run_forked *, child), (long, count))
{
    for (long i = 0; i < count; i++)
        FILCH_FORK_INTO(child[i], mark_run, i);
    bool is_right = FILCH_CALL(all_kinds, c);
    for (long i = count; i-- > 0;)
        is_right &= FILCH_JOIN_FROM(child[i], mark_run) == i * 3;
    return is_right;
}

FILCH_TASK(long, count_slots)
{
    return filch_strand_of(FILCH_HERE)->split.end - FILCH_HERE;
}

TEST(a_full_strand_goes_on_with_all_kinds_of_forks)
{
    mark_run_forked *child = calloc(MANY, sizeof child[0]);
    assert_non_null(child);

    /* Shortly before the end of the slots, at the end, and after it. */
    for (long more = -40; more <= 30; more += 7) {
        FOR_EACH_POOL(pool)
        {
            long count = more <= 20 ? FILCH_RUN(pool, count_slots) + more : MANY - 1;
            counter c = {0};
            start_counting(count);
            assert_true(FILCH_RUN(pool, all_kinds_when_full, &c, child, count));
            assert_int_equal(counter_get(&c), 200);
            assert_true(all_ran_once(count));
            free(runs);
        }
    }
    free(child);
}

FILCH_TASK(bool, spawn_and_fork_many, (counter *, c), (long, count))
{
    bool is_right = true;

    for (long i = 0; i < count; i++) {
        FILCH_SPAWN(count_one, c);
        FILCH_FORK(child, fib, 3);
        is_right &= FILCH_JOIN(child) == 2;
    }
    FILCH_SYNC();
    return is_right;
}

TEST(a_fork_above_spawns_that_fill_the_strand_is_run_once)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        assert_true(FILCH_RUN(pool, spawn_and_fork_many, &c, MANY));
        assert_int_equal(counter_get(&c), MANY);
    }
}

/* ---- without macros ---------------------------------------------------------------------------- */

typedef struct range {
    long first, end, sum;
} range;

static void sum_plain(filch_slot *f, void *arg)
{
    filch_slot *const mark = f;
    range *r = arg;

    if (r->end - r->first == 1) {
        r->sum = r->first;
        return;
    }
    range left = {r->first, (r->first + r->end) / 2, 0}, right = {left.end, r->end, 0};
    f = filch_fork(f, sum_plain, &left);
    sum_plain(f, &right);
    f = filch_join(f, mark);
    r->sum = left.sum + right.sum;
}

TEST(tasks_need_no_macros)
{
    FOR_EACH_POOL(pool)
    {
        range r = {0, 10000, 0};
        filch_run_always(pool, sum_plain, &r);
        assert_int_equal(r.sum, 9999 * 5000);
    }
}

static void fork_plain_many(filch_slot *f, void *arg)
{
    fork_plain(f, arg, 100000);
}

TEST(without_macros_more_may_be_forked_than_a_strand_has_slots)
{
    FOR_EACH_POOL(pool)
    {
        counter c = {0};
        filch_run_always(pool, fork_plain_many, &c);
        assert_int_equal(counter_get(&c), 100000);
    }
}

FILCH_TASK(bool, is_on_this_stack, (const char *, address))
{
    char here;
    ptrdiff_t distance = address - (const char *)&here;
    return distance > -100000 && distance < 100000;
}

typedef struct wide_argument {
    uint64_t value[20];
} wide_argument;

FILCH_TASK(uint64_t, add_to, (counter *, sum), (wide_argument, values), (uint64_t, scale))
{
    for (size_t i = 0; i < COUNT_OF(values.value); i++)
        counter_add(sum, values.value[i] * scale);
    return scale;
}

TEST(a_task_may_be_submitted_with_its_arguments)
{
    filch_pool *pool = watched_pool_of(2);
    counter sum = {0};

    for (uint64_t scale = 1; scale <= 1000; scale++) {
        wide_argument values = {{1, 2, [19] = 3}};
        assert_int_equal(FILCH_SUBMIT(pool, add_to, &sum, values, scale), 0);
        memset(&values, 0xff, sizeof values);
    }
    assert_int_equal(filch_pool_wait(pool), 0);

    assert_int_equal(counter_get(&sum), 6 * 500500);
    assert_int_equal(FILCH_SUBMIT(NULL, add_to, &sum, (wide_argument){{0}}, 1), -EINVAL);
    watched_pool_destroy(pool);
}

TEST(without_a_pool_tasks_run_serially_on_the_callers_stack)
{
    char here = 0;
#ifndef TEST_ASAN /* whose locals are elsewhere */
    assert_true(FILCH_RUN(NULL, is_on_this_stack, &here));
#endif
    assert_int_equal(FILCH_RUN(NULL, fib, 20), 6765);
    (void)here;
}

static int create_pools(void **state)
{
    static const unsigned workers[] = {0, 1, 2, 4};
    if (watchdog_start(state))
        return -1;
    for (size_t i = 1; i < COUNT_OF(pools); i++) {
        /* Sanitizers make frames large. */
        filch_options options = {
            .size = sizeof options, .workers = workers[i], .stack_bytes = (size_t)64 << 20};
        pools[i] = watched_pool_create(&options);
    }
    return 0;
}

static int destroy_pools(void **state)
{
    for (size_t i = 1; i < COUNT_OF(pools); i++)
        watched_pool_destroy(pools[i]);
    return watchdog_stop(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_may_return_nothing),
        cmocka_unit_test(a_task_may_return_a_char),
        cmocka_unit_test(a_task_may_return_a_double),
        cmocka_unit_test(a_task_may_return_a_bool),
        cmocka_unit_test(a_task_may_return_a_struct_that_fills_its_slot),
        cmocka_unit_test(a_task_may_return_a_struct_larger_than_its_slot),
        cmocka_unit_test(a_task_may_return_a_pointer),
        cmocka_unit_test(a_task_takes_no_to_sixteen_arguments),
        cmocka_unit_test(arguments_may_be_larger_than_a_slot),
        cmocka_unit_test(arguments_keep_their_alignment),
        cmocka_unit_test(a_recursive_task_gives_the_result_of_the_recursive_function),
        cmocka_unit_test(a_fork_may_stand_in_a_branch),
        cmocka_unit_test(a_fork_may_stand_in_a_switch),
        cmocka_unit_test(a_fork_may_stand_in_nested_blocks),
        cmocka_unit_test(a_join_may_stand_in_an_expression),
        cmocka_unit_test(handles_may_be_kept_in_arrays),
        cmocka_unit_test(two_tasks_may_fork_each_other),
        cmocka_unit_test(a_sync_joins_all_that_was_spawned),
        cmocka_unit_test(after_each_sync_all_that_was_spawned_so_far_is_complete),
        cmocka_unit_test(forks_that_are_joined_may_stand_between_spawns),
        cmocka_unit_test(a_million_tasks_may_be_spawned_before_the_first_sync),
        cmocka_unit_test(ten_thousand_levels_of_forks_fit_on_a_stack),
        cmocka_unit_test(a_recursion_may_leave_more_forks_open_than_a_strand_has_slots),
        cmocka_unit_test(a_million_tasks_may_be_forked_before_the_first_join),
        cmocka_unit_test(tasks_without_a_slot_may_have_large_arguments),
        cmocka_unit_test(a_full_strand_goes_on_with_all_kinds_of_forks),
        cmocka_unit_test(a_fork_above_spawns_that_fill_the_strand_is_run_once),
        cmocka_unit_test(tasks_need_no_macros),
        cmocka_unit_test(without_macros_more_may_be_forked_than_a_strand_has_slots),
        cmocka_unit_test(a_task_may_be_submitted_with_its_arguments),
        cmocka_unit_test(without_a_pool_tasks_run_serially_on_the_callers_stack),
    };
    return cmocka_run_group_tests_name("task", tests, create_pools, destroy_pools);
}
