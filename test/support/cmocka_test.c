/* SPDX-License-Identifier: MIT */
/* The replacement for cmocka, tested also where cmocka is installed. */
#include "cmocka/cmocka.h"

static uintmax_t calls;

static int one(void)
{
    return ++calls ? 1 : 0;
}

static const char *text(void)
{
    return ++calls ? "text" : "";
}

/* An argument may be a call that receives or sends an entry. */
static void an_argument_is_evaluated_once(void **state)
{
    (void)state;
    assert_true(one());
    assert_false(!one());
    assert_null(one() ? NULL : "");
    assert_non_null(text());
    assert_return_code(one(), 0);
    assert_int_equal(calls, 5);

    calls = 0;
    assert_int_equal(one(), one());
    assert_int_not_equal(one(), 1 + one());
    assert_ptr_equal(text(), text());
    assert_ptr_not_equal(text(), text() + 1);
    assert_string_equal(text(), text());
    assert_string_not_equal(text(), text() + 1);
    assert_memory_equal(text(), text(), (size_t)one());
    assert_int_equal(calls, 15);

    calls = 0;
    assert_in_range(one(), one(), one());
    assert_int_equal(calls, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_argument_is_evaluated_once),
    };
    return cmocka_run_group_tests_name("cmocka", tests, NULL, NULL);
}
