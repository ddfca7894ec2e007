/* SPDX-License-Identifier: MIT */
#include "strand/context.h"

#include <stdint.h>
#include <string.h>

#ifdef FILCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FILCH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* switch_x86_64.S, switch_aarch64.S */
void filch_switch(void **save_sp, void *load_sp);
void filch_switch_start(void);

void filch_context_init(filch_context *c, void *low, void *high, void (*main)(void *),
                        void *argument)
{
    memset(c, 0, sizeof *c);
#if defined(__x86_64__)
    /* The words that filch_switch pops, lowest address first. After that filch_switch_start finds
     * main and its argument in r12 and r13, on a stack aligned as for a call. */
    uint64_t *sp = (uint64_t *)high - 10;
    memset(sp, 0, 10 * sizeof *sp);
    uint32_t mxcsr;
    uint16_t x87;
    __asm__("stmxcsr %0" : "=m"(mxcsr));
    __asm__("fnstcw %0" : "=m"(x87));
    sp[0] = mxcsr | (uint64_t)x87 << 32;
    sp[3] = (uintptr_t)argument;           /* r13 */
    sp[4] = (uintptr_t)main;               /* r12 */
    sp[7] = (uintptr_t)filch_switch_start; /* return address */
#elif defined(__aarch64__)
    /* x19 ... x30, d8 ... d15, fpcr and padding, in the order in which filch_switch loads them. */
    uint64_t *sp = (uint64_t *)high - 22;
    memset(sp, 0, 22 * sizeof *sp);
    uint64_t fpcr;
    __asm__("mrs %0, fpcr" : "=r"(fpcr));
    sp[0] = (uintptr_t)main;                /* x19 */
    sp[1] = (uintptr_t)argument;            /* x20 */
    sp[11] = (uintptr_t)filch_switch_start; /* x30 */
    sp[20] = fpcr;
#else
#error "filch runs on x86-64 and aarch64"
#endif
    c->sp = sp;
    (void)low;
#ifdef FILCH_ASAN
    c->stack_low = low;
    c->stack_bytes = (size_t)((char *)high - (char *)low);
    /* In the child of a fork(), the parent's frames have left poisoned bytes here. */
    __asan_unpoison_memory_region(low, c->stack_bytes);
#endif
#ifdef FILCH_TSAN
    c->fiber = __tsan_create_fiber(0);
#endif
}

void filch_context_fini(filch_context *c)
{
    (void)c;
#ifdef FILCH_TSAN
    __tsan_destroy_fiber(c->fiber);
#endif
}

/* ThreadSanitizer keeps a call stack per context. The function that switches must not be on it: its
 * exit would be counted on the other context's call stack. */
__attribute__((noinline, no_sanitize("thread"))) void filch_context_switch(filch_context *from,
                                                                           filch_context *to)
{
#ifdef FILCH_ASAN
    to->came_from = from;
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack_low, to->stack_bytes);
#endif
#ifdef FILCH_TSAN
    from->fiber = __tsan_get_current_fiber();
    /* Flag 0: all that this thread did before the switch happens before all that it does on the
     * other stack. If a strand moves to another thread, only the edges of src/fork/README.md and
     * src/wait/README.md order it. ThreadSanitizer checks those. */
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
    filch_switch(&from->sp, to->sp);
    filch_context_arrive(from);
}

__attribute__((no_sanitize("thread"))) void filch_context_arrive(filch_context *self)
{
    (void)self;
#ifdef FILCH_ASAN
    /* When a thread enters a strand, this learns the bounds of the thread's own stack. */
    __sanitizer_finish_switch_fiber(self->fake_stack, &self->came_from->stack_low,
                                    &self->came_from->stack_bytes);
#endif
}
