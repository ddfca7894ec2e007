// SPDX-License-Identifier: MIT
// Refused in C++, in 6 lines (clang 38):
// fib_join
#include <filch/task.h>

FILCH_TASK(long, fib, (long, n))
{
    if (n < 2)
        return n;
    FILCH_FORK(fib, fib, n - 1);
    return FILCH_JOIN(fib);
}
