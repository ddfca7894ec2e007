/* SPDX-License-Identifier: MIT */
/* Refused in C, in 37 lines: */
/* has incomplete type */
#include <filch/task.h>

FILCH_TASK(long, fib, (void, n))
{
    return 1;
}
