/* SPDX-License-Identifier: MIT */
/* Refused in C, in 12 lines (clang 23): */
/* FILCH_TASK arguments are no arrays: write (type *, name), or use a struct */
#include <filch/task.h>

FILCH_TASK(long, fib, (long, n), (long, a[4]))
{
    return a[n];
}
