/* SPDX-License-Identifier: MIT */
/*
 * What the library calls instead of read, send, accept4 and their like (calls.txt). They fail now
 * and then, transfer less than asked for, and are interrupted.
 */
#include "faults.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

ssize_t attack_read(int fd, void *buffer, size_t bytes);
ssize_t attack_write(int fd, const void *buffer, size_t bytes);
ssize_t attack_preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
ssize_t attack_pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags);
ssize_t attack_recv(int fd, void *buffer, size_t bytes, int flags);
ssize_t attack_send(int fd, const void *buffer, size_t bytes, int flags);
ssize_t attack_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t attack_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t attack_splice(int from, off_t *from_at, int to, off_t *to_at, size_t bytes, unsigned flags);
int attack_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int attack_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int attack_connect(int fd, const struct sockaddr *address, socklen_t length);
int attack_open(const char *path, int flags, ...);
int attack_openat(int at, const char *path, int flags, ...);
FILE *attack_fopen(const char *path, const char *mode);
int attack_fclose(FILE *file);
int attack_close(int fd);
int attack_fcntl(int fd, int command, ...);
int attack_pipe2(int ends[2], int flags);
int attack_statx(int at, const char *path, int flags, unsigned mask, struct statx *result);
int attack_fstatat(int at, const char *path, struct stat *result, int flags);
int attack_renameat2(int at, const char *path, int new_at, const char *new_path, unsigned flags);
int attack_linkat(int at, const char *path, int new_at, const char *new_path, int flags);
int attack_unlinkat(int at, const char *path, int flags);
int attack_mkdirat(int at, const char *path, mode_t mode);
int attack_fsync(int fd);
int attack_fdatasync(int fd);
int attack_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **list);

/* ---- transfers ------------------------------------------------------------------------------- */

/* Does the call fail before it has any effect? Then errno is set. */
static bool breaks(int fd, bool may_not_wait, int error)
{
    if (fault_is_own(fd))
        return false;
    if (fault_strikes_some(PART_interrupts)) {
        errno = may_not_wait && fault_below(2) ? EAGAIN : EINTR;
        return true;
    }
    if (!fault_strikes(PART_transfers))
        return false;
    errno = error;
    return true;
}

static size_t shorten(int fd, size_t bytes)
{
    return bytes < 2 || fault_is_own(fd) || !fault_strikes(PART_short) ? bytes
                                                                       : 1 + fault_below(bytes - 1);
}

static bool is_for_socket_without_wait(int flags)
{
    return flags & MSG_DONTWAIT;
}

/* EAGAIN promises that the socket will be writable later. A socket with many small packets is not
 * writable, though a send would succeed: then only a reader could keep the promise. */
static bool may_be_full(int fd, int flags)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    return is_for_socket_without_wait(flags) && fault_is_on(PART_interrupts) &&
           poll(&one, 1, 0) == 1;
}

ssize_t attack_read(int fd, void *buffer, size_t bytes)
{
    return breaks(fd, false, EIO) ? -1 : read(fd, buffer, shorten(fd, bytes));
}

ssize_t attack_write(int fd, const void *buffer, size_t bytes)
{
    return breaks(fd, false, fault_below(2) ? ENOSPC : EIO) ? -1
                                                            : write(fd, buffer, shorten(fd, bytes));
}

/* True: transfer only some bytes of the first part. */
static bool shorten_parts(const struct iovec *parts, int count, struct iovec *first)
{
    if (count < 1 || parts->iov_len < 2 || !fault_strikes(PART_short))
        return false;
    *first = *parts;
    first->iov_len = 1 + fault_below(parts->iov_len - 1);
    return true;
}

/* The kernel can be asked not to block on a file. On some other kinds it says that it cannot. */
static bool may_be_asked(int fd, int flags)
{
    struct stat info;
    return flags & RWF_NOWAIT && fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

ssize_t attack_preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    struct iovec first;

    if (breaks(fd, may_be_asked(fd, flags), EIO))
        return -1;
    bool is_short = shorten_parts(parts, count, &first);
    return preadv2(fd, is_short ? &first : parts, is_short ? 1 : count, offset, flags);
}

ssize_t attack_pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    struct iovec first;

    if (breaks(fd, may_be_asked(fd, flags), fault_below(2) ? ENOSPC : EIO))
        return -1;
    bool is_short = shorten_parts(parts, count, &first);
    return pwritev2(fd, is_short ? &first : parts, is_short ? 1 : count, offset, flags);
}

ssize_t attack_recv(int fd, void *buffer, size_t bytes, int flags)
{
    return breaks(fd, is_for_socket_without_wait(flags), ENOMEM)
               ? -1
               : recv(fd, buffer, shorten(fd, bytes), flags);
}

