/* SPDX-License-Identifier: MIT */
/*
 * Errors are values: a call that can fail returns 0 or -errno.
 */
#ifndef FILCH_ERROR_H
#define FILCH_ERROR_H

#include <filch/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Describe `err`, as returned by this library. The text is constant, and the call takes no lock. */
FILCH_API const char *filch_strerror(int err);

#ifdef __cplusplus
}
#endif

#endif
