/* SPDX-License-Identifier: MIT */
/*
 * Memory from the system: zeroed blocks, and reservations with an aligned address inside. Code
 * finds that address by masking.
 *
 *     low                          aligned                             high
 *      |<------ bytes_below ------->|<---------- bytes_above ---------->|
 *
 * A page costs memory only once it is touched.
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

/* calloc() that a test can make fail. free() releases the memory. */
static inline void *filch_calloc(size_t count, size_t bytes)
{
    return filch_fault(FILCH_FAULT_MALLOC) ? NULL : calloc(count, bytes);
}

/*
 * Reserve memory around an address that is a multiple of `alignment`, a power of two. Returns that
 * address; NULL: no address space is left. The memory is zero, readable and writable, and never
 * made of huge pages.
 *
 * Both sizes are multiples of the page size; `bytes_below` may be 0.
 */
void *filch_map_aligned(size_t bytes_below, size_t bytes_above, size_t alignment);

/* Release a reservation, with the sizes of filch_map_aligned. */
void filch_unmap_aligned(void *aligned, size_t bytes_below, size_t bytes_above);

/* Make every access to `count` ranges of `bytes` bytes, each `stride` after the last, raise SIGSEGV
 * until they are unmapped. Their contents are lost. Returns 0 or -errno. After an error some ranges
 * may be guards, and the call may be repeated. */
int filch_guard_install(void *first, size_t bytes, size_t stride, size_t count);

/* Undo filch_guard_install, so that the kernel keeps no page tables for the guards. If the kernel
 * cannot do that, they stay guards. They may be installed again in either case. */
void filch_guard_remove(void *first, size_t bytes, size_t stride, size_t count);

/* Make these pages zero, so that they cost nothing until touched again. Guards stay. False: the
 * pages are unchanged. */
bool filch_discard(void *page, size_t bytes);

/* Make the kernel clear these pages in the child of a fork(). False: it cannot. */
bool filch_wipe_on_fork(void *page, size_t bytes);

#endif
