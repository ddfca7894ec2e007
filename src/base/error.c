/* SPDX-License-Identifier: MIT */
#include <filch/error.h>

#include <errno.h>

const char *filch_strerror(int err)
{
    switch (err < 0 ? -err : err) {
    case 0:
        return "no error";
    case EINVAL:
        return "an argument or an option has no meaning (is the size in filch_options set?)";
    case E2BIG:
        return "the options are of a newer version and use what this library does not know";
    case ENOEXEC:
        return "the program was compiled against headers of another version";
    case ENOMEM:
        return "not enough memory";
    case EAGAIN:
        return "the system has no resources for this now";
    case EDEADLK:
        return "a task would wait for itself";
    case EOWNERDEAD:
        return "this process is the child of a fork() made inside a task of the pool";
    default:
        return "an error of the operating system";
    }
}
