/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 20): */
/* foo_is_a_FILCH_TASK */
#include <filch/task.h>

static long foo(long n)
{
    return n;
}

long answer(filch_pool *pool);
long answer(filch_pool *pool)
{
    return FILCH_SUBMIT(pool, foo, 40);
}