ssize_t attack_send(int fd, const void *buffer, size_t bytes, int flags)
{
    return breaks(fd, may_be_full(fd, flags), ENOBUFS)
               ? -1
               : send(fd, buffer, shorten(fd, bytes), flags);
}

ssize_t attack_recvmsg(int fd, struct msghdr *message, int flags)
{
    return breaks(fd, is_for_socket_without_wait(flags), ENOMEM) ? -1 : recvmsg(fd, message, flags);
}

ssize_t attack_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return breaks(fd, may_be_full(fd, flags), ENOBUFS) ? -1 : sendmsg(fd, message, flags);
}

ssize_t attack_splice(int from, off_t *from_at, int to, off_t *to_at, size_t bytes, unsigned flags)
{
    return breaks(from, false, ENOMEM)
               ? -1
               : splice(from, from_at, to, to_at, shorten(from, bytes), flags);
}

int attack_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    return breaks(-1, false, ENOMEM) ? -1 : poll(fds, count, timeout_ms);
}

int attack_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    if (fault_strikes(PART_descriptors))
        return FAULT_ERROR(EMFILE, ENFILE, ENOBUFS, ENOMEM);
    return breaks(-1, false, ECONNABORTED) ? -1 : accept4(fd, address, length, flags);
}

int attack_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    return fault_strikes(PART_transfers) ? FAULT_ERROR(EADDRNOTAVAIL, ENOBUFS)
                                         : connect(fd, address, length);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static bool lacks_descriptor(void)
{
    if (!fault_strikes(PART_descriptors))
        return false;
    FAULT_ERROR(EMFILE, ENFILE, ENOMEM);
    return true;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(args, int) : 0;
}

int attack_open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return lacks_descriptor() ? -1 : open(path, flags, mode);
}

int attack_openat(int at, const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    if (fault_strikes_some(PART_interrupts))
        return FAULT_ERROR(EINTR);
    return lacks_descriptor() ? -1 : openat(at, path, flags, mode);
}

FILE *attack_fopen(const char *path, const char *mode)
{
    return lacks_descriptor() ? NULL : fopen(path, mode);
}

int attack_fclose(FILE *file)
{
    return fclose(file);
}

/* The descriptor is closed also when the call was interrupted. */
int attack_close(int fd)
{
    fault_set_own(fd, false);
    int result = close(fd);
    return result == 0 && fault_strikes_some(PART_interrupts) ? FAULT_ERROR(EINTR) : result;
}

int attack_fcntl(int fd, int command, ...)
{
    va_list args;

    va_start(args, command);
    int value = va_arg(args, int);
    va_end(args);
    if (command == F_DUPFD_CLOEXEC && lacks_descriptor())
        return -1;
    return fcntl(fd, command, value);
}

int attack_pipe2(int ends[2], int flags)
{
    return lacks_descriptor() ? -1 : pipe2(ends, flags);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool lacks_path(int error)
{
    if (!fault_strikes(PART_paths))
        return false;
    FAULT_ERROR(ENOMEM, error);
    return true;
}

int attack_statx(int at, const char *path, int flags, unsigned mask, struct statx *result)
{
    return lacks_path(ENOMEM) ? -1 : statx(at, path, flags, mask, result);
}

int attack_fstatat(int at, const char *path, struct stat *result, int flags)
{
    return lacks_path(ENOMEM) ? -1 : fstatat(at, path, result, flags);
}

int attack_renameat2(int at, const char *path, int new_at, const char *new_path, unsigned flags)
{
    return lacks_path(ENOSPC) ? -1 : renameat2(at, path, new_at, new_path, flags);
}

int attack_linkat(int at, const char *path, int new_at, const char *new_path, int flags)
{
    return lacks_path(EMLINK) ? -1 : linkat(at, path, new_at, new_path, flags);
}

int attack_unlinkat(int at, const char *path, int flags)
{
    return lacks_path(EIO) ? -1 : unlinkat(at, path, flags);
}

int attack_mkdirat(int at, const char *path, mode_t mode)
{
    return lacks_path(ENOSPC) ? -1 : mkdirat(at, path, mode);
}

int attack_fsync(int fd)
{
    return lacks_path(EIO) ? -1 : fsync(fd);
}

int attack_fdatasync(int fd)
{
    return lacks_path(EIO) ? -1 : fdatasync(fd);
}

int attack_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **list)
{
    return fault_strikes(PART_paths) ? EAI_AGAIN : getaddrinfo(host, service, hints, list);
}
