/* SPDX-License-Identifier: MIT */
/*
 * A place to switch to: a stack that is not running, its registers on top of it.
 *
 * The switch saves what the C calling convention lets a function keep: the callee-saved registers and the
 * floating-point modes. Sanitizers and valgrind are told.
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
    void *sp; /* where filch_switch left the registers */
#ifdef FILCH_ASAN
    const void *stack_low;
    size_t stack_bytes;
    void *fake_stack;
    struct filch_context *came_from; /* who switched here */
#endif
#ifdef FILCH_TSAN
    void *fiber;
#endif
} filch_context;

/* Prepare a context that calls main(argument) on the stack [low, high) when it is first entered. main
 * never returns. */
void filch_context_init(filch_context *c, void *low, void *high, void (*main)(void *),
                        void *argument);

/* Nothing to do but for ThreadSanitizer. */
void filch_context_fini(filch_context *c);
#ifdef FILCH_TSAN
#define FILCH_CONTEXT_HAS_FINI 1
#else
#define FILCH_CONTEXT_HAS_FINI 0
#endif

/* Leave `from`, which is the running one, and go on in `to`; returns when somebody switches back. */
void filch_context_switch(filch_context *from, filch_context *to);

/* The first thing to call in a context's main. */
void filch_context_arrive(filch_context *self);

#endif
