/* SPDX-License-Identifier: MIT */
/* A fork that is never joined: -Wall warns in every build. */
#include <filch/task.h>

FILCH_TASK(long, leaf, (long, value))
{
    return value;
}

FILCH_TASK(long, forgetful, (long, value))
{
    FILCH_FORK(child, leaf, value);
    return value;
}

long run(filch_pool *pool)
{
    return FILCH_RUN(pool, forgetful, 1);
}
