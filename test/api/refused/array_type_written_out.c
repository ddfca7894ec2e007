/* SPDX-License-Identifier: MIT */
/* Refused in C, in 12 lines (clang 54): */
/* FILCH_TASK arguments are no arrays: write (type *, name), or use a struct */
#include <filch/task.h>

FILCH_TASK(long, fib, (long, n), (long[4], a))
{
    return a[n];
}
