/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include "base/valgrind.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#define MADV_GUARD_REMOVE 103
#endif
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000) /* Linux 6.15 */
#endif

/* We advise on at most this many ranges with one call. */
#define RANGES_MAX 64

#ifdef FILCH_FAULTS
__attribute__((weak)) bool filch_fault(enum filch_fault_kind kind)
{
    (void)kind;
    return false;
}
#endif

void *filch_map_aligned(size_t bytes_below, size_t bytes_above, size_t alignment)
{
    size_t bytes, reserved_bytes;

    if (filch_fault(FILCH_FAULT_MAP))
        return NULL;
    /* With `alignment` extra bytes, the range contains an aligned address. */
    if (__builtin_add_overflow(bytes_below, bytes_above, &bytes) ||
        __builtin_add_overflow(bytes, alignment, &reserved_bytes))
        return NULL;

    char *reserved = mmap(NULL, reserved_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return NULL;

    size_t offset = -((uintptr_t)reserved + bytes_below) & (alignment - 1);
    char *low = reserved + offset;
    char *high = low + bytes;
    /* An error: the kernel had merged our mapping with its neighbours, and has no room to split it
     * again. Unmapping all that is left may still succeed. Do not unmap more: once the part below
     * is gone, another thread may have a mapping there. */
    if (offset > 0 && munmap(reserved, offset)) {
        munmap(reserved, reserved_bytes);
        return NULL;
    }
    if (munmap(high, alignment - offset)) {
        munmap(low, reserved_bytes - offset);
        return NULL;
    }

    /* One touched byte must not cost 2 MiB. Only a kernel without huge pages fails here. */
    madvise(low, bytes, MADV_NOHUGEPAGE);
    return low + bytes_below;
}

void filch_unmap_aligned(void *aligned, size_t bytes_below, size_t bytes_above)
{
    munmap((char *)aligned - bytes_below, bytes_below + bytes_above);
}

/* An emulator accepts any advice and ignores most of it, so its answer tells nothing. */
static bool is_nonsense_taken(void *page, size_t bytes)
{
    return madvise(page, bytes, -1) == 0;
}

static bool is_advice_taken(void *page, size_t bytes, int advice)
{
    return !is_nonsense_taken(page, bytes) && madvise(page, bytes, advice) == 0;
}

bool filch_wipe_on_fork(void *page, size_t bytes)
{
    return is_advice_taken(page, bytes, MADV_WIPEONFORK);
}

/* Test on a page of our own whether MADV_DONTNEED clears it. */
static bool is_dontneed_followed(void)
{
    size_t bytes = filch_page_bytes();
    char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    *page = 1;
    bool is_lost = madvise(page, bytes, MADV_DONTNEED) == 0 && *page == 0;
    munmap(page, bytes);
    return is_lost;
}

bool filch_discard(void *page, size_t bytes)
{
    /* qemu 7.2 accepts any advice, but it does follow MADV_DONTNEED. */
    return (!is_nonsense_taken(page, bytes) || is_dontneed_followed()) &&
           madvise(page, bytes, MADV_DONTNEED) == 0;
}

static int install_one(void *page, size_t bytes)
{
    /* A guard by advice does not split the mapping. mprotect takes two more mappings per guard, and
     * their number is limited, to 65530 by default. */
    if (is_advice_taken(page, bytes, MADV_GUARD_INSTALL))
        return 0;
    return mprotect(page, bytes, PROT_NONE) ? -errno : 0;
}

/* Advise on all ranges with one call, in two thirds of the time. Needs Linux 6.15. */
static bool advise_all(char *first, size_t bytes, size_t stride, size_t count, int advice)
{
#if defined(SYS_process_madvise) && !defined(FILCH_MODEL)
    struct iovec ranges[RANGES_MAX];

    if (count < 2 || count > RANGES_MAX || filch_is_on_valgrind())
        return false;
    for (size_t i = 0; i < count; i++)
        ranges[i] = (struct iovec){first + i * stride, bytes};
    return syscall(SYS_process_madvise, PIDFD_SELF, ranges, count, advice, 0) ==
           (long)(count * bytes);
#else
    (void)first, (void)bytes, (void)stride, (void)count, (void)advice;
    return false;
#endif
}

int filch_guard_install(void *first, size_t bytes, size_t stride, size_t count)
{
    if (filch_fault(FILCH_FAULT_MAP))
        return -ENOMEM;
    if (advise_all(first, bytes, stride, count, MADV_GUARD_INSTALL))
        return 0;
    for (size_t i = 0; i < count; i++) {
        int err = install_one((char *)first + i * stride, bytes);
        if (err)
            return err;
    }
    return 0;
}

void filch_guard_remove(void *first, size_t bytes, size_t stride, size_t count)
{
    if (advise_all(first, bytes, stride, count, MADV_GUARD_REMOVE))
        return;
    for (size_t i = 0; i < count; i++)
        madvise((char *)first + i * stride, bytes, MADV_GUARD_REMOVE);
}
