/* SPDX-License-Identifier: MIT */
/* Refused in C and C++, in 12 lines (clang 18): */
/* an argument needs a larger alignment than a submitted task has */
#include <filch/task.h>

typedef struct wide {
    char bytes[64];
} __attribute__((aligned(64))) wide;

FILCH_TASK(void, use, (wide, argument))
{
    (void)argument;
}

int submit_it(filch_pool *pool, wide argument)
{
    return FILCH_SUBMIT(pool, use, argument);
}
