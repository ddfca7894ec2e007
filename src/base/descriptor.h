/* SPDX-License-Identifier: MIT */
/*
 * Descriptors of the library's own.
 */
#ifndef FILCH_BASE_DESCRIPTOR_H
#define FILCH_BASE_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* A program that has closed its standard streams goes on using 0, 1 and 2, and must not meet ours there. The descriptor, or another for the same; or -1 with errno set, if it was. */
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
