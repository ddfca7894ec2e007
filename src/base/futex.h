/* SPDX-License-Identifier: MIT */
/*
 * Sleep on a word of memory, and wake threads of this process that sleep on it.
 *
 *     while (the word still says "wait")            make the word say "go on"
 *         filch_futex_wait(&word, "wait", NULL)     filch_futex_wake(&word, 1)
 *
 * The kernel compares the word and falls asleep in one step, so no wake is lost in between. It
 * orders nothing else: edges belong to the loads and stores of the word.
 *
 * The calls bypass libc because they must not touch errno. A compiler may compute the address of
 * errno once per function. A strand that another worker resumed would then write to the errno of
 * its former thread.
 */
#ifndef FILCH_BASE_FUTEX_H
#define FILCH_BASE_FUTEX_H

#include <filch/atomic.h>

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

static inline int filch_futex_call(filch_atomic_u32 *word, long op, uint32_t value,
                                   const struct timespec *timeout)
{
#ifdef FILCH_CHAOS
    filch_chaos_delay(); /* src/base/chaos.c */
#endif
#if defined(FILCH_MODEL)
    return mc_futex(&word->filch_value, op, value, timeout);
#elif defined(__x86_64__)
    long result = SYS_futex;
    register const struct timespec *r10 __asm__("r10") = timeout;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(word), "S"(op), "d"((unsigned long)value), "r"(r10)
                     : "rcx", "r11", "memory");
    return (int)result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = SYS_futex;
    register long x0 __asm__("x0") = (long)word;
    register long x1 __asm__("x1") = op;
    register unsigned long x2 __asm__("x2") = value;
    register const struct timespec *x3 __asm__("x3") = timeout;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return (int)x0;
#else
#error "filch runs on x86-64 and aarch64"
#endif
}

/*
 * Sleep while *word is `expected`, at most `timeout` (relative; NULL: for ever).
 *
 * Returns 0 when woken, perhaps spuriously; -EAGAIN if the word differed; -ETIMEDOUT; -EINTR. The
 * caller reads the word again in every case.
 */
static inline int filch_futex_wait(filch_atomic_u32 *word, uint32_t expected,
                                   const struct timespec *timeout)
{
    return filch_futex_call(word, FUTEX_WAIT_PRIVATE, expected, timeout);
}

/*
 * Wake up to `count` threads that sleep on `word`. Returns 0 or -errno.
 *
 * The call does not read the word, which may be gone by now: its value may have told the last user
 * to free it. At worst the call wakes an unrelated thread spuriously, or returns -EFAULT.
 */
static inline int filch_futex_wake(filch_atomic_u32 *word, int count)
{
    int woken = filch_futex_call(word, FUTEX_WAKE_PRIVATE, (uint32_t)count, NULL);
    return woken < 0 ? woken : 0;
}

#endif
