/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 12): */
/* FILCH_TASK has at most 16 arguments */
#include <filch/task.h>

FILCH_TASK(int, fib, (int, a0), (int, a1), (int, a2), (int, a3), (int, a4), (int, a5), (int, a6),
           (int, a7), (int, a8), (int, a9), (int, a10), (int, a11), (int, a12), (int, a13),
           (int, a14), (int, a15), (int, a16))
{
    return a0;
}
