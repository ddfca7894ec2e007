/* SPDX-License-Identifier: MIT */
/*
 * void filch_switch(void **save_sp, void *load_sp);
 *
 * Push the callee-saved registers and the floating-point modes, and save the stack pointer in
 * *save_sp. Then switch to the stack at load_sp and pop the same registers from there. At the
 * moment of the switch both stacks have the same layout. So one description of the frame holds on
 * both sides, and a debugger unwinds through it.
 */
#if defined(__x86_64__)
    .text
    .globl  filch_switch
    .hidden filch_switch
    .type   filch_switch, @function
    .balign 16
filch_switch:
    .cfi_startproc
    endbr64
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    pushq   %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    pushq   %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    pushq   %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    pushq   %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw  4(%rsp)

    movq    %rsp, (%rdi)
    movq    %rsi, %rsp

    ldmxcsr (%rsp)
    fldcw   4(%rsp)
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    popq    %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    popq    %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    popq    %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    popq    %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    /* A jump instead of a return: the return predictor holds the calls of the other stack. */
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    jmp     *%rcx
    .cfi_endproc
    .size   filch_switch, . - filch_switch

/* The bottom of a strand's stack: r12 is its main, r13 the argument. Unwinding ends here. */
    .globl  filch_switch_start
    .hidden filch_switch_start
    .type   filch_switch_start, @function
    .balign 16
filch_switch_start:
    .cfi_startproc
    .cfi_undefined rip
    endbr64
    movq    %r13, %rdi
    xorl    %ebp, %ebp
    callq   *%r12
    ud2
    .cfi_endproc
    .size   filch_switch_start, . - filch_switch_start

    .section .note.GNU-stack, "", @progbits
#endif
