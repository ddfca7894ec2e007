/* SPDX-License-Identifier: MIT */
#include "base/thread_clock.h"

#include "base/file.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* The kernel's number of such a clock is ~tid << 3, and three bits for its kind. */
static pid_t tid_of(filch_thread_clock clock)
{
    return (pid_t) ~((int32_t)clock >> 3);
}

filch_thread_clock filch_thread_clock_self(void)
{
    clockid_t clock;

    return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? (filch_thread_clock)clock
                                                              : FILCH_NO_THREAD;
}

uint64_t filch_thread_clock_ns(filch_thread_clock clock)
{
    struct timespec time;

    if (clock == FILCH_NO_THREAD || clock_gettime((clockid_t)clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool filch_thread_clock_is_blocked(filch_thread_clock clock)
{
    char text[256];

    if (filch_file_read(text, sizeof text, "/proc/self/task/%d/stat", (int)tid_of(clock)) != 0)
        return true;
    /* "<tid> (<name>) <state> ...". The name may contain brackets, and is at most 15 bytes long. */
    const char *end = strrchr(text, ')');
    return !end || end[1] != ' ' || end[2] != 'R';
}

void filch_thread_clock_add_cpus(filch_thread_clock clock, filch_thread_cpus *cpus)
{
    /* On a machine with more CPUs than the set has room for, this fails. */
    cpu_set_t set;

    if (clock == FILCH_NO_THREAD || sched_getaffinity(tid_of(clock), sizeof set, &set) != 0)
        return;
    for (unsigned i = 0; i < sizeof cpus->bits * 8 && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus->bits[i / 64] |= UINT64_C(1) << i % 64;
}

unsigned filch_thread_cpus_count(const filch_thread_cpus *cpus)
{
    unsigned count = 0;

    for (size_t i = 0; i < sizeof cpus->bits / sizeof cpus->bits[0]; i++)
        count += (unsigned)__builtin_popcountll(cpus->bits[i]);
    return count;
}
