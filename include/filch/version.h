/* SPDX-License-Identifier: MIT */
/*
 * The version of the library, and how its symbols are declared.
 */
#ifndef FILCH_VERSION_H
#define FILCH_VERSION_H

#define FILCH_VERSION_MAJOR 0
#define FILCH_VERSION_MINOR 1
#define FILCH_VERSION_PATCH 0
#define FILCH_VERSION "0.1.0"

/* The version of the layout that inlined code of filch/strand.h and filch/task.h shares with the
 * library. It changes with that layout. filch_pool_create refuses a caller compiled against another
 * version. */
#define FILCH_ABI 4u

/* Marks a function that the library exports. */
#define FILCH_API __attribute__((visibility("default")))

/* Marks a function that is inlined into C callers. src/inline.c also compiles it into the library,
 * for callers that cannot inline it. */
#ifndef FILCH_INLINE
#define FILCH_INLINE static inline __attribute__((unused))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is running. It may be newer than FILCH_VERSION. */
FILCH_API const char *filch_version(void);

#ifdef __cplusplus
}
#endif

#endif
