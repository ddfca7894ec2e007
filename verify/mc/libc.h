/* SPDX-License-Identifier: MIT */
/*
 * The checker's replacements for libc: memory, threads, time.
 *
 * The compiler includes this file before every shipped source. The macros have arguments, so
 * members of the same name stay as they are.
 */
#ifndef MC_LIBC_H
#define MC_LIBC_H

#include <filch/atomic.h>
#ifndef MC_SITE
#error "verify/mc/include must come before include/ in the include path"
#endif

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

void *mc_malloc(size_t bytes);
void *mc_calloc(size_t count, size_t bytes);
void *mc_aligned_alloc(size_t alignment, size_t bytes);
char *mc_strdup(const char *text);
void mc_free(void *memory);
void *mc_mmap(size_t bytes);
int mc_munmap(void *memory, size_t bytes);
int mc_madvise(const void *memory, size_t bytes, int advice);
void *mc_memset(void *to, int value, size_t bytes);
void *mc_memcpy(void *to, const void *from, size_t bytes);
int mc_thread_create(pthread_t *thread, void *(*main)(void *), void *argument);
int mc_thread_join(pthread_t thread);
uint64_t mc_clock(void);
int mc_clock_gettime(struct timespec *now);
bool mc_may_fault(unsigned kind); /* a choice: something in the environment fails */
void mc_barrier_all(void);        /* membarrier(2) */
__attribute__((noreturn)) void mc_abort(const char *file, int line);

#define malloc(bytes) mc_malloc(bytes)
#define calloc(count, bytes) mc_calloc(count, bytes)
#define aligned_alloc(alignment, bytes) mc_aligned_alloc(alignment, bytes)
#define strdup(text) mc_strdup(text)
#define free(memory) mc_free(memory)
#define mmap(address, bytes, protection, flags, fd, offset) mc_mmap(bytes)
#define munmap(memory, bytes) mc_munmap(memory, bytes)
#define madvise(memory, bytes, advice) mc_madvise(memory, bytes, advice)
#define mprotect(memory, bytes, protection) mc_madvise(memory, bytes, 0)
#define memset(to, value, bytes) mc_memset(to, value, bytes)
#define memcpy(to, from, bytes) mc_memcpy(to, from, bytes)
#define memmove(to, from, bytes) mc_memcpy(to, from, bytes)

#define pthread_create(thread, attributes, main, argument) mc_thread_create(thread, main, argument)
#define pthread_join(thread, result) mc_thread_join(thread)
#define pthread_setname_np(thread, name) ((void)(name))
#define pthread_setaffinity_np(thread, bytes, set) ((void)(set))
#define pthread_sigmask(how, set, old) ((void)(set), (void)(old))

#define clock_gettime(clock, now) mc_clock_gettime(now)
#define __builtin_ia32_rdtsc() mc_clock()
#define abort() mc_abort(__FILE__, __LINE__)

#endif
