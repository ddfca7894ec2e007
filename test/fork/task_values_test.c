/* SPDX-License-Identifier: MIT */
/*
 * Arguments and results of tasks: all types, and any number of arguments.
 *
 * With a second worker, a child that the parent waits for will be stolen: the first fork of a
 * strand is public at once.
 */
#include "task_support.h"

#include <stdalign.h>

static bool can_steal(filch_pool *pool)
{
    return filch_pool_worker_count(pool) > 1;
}

/* The children below open this latch when they start. */
static latch started;

static void wait_if(bool is_to_be_stolen)
{
    if (is_to_be_stolen)
        latch_wait(&started);
}

/* ---- results --------------------------------------------------------------------------------- */

typedef struct fitting {
    char text[FILCH_SLOT_ROOM];
} fitting;

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

/* A task that forks and calls `child`, and returns whether both results were right. */
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

/* Run `child` as a root, as a stolen fork where possible, and as a fork that is not stolen. */
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

/* ---- arguments ------------------------------------------------------------------------------- */

/* Each sums its arguments, weighted by their position, so that an exchange of two is noticed. */
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

#define IS_NINE(x) ((x) == 9)
ROOT_OF(take_large, IS_NINE, large_of(3), 9, large_of(4))

TEST(arguments_may_be_larger_than_a_slot)
{
    assert_false(take_large_fits);
    ASSERT_RIGHT_EVERYWHERE(take_large, IS_NINE, large_of(3), 9, large_of(4))
}

typedef const struct pair {
    int first, second;
} pair;

FILCH_TASK(int, take_const, (const int, a), (pair, b), (const char *const, c))
{
    latch_open(&started);
    return a + b.first - b.second + c[0];
}

#define IS_105(x) ((x) == 105)
ROOT_OF(take_const, IS_105, 3, ((pair){7, 2}), "a")

TEST(arguments_may_be_const)
{
    ASSERT_RIGHT_EVERYWHERE(take_const, IS_105, 3, ((pair){7, 2}), "a")
}

typedef struct aligned {
    alignas(32) char byte;
} aligned;

typedef struct more_aligned {
    alignas(64) char byte;
} more_aligned;

/* Through a volatile pointer, the compiler cannot assume the alignment. */
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

TEST(arguments_keep_their_alignment)
{
    ASSERT_RIGHT_EVERYWHERE(take_aligned, IS_TRUE, 1, ((aligned){2}))
    ASSERT_RIGHT_EVERYWHERE(take_more_aligned, IS_TRUE, 1, ((more_aligned){2}))
    ASSERT_RIGHT_EVERYWHERE(take_long_double, IS_LONG_DOUBLE, 3, 1.5L, 0.25L)
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
        cmocka_unit_test(arguments_may_be_const),
        cmocka_unit_test(arguments_keep_their_alignment),
    };
    return cmocka_run_group_tests_name("task_values", tests, create_pools, destroy_pools);
}
