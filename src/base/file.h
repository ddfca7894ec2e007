/* SPDX-License-Identifier: MIT */
/*
 * Read the small files of /proc and /sys.
 */
#ifndef FILCH_BASE_FILE_H
#define FILCH_BASE_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Read up to size-1 bytes of a file into `text`, as a string without trailing white space. The path
 * is formatted as by printf. Returns 0 or -errno; after an error `text` is empty.
 */
__attribute__((format(printf, 3, 4))) static inline int
filch_file_read(char *text, size_t size, const char *path_format, ...)
{
    char path[PATH_MAX];
    va_list arguments;

    text[0] = '\0';
    va_start(arguments, path_format);
    int path_length = vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    if (path_length < 0 || (size_t)path_length >= sizeof path)
        return -ENAMETOOLONG;

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = read(fd, text, size - 1);
    int err = length < 0 ? -errno : 0;
    close(fd);

    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    text[length > 0 ? length : 0] = '\0';
    return err;
}

#endif
