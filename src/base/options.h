/* SPDX-License-Identifier: MIT */
/*
 * Structs of the caller that begin with their own size, so that they can grow.
 */
#ifndef FILCH_BASE_OPTIONS_H
#define FILCH_BASE_OPTIONS_H

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* A caller whose struct has a larger `size` has not set it. */
#define FILCH_LARGEST_STRUCT_BYTES 4096

/*
 * Copy the options `from` of a caller to `to`, a struct of `known` bytes. NULL stands for defaults.
 *
 * A shorter struct comes from an older caller: the rest is zero. A longer one comes from a newer
 * caller: it is accepted if the members that this library does not know are zero.
 *
 * Returns 0, or -EINVAL: `size` was not set; -E2BIG: unknown members are used.
 */
static inline int filch_options_copy(void *to, size_t known, const void *from)
{
    size_t size;

    memset(to, 0, known);
    memcpy(to, &known, sizeof known);
    if (!from)
        return 0;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size)
        return -EINVAL;
    if (size > FILCH_LARGEST_STRUCT_BYTES)
        return -E2BIG;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i] != 0)
            return -E2BIG;
    memcpy(to, from, size < known ? size : known);
    memcpy(to, &known, sizeof known);
    return 0;
}

#endif
