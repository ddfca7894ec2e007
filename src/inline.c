/* SPDX-License-Identifier: MIT */
/*
 * The inlined functions of the public headers, compiled out of line for callers that cannot inline.
 */
#define FILCH_INLINE __attribute__((visibility("default")))

#include <filch/filch.h>

const char *filch_version(void)
{
    return FILCH_VERSION;
}
