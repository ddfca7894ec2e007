/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 20): */
/* foo_is_a_FILCH_TASK */
#include <filch/task.h>

static long foo(long n)
{
    return n;
}

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

long answer(filch_pool *pool);
long answer(filch_pool *pool)
{
    return FILCH_RUN(pool, fib, 40);
}
FILCH_TASK(long, bar, (long, n))
{
    return FILCH_CALL(foo, n);
}
