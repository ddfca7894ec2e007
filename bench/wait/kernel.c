/* SPDX-License-Identifier: MIT */
/* A separate file: all compared modes must run the same code in their leaves. */
#include "wait.h"

#include <errno.h>
#include <time.h>

long serial_fib(long n)
{
    return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2);
}

long known_fib(long n)
{
    long current = 0, next = 1;
    for (long i = 0; i < n; i++) {
        long after = current + next;
        current = next;
        next = after;
    }
    return current;
}

void block_ns(uint64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};
    while (nanosleep(&left, &left) && errno == EINTR)
        continue;
}
