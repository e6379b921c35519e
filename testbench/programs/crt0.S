# Start of every thread. Only pc and the CSRs are defined here, and all threads pass at once, so nothing in memory is
# initialised: the loader has placed .data and cleared .bss.

#include "heddle_csr.h"

    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    csrr t0, HEDDLE_CSR_MHARTID
    csrr t1, HEDDLE_CSR_LOG2STACK
    sll t0, t0, t1
    csrr sp, HEDDLE_CSR_MEMORY
    sub sp, sp, t0
    call main
    li a7, 93
    ecall
    .size _start, . - _start
