/* SPDX-License-Identifier: MIT */
/*
 * Errors are values: what can fail returns 0 or -errno.
 */
#ifndef FILCH_ERROR_H
#define FILCH_ERROR_H

#include <filch/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `err`, as returned by this library, means here. The text is constant and needs no lock. */
FILCH_API const char *filch_strerror(int err);

#ifdef __cplusplus
}
#endif

#endif
