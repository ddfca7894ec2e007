/* SPDX-License-Identifier: MIT */
/*
 * void filch_switch(void **save_sp, void *load_sp);
 *
 * Store x19-x30, d8-d15 and the floating-point mode, and save the stack pointer in *save_sp. Then
 * switch to the stack at load_sp and load the same registers from there. At the moment of the
 * switch both stacks have the same layout. So one description of the frame holds on both sides, and
 * a debugger unwinds through it.
 */
#if defined(__aarch64__)
    .text
    .globl  filch_switch
    .hidden filch_switch
    .type   filch_switch, %function
    .balign 16
filch_switch:
    .cfi_startproc
    hint    #34 /* bti c */
    sub     sp, sp, #176
    .cfi_adjust_cfa_offset 176
    stp     x19, x20, [sp, #0]
    .cfi_rel_offset x19, 0
    .cfi_rel_offset x20, 8
    stp     x21, x22, [sp, #16]
    .cfi_rel_offset x21, 16
    .cfi_rel_offset x22, 24
    stp     x23, x24, [sp, #32]
    .cfi_rel_offset x23, 32
    .cfi_rel_offset x24, 40
    stp     x25, x26, [sp, #48]
    .cfi_rel_offset x25, 48
    .cfi_rel_offset x26, 56
    stp     x27, x28, [sp, #64]
    .cfi_rel_offset x27, 64
    .cfi_rel_offset x28, 72
    stp     x29, x30, [sp, #80]
    .cfi_rel_offset x29, 80
    .cfi_rel_offset x30, 88
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    mrs     x9, fpcr
    str     x9, [sp, #160]

    mov     x9, sp
    str     x9, [x0]
    mov     sp, x1

    ldr     x9, [sp, #160]
    msr     fpcr, x9
    ldp     d14, d15, [sp, #144]
    ldp     d12, d13, [sp, #128]
    ldp     d10, d11, [sp, #112]
    ldp     d8, d9, [sp, #96]
    ldp     x29, x30, [sp, #80]
    ldp     x27, x28, [sp, #64]
    ldp     x25, x26, [sp, #48]
    ldp     x23, x24, [sp, #32]
    ldp     x21, x22, [sp, #16]
    ldp     x19, x20, [sp, #0]
    add     sp, sp, #176
    .cfi_adjust_cfa_offset -176
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore x29
    .cfi_restore x30
    ret
    .cfi_endproc
    .size   filch_switch, . - filch_switch

/* The bottom of a strand's stack: x19 is its main, x20 the argument. Unwinding ends here. */
    .globl  filch_switch_start
    .hidden filch_switch_start
    .type   filch_switch_start, %function
    .balign 16
filch_switch_start:
    .cfi_startproc
    .cfi_undefined x30
    hint    #36 /* bti j */
    mov     x0, x20
    mov     x29, #0
    blr     x19
    brk     #0
    .cfi_endproc
    .size   filch_switch_start, . - filch_switch_start

    .section .note.GNU-stack, "", %progbits
#endif
