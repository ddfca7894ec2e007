// SPDX-License-Identifier: MIT
// Refused in C++, in 12 lines (clang 23):
// FILCH_TASK arguments and results are trivially copyable: pass a pointer
#include <filch/task.h>

#include <memory>
FILCH_TASK(int, use, (std::unique_ptr<int>, p))
{
    return *p;
}
