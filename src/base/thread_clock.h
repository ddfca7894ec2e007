/* SPDX-License-Identifier: MIT */
/*
 * The CPU clock of a thread, as seen by another thread: how long has it run, and does it wait in
 * the kernel?
 */
#ifndef FILCH_BASE_THREAD_CLOCK_H
#define FILCH_BASE_THREAD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Names a thread of this process. After the thread has ended, it may name another one. */
typedef uint32_t filch_thread_clock;

#define FILCH_NO_THREAD ((filch_thread_clock)0)

/* Of the calling thread. Makes no system call. */
filch_thread_clock filch_thread_clock_self(void);

/* The CPU time that the thread has used; 0 if there is no such thread. */
uint64_t filch_thread_clock_ns(filch_thread_clock clock);

/* Does the thread wait for something in the kernel, rather than run or wait for a CPU? True if that
 * is unknown, because there is no /proc. */
bool filch_thread_clock_is_blocked(filch_thread_clock clock);

/* CPUs on which threads may run; the first 1024 of the machine. */
typedef struct filch_thread_cpus {
    uint64_t bits[16];
} filch_thread_cpus;

/* Add those of this thread, if they are known. */
void filch_thread_clock_add_cpus(filch_thread_clock clock, filch_thread_cpus *cpus);

unsigned filch_thread_cpus_count(const filch_thread_cpus *cpus);

#endif
