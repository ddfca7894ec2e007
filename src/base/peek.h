/* SPDX-License-Identifier: MIT */
/*
 * Read memory that may be changed, or freed and unmapped, at the same moment: the kernel copies it.
 * The copy is only a hint. Not for signal handlers.
 */
#ifndef FILCH_BASE_PEEK_H
#define FILCH_BASE_PEEK_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* For containers and emulators that refuse process_vm_readv. A write into a pipe fails if the
 * memory is not there. At most 4 KiB. */
static inline bool filch_peek_by_pipe(const void *from, void *to, size_t bytes)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return false;
    bool is_read = syscall(SYS_write, ends[1], from, bytes) == (long)bytes &&
                   read(ends[0], to, bytes) == (ssize_t)bytes;
    close(ends[0]);
    close(ends[1]);
    return is_read;
}

/* False: there is no such memory. */
static inline bool filch_peek(const void *from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

    return syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == (long)bytes ||
           filch_peek_by_pipe(from, to, bytes);
}

#endif
