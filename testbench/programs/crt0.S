# Start of every thread. Only pc and the CSRs are defined here, and all threads pass at once, so nothing in memory is
# initialised: the loader has placed .data and cleared .bss.

#include "heddle_csr.h"

/* Where every thread has its own stack: STACK of hdl/simt/src/address.rs. */
#define STACK 0x80000000

    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    csrr t0, HEDDLE_CSR_LOG2STACK
    li sp, 1
    sll sp, sp, t0
    li t0, STACK
    add sp, sp, t0
    call main
    li a7, 93
    ecall
    .size _start, . - _start
