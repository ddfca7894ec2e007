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
#else
#define FILCH_IMPL_HAS_EXCEPTIONS 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* `get` returns the address of the state that the C++ runtime keeps for the calling thread. */
FILCH_API void filch_exceptions_use(void *(*get)(void));

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
#endif

#endif
