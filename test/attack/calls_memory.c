/* SPDX-License-Identifier: MIT */
/*
 * The library calls these functions instead of malloc, mmap, pthread_create and their like
 * (calls.txt). They do the same, but fail now and then. They count what the library has not given
 * back.
 */
#include "faults.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

/* Declared here: only the library, after its names were replaced, calls them. */
void *attack_malloc(size_t bytes);
void *attack_calloc(size_t count, size_t bytes);
void *attack_aligned_alloc(size_t alignment, size_t bytes);
void attack_free(void *block);
char *attack_strdup(const char *text);
int attack_asprintf(char **out, const char *format, ...);
ssize_t attack_getdelim(char **line, size_t *bytes, int end, FILE *file);
ssize_t attack___getdelim(char **line, size_t *bytes, int end, FILE *file);
cpu_set_t *attack___sched_cpualloc(size_t count);
void attack___sched_cpufree(cpu_set_t *set);
void *attack_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int attack_munmap(void *at, size_t bytes);
int attack_mprotect(void *at, size_t bytes, int protection);
int attack_madvise(void *at, size_t bytes, int advice);
int attack_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *),
                          void *arg);
int attack_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);
int attack_pthread_setname_np(pthread_t thread, const char *name);
int attack_pthread_getcpuclockid(pthread_t thread, clockid_t *clock);
int attack_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set);
int attack_sigaltstack(const stack_t *stack, stack_t *old);

static bool lacks_memory(void)
{
    if (!fault_strikes(PART_memory))
        return false;
    errno = ENOMEM;
    return true;
}

static void *count_block(void *block)
{
    fault_count_blocks(block != NULL);
    return block;
}

void *attack_malloc(size_t bytes)
{
    return lacks_memory() ? NULL : count_block(malloc(bytes));
}

void *attack_calloc(size_t count, size_t bytes)
{
    return lacks_memory() ? NULL : count_block(calloc(count, bytes));
}

void *attack_aligned_alloc(size_t alignment, size_t bytes)
{
    return lacks_memory() ? NULL : count_block(aligned_alloc(alignment, bytes));
}

void attack_free(void *block)
{
    fault_count_blocks(-(block != NULL));
    free(block);
}

char *attack_strdup(const char *text)
{
    return lacks_memory() ? NULL : count_block(strdup(text));
}

int attack_asprintf(char **out, const char *format, ...)
{
    va_list args;

    if (lacks_memory())
        return -1;
    va_start(args, format);
    int length = vasprintf(out, format, args);
    va_end(args);
    fault_count_blocks(length >= 0);
    return length;
}

ssize_t attack_getdelim(char **line, size_t *bytes, int end, FILE *file)
{
    bool had_none = !*line;

    if (lacks_memory())
        return -1;
    ssize_t length = getdelim(line, bytes, end, file);
    fault_count_blocks(had_none && *line);
    return length;
}

/* Its name where libc's header has it inline. */
ssize_t attack___getdelim(char **line, size_t *bytes, int end, FILE *file)
{
    return attack_getdelim(line, bytes, end, file);
}

cpu_set_t *attack___sched_cpualloc(size_t count)
{
    return lacks_memory() ? NULL : count_block(CPU_ALLOC(count));
}

void attack___sched_cpufree(cpu_set_t *set)
{
    fault_count_blocks(-(set != NULL));
    CPU_FREE(set);
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* The mapping that this thread made last, until it is advised on or unmapped; and how much of it is
 * left. */
static _Thread_local char *last_mapping;
static _Thread_local size_t last_bytes, last_left;

void *attack_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fault_strikes(PART_mapping)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *mapping = mmap(at, bytes, protection, flags, fd, offset);
    if (mapping != MAP_FAILED) {
        fault_count_mapped((long)bytes);
        last_mapping = mapping;
        last_bytes = last_left = bytes;
    }
    return mapping;
}

/* Unmapping a part of a mapping fails if the kernel has no room for one more mapping. Unmapping all
 * that is left of it does not. */
int attack_munmap(void *at, size_t bytes)
{
    bool is_last = last_mapping && (char *)at >= last_mapping &&
                   (char *)at + bytes <= last_mapping + last_bytes;
    bool is_part = is_last && bytes < last_left;

    if (is_part && fault_strikes(PART_mapping))
        return FAULT_ERROR(ENOMEM);
    int result = munmap(at, bytes);
    if (result == 0) {
        fault_count_mapped(-(long)bytes);
        last_left -= is_part ? bytes : 0;
        last_mapping = is_part ? last_mapping : NULL;
    }
    return result;
}

int attack_mprotect(void *at, size_t bytes, int protection)
{
    return fault_strikes(PART_mapping) ? FAULT_ERROR(ENOMEM) : mprotect(at, bytes, protection);
}

/* An old kernel, or a lack of memory for page tables. */
int attack_madvise(void *at, size_t bytes, int advice)
{
    last_mapping = NULL;
    return fault_strikes(PART_advice) ? FAULT_ERROR(EINVAL, ENOMEM, EAGAIN)
                                      : madvise(at, bytes, advice);
}

/* ---- threads --------------------------------------------------------------------------------- */

int attack_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *),
                          void *arg)
{
    return fault_strikes(PART_threads) ? EAGAIN : pthread_create(thread, attributes, fn, arg);
}

int attack_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
    return fault_strikes(PART_settings) ? EINVAL : pthread_setaffinity_np(thread, bytes, set);
}

int attack_pthread_setname_np(pthread_t thread, const char *name)
{
    return fault_strikes(PART_settings) ? ENOENT : pthread_setname_np(thread, name);
}

int attack_pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
    return fault_strikes(PART_settings) ? ENOENT : pthread_getcpuclockid(thread, clock);
}

/* The kernel may know more CPUs than a small set has room for. */
int attack_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    bool is_small = bytes < 2 * sizeof(cpu_set_t);
    return is_small && fault_strikes(PART_settings) ? FAULT_ERROR(EINVAL)
                                                    : sched_getaffinity(process, bytes, set);
}

int attack_sigaltstack(const stack_t *stack, stack_t *old)
{
    return fault_strikes(PART_settings) ? FAULT_ERROR(ENOMEM) : sigaltstack(stack, old);
}
