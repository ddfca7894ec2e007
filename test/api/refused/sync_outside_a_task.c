/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 19): */
/* filch_here */
#include <filch/task.h>

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
void plain(void);
void plain(void)
{
    FILCH_SYNC();
}
