# What gcc calls for _Atomic bytes and half words, which RISC-V has no instructions for: each is a loop of lr.w and sc.w
# on the word that holds it. Link it with a program that needs it; the core needs `--reservations on`.
#
# __atomic_fetch_OP_N(pointer, operand, order), __atomic_exchange_N(pointer, value, order): the old value.
# __atomic_compare_exchange_N(pointer, expected, desired, order, order): whether it was as expected; else `expected`
# holds what was there. N is the number of bytes. All orders are the strongest.

        .option norelax

# a3: the word. a4: how far to the left its bits are. a5: these bits, of \bytes bytes.
        .macro within bytes
        andi    a3, a0, -4
        slli    a4, a0, 3
        andi    a4, a4, 24
        li      a5, (1 << (8 * \bytes)) - 1
        sll     a5, a5, a4
        .endm

# a0: the value that t0 holds at these bits.
        .macro take
        and     a0, t0, a5
        srl     a0, a0, a4
        .endm

        .macro modify name, bytes, operation:vararg
        .globl  __atomic_\name\()_\bytes
        .type   __atomic_\name\()_\bytes, @function
__atomic_\name\()_\bytes:
        within  \bytes
        sll     a1, a1, a4
1:      lr.w.aqrl t0, (a3)
        \operation
        xor     t1, t1, t0
        and     t1, t1, a5
        xor     t1, t1, t0
        sc.w.rl t2, t1, (a3)
        bnez    t2, 1b
        take
        ret
        .endm

        .macro compare bytes, store
        .globl  __atomic_compare_exchange_\bytes
        .type   __atomic_compare_exchange_\bytes, @function
__atomic_compare_exchange_\bytes:
        mv      a6, a1
        l\store\()u a1, 0(a6)
        within  \bytes
        sll     a1, a1, a4
        sll     a2, a2, a4
1:      lr.w.aqrl t0, (a3)
        xor     t1, t0, a1
        and     t1, t1, a5
        bnez    t1, 2f
        xor     t1, t0, a2
        and     t1, t1, a5
        xor     t1, t1, t0
        sc.w.rl t2, t1, (a3)
        bnez    t2, 1b
        li      a0, 1
        ret
2:      take
        s\store a0, 0(a6)
        li      a0, 0
        ret
        .endm

        .macro all bytes, store
        modify  fetch_add, \bytes, add t1, t0, a1
        modify  fetch_sub, \bytes, sub t1, t0, a1
        modify  fetch_and, \bytes, and t1, t0, a1
        modify  fetch_or,  \bytes, or  t1, t0, a1
        modify  fetch_xor, \bytes, xor t1, t0, a1
        modify  exchange,  \bytes, mv  t1, a1
        compare \bytes, \store
        .endm

        .text
        all     1, b
        all     2, h
