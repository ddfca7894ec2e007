/* SPDX-License-Identifier: MIT */
/*
 * The part of cmocka that our tests use, for targets without cmocka: cross builds, mostly.
 *
 * A failed assertion prints its place and ends the program, so every thread and every stack may use
 * assertions. As in cmocka, values are compared as unsigned integers of the widest kind. An
 * argument is evaluated once, because it may be a call with an effect.
 */
#ifndef CMOCKA_H
#define CMOCKA_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func;
    CMFixtureFunction teardown_func;
    void *initial_state;
};

static jmp_buf cmocka_skipped;

/* clang-format off */
#define cmocka_unit_test(f)                                 {#f, f, NULL, NULL, NULL}
#define cmocka_unit_test_setup(f, setup)                    {#f, f, setup, NULL, NULL}
#define cmocka_unit_test_teardown(f, teardown)              {#f, f, NULL, teardown, NULL}
#define cmocka_unit_test_setup_teardown(f, setup, teardown) {#f, f, setup, teardown, NULL}
#define cmocka_unit_test_prestate(f, state)                 {#f, f, NULL, NULL, state}
/* clang-format on */

#define fail_msg(...) cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define fail() fail_msg("failed")
#define skip() longjmp(cmocka_skipped, 1)
#define print_message(...) printf(__VA_ARGS__)
#define print_error(...) fprintf(stderr, __VA_ARGS__)

#define cmocka_check(holds, ...)                                                                   \
    do {                                                                                           \
        if (!(holds))                                                                              \
            fail_msg(__VA_ARGS__);                                                                 \
    } while (0)
#define cmocka_compare(type, format, a, op, b)                                                     \
    do {                                                                                           \
        type cmocka_a = (type)(a);                                                                 \
        type cmocka_b = (type)(b);                                                                 \
        cmocka_check(cmocka_a op cmocka_b, "not so: %s %s %s, with " format " and " format, #a,    \
                     #op, #b, cmocka_a, cmocka_b);                                                 \
    } while (0)

#define assert_true(x) cmocka_check(x, "not true: %s", #x)
#define assert_false(x) cmocka_check(!(x), "not false: %s", #x)
#define assert_null(x) cmocka_check((x) == NULL, "not NULL: %s", #x)
#define assert_non_null(x) cmocka_check((x) != NULL, "NULL: %s", #x)
#define assert_return_code(x, error) cmocka_check((x) >= 0, "%s: %s", #x, strerror(error))
#define assert_int_equal(a, b) cmocka_compare(uintmax_t, "%#jx", a, ==, b)
#define assert_int_not_equal(a, b) cmocka_compare(uintmax_t, "%#jx", a, !=, b)
#define assert_ptr_equal(a, b) cmocka_compare(const void *, "%p", a, ==, b)
#define assert_ptr_not_equal(a, b) cmocka_compare(const void *, "%p", a, !=, b)
#define assert_in_range(x, least, most)                                                            \
    do {                                                                                           \
        uintmax_t cmocka_x = (uintmax_t)(x);                                                       \
        uintmax_t cmocka_least = (uintmax_t)(least);                                               \
        uintmax_t cmocka_most = (uintmax_t)(most);                                                 \
        cmocka_check(cmocka_x >= cmocka_least && cmocka_x <= cmocka_most,                          \
                     "not so: %s <= %s <= %s, with %#jx, %#jx and %#jx", #least, #x, #most,        \
                     cmocka_least, cmocka_x, cmocka_most);                                         \
    } while (0)
#define cmocka_compare_strings(a, op, b)                                                           \
    do {                                                                                           \
        const char *cmocka_a = (a);                                                                \
        const char *cmocka_b = (b);                                                                \
        cmocka_check(strcmp(cmocka_a, cmocka_b) op 0, "not so: %s %s %s, with \"%s\" and \"%s\"",  \
                     #a, #op, #b, cmocka_a, cmocka_b);                                             \
    } while (0)
#define assert_string_equal(a, b) cmocka_compare_strings(a, ==, b)
#define assert_string_not_equal(a, b) cmocka_compare_strings(a, !=, b)
#define assert_memory_equal(a, b, size)                                                            \
    cmocka_check(memcmp((a), (b), (size)) == 0, "not equal: %s and %s", #a, #b)

#define cmocka_fail(file, line, ...)                                                               \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", (file), (line));                                                \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        _Exit(1);                                                                                  \
    } while (0)

#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cmocka_run(tests, sizeof(tests) / sizeof(tests)[0], setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                  \
    cmocka_run_group_tests(tests, setup, teardown)

/* Returns false if the test was skipped. Not inlined: longjmp may clobber its caller's
 * variables. */
__attribute__((noinline, unused)) static int cmocka_run_test(CMUnitTestFunction test, void **state)
{
    if (setjmp(cmocka_skipped))
        return 0;
    test(state);
    return 1;
}

static inline int cmocka_run(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                             CMFixtureFunction teardown)
{
    void *group_state = NULL;

    cmocka_check(!setup || setup(&group_state) == 0, "the group's setup failed");
    for (const struct CMUnitTest *test = tests; test < tests + count; test++) {
        void *state = test->initial_state ? test->initial_state : group_state;
        printf("[ RUN      ] %s\n", test->name);
        fflush(stdout);
        cmocka_check(!test->setup_func || test->setup_func(&state) == 0, "setup failed");
        if (!cmocka_run_test(test->test_func, &state))
            printf("[  SKIPPED ] %s\n", test->name);
        cmocka_check(!test->teardown_func || test->teardown_func(&state) == 0, "teardown failed");
    }
    cmocka_check(!teardown || teardown(&group_state) == 0, "the group's teardown failed");
    return 0;
}

#endif
