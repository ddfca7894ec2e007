/* SPDX-License-Identifier: MIT */
/* Refused in C++, in 12 lines (clang 10): */
/* a type with a comma needs a typedef */
#include <filch/task.h>

#include <utility>

FILCH_TASK(long, sum, (std::pair<int, int> *, p))
{
    return p->first + p->second;
}

long answer(filch_pool *pool, std::pair<int, int> *p)
{
    return FILCH_RUN(pool, sum, p);
}
