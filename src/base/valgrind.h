/* SPDX-License-Identifier: MIT */
/*
 * Requests to valgrind: is the program running on it, where are its stacks, and which reads of free
 * memory are meant?
 *
 * A request is a sequence of instructions that changes nothing on a processor. It rotates a
 * register by 128 bits in all, and combines a register with itself. Valgrind recognises the
 * sequence and carries out the request. valgrind.h documents both, and their numbers are part of
 * valgrind's ABI. They are written out here, so that every build of the library works on valgrind,
 * also one made without valgrind.h.
 *
 * A request costs some ten instructions. Call this only where a pool or its I/O is created, before
 * rare system calls, and in checked programs.
 */
#ifndef FILCH_BASE_VALGRIND_H
#define FILCH_BASE_VALGRIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of valgrind.h; the last one is memcheck's. Other tools ignore it. */
#define FILCH_VALGRIND_RUNNING 0x1001
#define FILCH_VALGRIND_STACK_REGISTER 0x1501
#define FILCH_VALGRIND_CHANGE_SILENCE 0x1801
#define FILCH_VALGRIND_MAKE_DEFINED 0x4d430002

/* Returns valgrind's answer; 0 without valgrind. */
static inline uintptr_t filch_valgrind_request(uintptr_t request, uintptr_t a, uintptr_t b)
{
    volatile uintptr_t words[6] = {request, a, b};
    uintptr_t answer = 0;

#if defined(__x86_64__)
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(&words[0])
                     : "cc", "memory");
#elif defined(__aarch64__)
    register uintptr_t x3 __asm__("x3") = 0;
    register volatile uintptr_t *x4 __asm__("x4") = &words[0];
    __asm__ volatile("ror x12, x12, #3\n\t"
                     "ror x12, x12, #13\n\t"
                     "ror x12, x12, #51\n\t"
                     "ror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     : "+r"(x3)
                     : "r"(x4)
                     : "cc", "memory");
    answer = x3;
#endif
    return answer;
}

/* Valgrind knows no io_uring, and 3.19 prints a warning for each of these calls: process_madvise,
 * openat2, epoll_pwait2. The library does without them there. */
static inline bool filch_is_on_valgrind(void)
{
    return filch_valgrind_request(FILCH_VALGRIND_RUNNING, 0, 0) != 0;
}

/* The bytes [low, high) are a stack. */
static inline void filch_valgrind_add_stack(const void *low, const void *high)
{
    filch_valgrind_request(FILCH_VALGRIND_STACK_REGISTER, (uintptr_t)low, (uintptr_t)high);
}

/* From 1 to -1, valgrind reports no errors of this thread. */
static inline void filch_valgrind_change_silence(int by)
{
    filch_valgrind_request(FILCH_VALGRIND_CHANGE_SILENCE, (uintptr_t)(intptr_t)by, 0);
}

/* These bytes count as initialised. */
static inline void filch_valgrind_make_defined(const void *at, size_t bytes)
{
    filch_valgrind_request(FILCH_VALGRIND_MAKE_DEFINED, (uintptr_t)at, bytes);
}

#endif
