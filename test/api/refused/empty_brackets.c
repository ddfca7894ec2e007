/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 12): */
/* FILCH_TASK arguments are written (type, name), each in brackets */
#include <filch/task.h>

FILCH_TASK(long, fib, ())
{
    return 1;
}
