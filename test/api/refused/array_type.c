/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 23): */
/* FILCH_TASK arguments are no arrays: write (type *, name), or use a struct */
#include <filch/task.h>

typedef long four[4];
FILCH_TASK(long, fib, (long, n), (four, a))
{
    return a[n];
}
