// SPDX-License-Identifier: MIT
// Refused in C++, in 12 lines (clang 23):
// FILCH_TASK arguments and results are trivially copyable: pass a pointer
#include <filch/task.h>

#include <string>
FILCH_TASK(void, use, (std::string, text))
{
    (void)text;
}
