/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions and tasks. Not for users: any of this may change.
 */
#ifndef FILCH_IMPL_EXCEPTIONS_H
#define FILCH_IMPL_EXCEPTIONS_H

#include <filch/version.h>

#if defined(__cplusplus) && defined(__cpp_exceptions)
#define FILCH_IMPL_HAS_EXCEPTIONS 1
#include <cxxabi.h>
#include <exception>
#else
#define FILCH_IMPL_HAS_EXCEPTIONS 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* `get` returns the address of the state that the C++ runtime keeps for the calling thread. */
FILCH_API void filch_exceptions_use(void *(*get)(void));

/* Print the message about an exception that leaves this task. */
FILCH_API void filch_exceptions_report(const char *task);

/* The same for a task that ends its thread, by pthread_exit or pthread_cancel. Then abort. */
FILCH_API void filch_exceptions_exit(const char *task) __attribute__((noreturn, cold));

#ifdef __cplusplus
}
#endif

#if FILCH_IMPL_HAS_EXCEPTIONS
/* libfilch finds the C++ runtime by itself if the program starts with it. This is for programs in C
 * that load a library in C++ later. */
struct filch_impl_exceptions {
    filch_impl_exceptions()
    {
        filch_exceptions_use(reinterpret_cast<void *(*)(void)>(abi::__cxa_get_globals));
    }
};

inline const filch_impl_exceptions filch_impl_exceptions_used;

/* In libstdc++, catch (...) also gets the end of a thread, which is no exception of C++. With other
 * C++ libraries it does not, and the caller of the task stops the program. */
[[noreturn]] __attribute__((cold, noinline)) inline void filch_impl_terminate(const char *task)
{
    if (!std::current_exception())
        filch_exceptions_exit(task);
    filch_exceptions_report(task);
    std::terminate();
}
#endif

#endif
