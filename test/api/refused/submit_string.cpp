// SPDX-License-Identifier: MIT
// Must not compile: the arguments of a submitted task are copied byte by byte.
#include <filch/task.h>

#include <string>

FILCH_TASK(void, use, (std::string, argument))
{
    (void)argument;
}

int submit_it(filch_pool *pool, const std::string &argument)
{
    return FILCH_SUBMIT(pool, use, argument);
}
