/* SPDX-License-Identifier: MIT */
/*
 * Calls that consist of several operations, or of none: whole buffers, files into sockets,
 * directories, names.
 */
#include "base/memory.h"

#include <errno.h>
#include <filch/blocking.h>
#include <filch/io.h>
#include <netdb.h>
#include <stdlib.h>

#define DIR_BYTES ((size_t)32 << 10)
#define COPY_BYTES ((size_t)64 << 10)

/* ---- whole buffers --------------------------------------------------------------------------- */

ssize_t filch_write_all(filch_frame *f, int fd, const void *buffer, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = filch_write(f, fd, (const char *)buffer + done, bytes - done);
        if (count <= 0)
            return count < 0 ? count : -EIO;
        done += (size_t)count;
    }
    return (ssize_t)bytes;
}

ssize_t filch_send_all(filch_frame *f, int fd, const void *buffer, size_t bytes, int flags)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t count = filch_send(f, fd, (const char *)buffer + done, bytes - done, flags);
        if (count <= 0)
            return count < 0 ? count : -EIO;
        done += (size_t)count;
    }
    return (ssize_t)bytes;
}

ssize_t filch_read_all(filch_frame *f, int fd, void *buffer, size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t count = filch_read(f, fd, (char *)buffer + done, bytes - done);
        if (count < 0)
            return count;
        if (count == 0)
            break;
        done += (size_t)count;
    }
    return (ssize_t)done;
}

/* Copies through memory: twice for data in the kernel's cache, but no worker waits for the disk. */
ssize_t filch_sendfile(filch_frame *f, int to, int from, uint64_t offset, size_t bytes)
{
    size_t done = 0, room = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    char *buffer = room ? malloc(room) : NULL;
    ssize_t err = room && !buffer ? -ENOMEM : 0;
    bool is_socket = true; /* a send raises no SIGPIPE */

    while (!err && done < bytes) {
        size_t want = bytes - done < room ? bytes - done : room;
        ssize_t got = filch_pread(f, from, buffer, want, offset + done);
        ssize_t put = got > 0 && is_socket ? filch_send_all(f, to, buffer, (size_t)got, 0) : got;
        is_socket = is_socket && put != -ENOTSOCK;
        if (got > 0 && !is_socket)
            put = filch_write_all(f, to, buffer, (size_t)got);
        if (put <= 0) {
            err = put;
            break;
        }
        done += (size_t)put;
    }
    free(buffer);
    return err ? err : (ssize_t)done;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* A directory entry, as the kernel writes it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

int filch_dir_open(filch_frame *f, filch_dir *dir, int at, const char *path)
{
    int fd = filch_openat(f, at, path, O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0)
        return fd;
    *dir = (filch_dir){.fd = fd, .buffer = filch_calloc(1, DIR_BYTES)};
    if (dir->buffer)
        return 0;
    filch_close(f, fd);
    return -ENOMEM;
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int filch_dir_next(filch_frame *f, filch_dir *dir, filch_dirent *result)
{
    for (;;) {
        if (dir->at == dir->end) {
            filch_op op = filch_op_getdents(dir->fd, dir->buffer, DIR_BYTES);
            ssize_t bytes = filch_op_run(f, &op, FILCH_NO_DEADLINE);
            if (bytes <= 0)
                return (int)bytes;
            dir->at = 0;
            dir->end = (size_t)bytes;
        }
        const struct entry *entry = (const struct entry *)((char *)dir->buffer + dir->at);
        dir->at += entry->bytes;
        if (!is_dot(entry->name)) {
            *result = (filch_dirent){entry->name, entry->inode, entry->type};
            return 1;
        }
    }
}

void filch_dir_close(filch_frame *f, filch_dir *dir)
{
    filch_close(f, dir->fd);
    free(dir->buffer);
    dir->buffer = NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct query {
    const char *host, *service;
    const struct addrinfo *hints;
    struct addrinfo **list;
} query;

static int resolve(void *arg)
{
    const query *q = arg;
    return getaddrinfo(q->host, q->service, q->hints, q->list);
}

int filch_getaddrinfo(filch_frame *f, const char *host, const char *service,
                      const struct addrinfo *hints, struct addrinfo **list)
{
    query q = {host, service, hints, list};
    int err = filch_blocking(f, FILCH_LANE_NAMES, resolve, &q);
    return err == -ECANCELED ? EAI_CANCELED : err;
}
