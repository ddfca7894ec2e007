/* SPDX-License-Identifier: MIT */
/*
 * Memory from the system: zeroed blocks, and reservations with an aligned address inside, so that it is found by masking.
 *
 *     low                          aligned                             high
 *      |<------ bytes_below ------->|<---------- bytes_above ---------->|
 *
 * Pages cost memory once touched.
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
 * Reserve memory around an address that is a multiple of `alignment`, a power of two, and return that address; NULL when
 * there is no address space left. All of it is zero, readable and writable, and never made of huge pages.
 *
 * Both sizes are multiples of the page size; `bytes_below` may be 0.
 */
void *filch_map_aligned(size_t bytes_below, size_t bytes_above, size_t alignment);

/* Give it back; the sizes are those it was reserved with. */
void filch_unmap_aligned(void *aligned, size_t bytes_below, size_t bytes_above);

/* Let every access to these pages raise SIGSEGV until they are unmapped: `count` times `bytes`, one `stride` apart. What
 * they held is lost. 0 or -errno; then some may be guards, and the call may be repeated. */
int filch_guard_install(void *first, size_t bytes, size_t stride, size_t count);

/* Undo it, so that no page table is kept for them. Where the kernel does not know how, they stay guards, and may be installed
 * again all the same. */
void filch_guard_remove(void *first, size_t bytes, size_t stride, size_t count);

/* Let these pages be zero, and cost nothing until touched again. Guards stay. False: they are as they were. */
bool filch_discard(void *page, size_t bytes);

/* Let the kernel clear these pages in the child of a fork(). False: it does not. */
bool filch_wipe_on_fork(void *page, size_t bytes);

#endif
