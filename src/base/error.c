/* SPDX-License-Identifier: MIT */
#include <filch/error.h>

#include <errno.h>
#include <string.h>

const char *filch_strerror(int err)
{
    switch (err < 0 ? -err : err) {
    case 0:
        return "no error";
    case EINVAL:
        return "an argument or an option has no meaning: a NULL, a number out of range, or options "
               "whose size is not set";
    case E2BIG:
        return "the options are of a newer version and use what this library does not know";
    case ENOEXEC:
        return "the program was compiled against headers of another version";
    case ENOMEM:
        return "not enough memory";
    case EAGAIN:
        return "not now: it would have to wait; or no thread can be started, because of a limit on "
               "threads or memory";
    case ECANCELED:
        return "cancelled";
    case ETIMEDOUT:
        return "time is up: the deadline has passed, or the network gave up";
    case EBUSY:
        return "in use: something is still open or in flight";
    case EPIPE:
        return "closed: the other end is gone, or nothing more will come";
    case EDEADLK:
        return "a task would wait for itself";
    case EOWNERDEAD:
        return "this process is the child of a fork(), and what it uses is its parent's";
    default:
        break;
    }
    const char *text = NULL;
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    text = strerrordesc_np(err < 0 ? -err : err);
#endif
    return text ? text : "an error of the operating system";
}
