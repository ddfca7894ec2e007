/* SPDX-License-Identifier: MIT */
/* Refused in C, in 34 lines (clang 12): */
/* has incomplete type */
#include <filch/task.h>

FILCH_TASK(long, fib, (void, n))
{
    return 1;
}
