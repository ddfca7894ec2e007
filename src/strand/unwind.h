/* SPDX-License-Identifier: MIT */
/*
 * If a function of the user ends without returning, the library stops the program, with a message
 * that names the function. Such functions are tasks, hooks, blocking calls and all others that the
 * library calls. They can end so in two ways:
 *
 *   - pthread_exit or pthread_cancel ends the thread. A strand would be lost with it.
 *   - A C++ exception leaves the function. It would skip joins, of frames whose stolen children
 *     still run, and functions of the library on the way.
 *
 * Both unwind the stack. For each frame, the unwinder calls the personality routine that the
 * frame's unwind table names. FILCH_STOP_UNWIND names ours there, for the function that contains
 * it. It adds no instruction. (A cleanup attribute would need -fexceptions, and libgcc_s in every
 * program.) FILCH_TASK in C++ stops both by itself, and calls the functions of
 * filch/impl/exceptions.h.
 */
#ifndef FILCH_STRAND_UNWIND_H
#define FILCH_STRAND_UNWIND_H

#include <stdint.h>
#include <unwind.h>

/* Print "filch: ", the text, and the name of the function at this address. Then abort. */
_Noreturn void filch_misuse(const char *text, uintptr_t fn);

_Unwind_Reason_Code
filch_unwind_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class thrower,
                         struct _Unwind_Exception *exception, struct _Unwind_Context *context)
    __attribute__((visibility("hidden")));

/* Written after the call of a function of the user. 0x1b: the address is relative, in 4 bytes. */
#if !defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define FILCH_STOP_UNWIND() ((void)0)
#elif defined(__x86_64__)
#define FILCH_STOP_UNWIND()                                                                        \
    __asm__ volatile(".cfi_personality 0x1b, %c0" : : "i"(filch_unwind_personality))
#elif defined(__aarch64__)
#define FILCH_STOP_UNWIND()                                                                        \
    __asm__ volatile(".cfi_personality 0x1b, %0" : : "S"(filch_unwind_personality))
#endif

/* The function that contains FILCH_STOP_UNWIND needs an unwind table of its own. */
#define FILCH_NOT_INLINED __attribute__((noinline))

#endif
