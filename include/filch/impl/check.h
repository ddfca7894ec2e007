/* SPDX-License-Identifier: MIT */
/*
 * Checked programs: those compiled without optimisation, or with FILCH_DEBUG. Not for users.
 *
 * In a checked program, the headers replace some functions by macros. These pass the place of the
 * call to a function of the library that first checks the call. So the checks work with any build
 * of the library. The arguments are variadic, since an argument may have commas in braces.
 */
#ifndef FILCH_IMPL_CHECK_H
#define FILCH_IMPL_CHECK_H

#ifdef FILCH_CHECKED
/* Set by the library for its own tasks. */
#elif defined(FILCH_DEBUG) || (!defined(NDEBUG) && !defined(__OPTIMIZE__))
#define FILCH_CHECKED 1
#else
#define FILCH_CHECKED 0
#endif

/* The library itself calls its functions by their names. */
#if FILCH_CHECKED && !defined(FILCH_LIBRARY)
#define FILCH_IMPL_PLACES 1
#else
#define FILCH_IMPL_PLACES 0
#endif

/* The place of the call, and its arguments. */
#define FILCH_IMPL_PLACE(function, ...) function(__FILE__, __LINE__, __VA_ARGS__)

#endif
