/* SPDX-License-Identifier: MIT */
/* The first program of a user. Exits with 0 if a task runs and returns its result. */
#include <filch/filch.h>

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
    if (filch_pool_create(&pool, NULL) != 0)
        return 1;
    long answer = FILCH_RUN(pool, fib, 20);
    filch_pool_destroy(pool);
    return answer == 6765 ? 0 : 1;
}
