/* SPDX-License-Identifier: MIT */
/*
 * A place to switch to: a stack that is not running, with its registers on top.
 *
 * The switch saves everything that the C calling convention preserves over a call: the callee-saved
 * registers and the floating-point modes. The functions here also tell sanitizers and valgrind
 * about the stacks.
 */
#ifndef FILCH_STRAND_CONTEXT_H
#define FILCH_STRAND_CONTEXT_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FILCH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FILCH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FILCH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FILCH_TSAN 1
#endif
#endif

typedef struct filch_context {
    void *sp; /* where filch_switch saved the registers */
#ifdef FILCH_ASAN
    const void *stack_low;
    size_t stack_bytes;
    void *fake_stack;
    struct filch_context *came_from; /* the context that switched here */
#endif
#ifdef FILCH_TSAN
    void *fiber;
#endif
} filch_context;

/* Prepare a context. When it is first entered, it calls main(argument) on the stack [low, high).
 * main never returns. */
void filch_context_init(filch_context *c, void *low, void *high, void (*main)(void *),
                        void *argument);

/* Does nothing, except for ThreadSanitizer. */
void filch_context_fini(filch_context *c);
#ifdef FILCH_TSAN
#define FILCH_CONTEXT_HAS_FINI 1
#else
#define FILCH_CONTEXT_HAS_FINI 0
#endif

/* Leave `from`, the running context, and continue in `to`. Returns when another context switches
 * back to `from`. */
void filch_context_switch(filch_context *from, filch_context *to);

/* A context's main calls this first. */
void filch_context_arrive(filch_context *self);

#endif
