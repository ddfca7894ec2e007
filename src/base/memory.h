/* SPDX-License-Identifier: MIT */
/*
 * Memory from the system: zeroed blocks, and regions whose header is found by masking.
 *
 *     low                          header                              high
 *      |<------ bytes_below ------->|<--------- region_bytes ---------->|
 *      | guard |                    |                           | guard |
 *
 * `header` is a multiple of region_bytes, a power of two. Any address in the upper part
 * leads back to it: address & ~(region_bytes - 1). Pages cost memory once touched.
 */
#ifndef FILCH_BASE_MEMORY_H
#define FILCH_BASE_MEMORY_H

#include "base/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static inline size_t filch_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* calloc() that a test can make fail; free() gives it back. */
static inline void *filch_calloc(size_t count, size_t bytes)
{
    return filch_fault(FILCH_FAULT_MALLOC) ? NULL : calloc(count, bytes);
}

/*
 * Reserve a region and return its header, or NULL when there is no address space left.
 * All of it is zero, readable and writable, and never made of huge pages.
 *
 * Both sizes are multiples of the page size; `bytes_below` may be 0.
 */
void *filch_map_aligned(size_t bytes_below, size_t region_bytes);

/* Give it back; the sizes are those it was reserved with. */
void filch_unmap_aligned(void *header, size_t bytes_below, size_t region_bytes);

/* Let every access to these pages of a region raise SIGSEGV until they are unmapped. What
 * they held is lost. 0 or -errno. */
int filch_guard_install(void *page, size_t bytes);

/* Let the kernel clear these pages in the child of a fork(). False: it does not. */
bool filch_wipe_on_fork(void *page, size_t bytes);

#endif
