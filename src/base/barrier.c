/* SPDX-License-Identifier: MIT */
#include "base/barrier.h"

#include "base/valgrind.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <unistd.h>

void filch_barrier_prepare(void)
{
    int saved = errno;

    if (!filch_is_on_valgrind())
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    errno = saved;
}

void filch_barrier_prepare_early(void)
{
#if __has_include(<sys/single_threaded.h>)
    if (__libc_single_threaded)
        filch_barrier_prepare();
#endif
}

bool filch_barrier_all(void)
{
    int saved = errno;
    bool is_done = !filch_is_on_valgrind() &&
                   syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;

    errno = saved;
    return is_done;
}
