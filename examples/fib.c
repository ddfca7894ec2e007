/* SPDX-License-Identifier: MIT */
/* The program at the top of filch/filch.h: fork, call, join, run. */
#include <filch/filch.h>
#include <stdio.h>

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(left, fib, n - 1);
    long right = FILCH_CALL(fib, n - 2);
    return FILCH_JOIN(left) + right;
}

int main(void)
{
    filch_pool *pool;
    if (filch_pool_create(&pool, NULL))
        return 1;
    printf("%ld\n", FILCH_RUN(pool, fib, 30));
    return filch_pool_destroy(pool);
}
