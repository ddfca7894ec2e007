/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 13): */
/* the arguments of a spawned task are larger than its slot */
#include <filch/task.h>

typedef struct large {
    long v[20];
} large;
FILCH_TASK(void, use, (large, l))
{
    (void)l;
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
    large l = {{0}};
    FILCH_SPAWN(use, l);
    FILCH_SYNC();
    return n;
}
