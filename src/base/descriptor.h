/* SPDX-License-Identifier: MIT */
/*
 * Keeps the library's own descriptors away from 0, 1 and 2.
 */
#ifndef FILCH_BASE_DESCRIPTOR_H
#define FILCH_BASE_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Move `fd` above 2 and return its new number. A program that has closed its standard streams may
 * go on using 0, 1 and 2. It must not hit a descriptor of the library there. Returns -1, with errno
 * set, if `fd` cannot be moved; `fd` is closed then. A negative `fd` is returned as it is, with
 * errno unchanged. */
static inline int filch_descriptor_of_ours(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), err = errno;
    close(fd);
    errno = err;
    return moved;
}

#endif
