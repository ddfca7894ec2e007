/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

#ifdef FILCH_FAULTS
__attribute__((weak)) bool filch_fault(enum filch_fault_kind kind)
{
    (void)kind;
    return false;
}
#endif

void *filch_map_aligned(size_t bytes_below, size_t region_bytes)
{
    size_t bytes, reserved_bytes;

    if (filch_fault(FILCH_FAULT_MAP))
        return NULL;
    /* Somewhere in one region more than is needed, a header is aligned. */
    if (__builtin_add_overflow(bytes_below, region_bytes, &bytes) ||
        __builtin_add_overflow(bytes, region_bytes, &reserved_bytes))
        return NULL;

    char *reserved = mmap(NULL, reserved_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return NULL;

    size_t offset = -((uintptr_t)reserved + bytes_below) & (region_bytes - 1);
    char *low = reserved + offset;
    char *high = low + bytes;
    size_t bytes_above = region_bytes - offset;
    if ((offset > 0 && munmap(reserved, offset)) || munmap(high, bytes_above)) {
        /* The kernel had joined our mapping with its neighbours and has no room to split
         * it again. A whole region may fare better than its edges. */
        munmap(reserved, reserved_bytes);
        return NULL;
    }

    /* One touched byte must not cost 2 MiB. Only a kernel without huge pages refuses. */
    madvise(low, bytes, MADV_NOHUGEPAGE);
    return low + bytes_below;
}

void filch_unmap_aligned(void *header, size_t bytes_below, size_t region_bytes)
{
    munmap((char *)header - bytes_below, bytes_below + region_bytes);
}

/* Emulators accept any advice and do nothing: who accepts nonsense is not asked. */
static bool is_advice_taken(void *page, size_t bytes, int advice)
{
    return madvise(page, bytes, -1) != 0 && madvise(page, bytes, advice) == 0;
}

bool filch_wipe_on_fork(void *page, size_t bytes)
{
    return is_advice_taken(page, bytes, MADV_WIPEONFORK);
}

int filch_guard_install(void *page, size_t bytes)
{
    /* A guard by advice does not split the mapping: the number of mappings is limited, to
     * 65530 by default, and mprotect takes two more per region. */
    if (is_advice_taken(page, bytes, MADV_GUARD_INSTALL))
        return 0;
    return mprotect(page, bytes, PROT_NONE) ? -errno : 0;
}
