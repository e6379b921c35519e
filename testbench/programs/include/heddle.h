/* What a kernel needs: who am I, and variables the host can reach by name. See docs/programs.md. */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stdint.h>

#include "heddle_csr.h"

/* Value of a CSR that does not change while the thread runs; the compiler may read it once and keep it. */
#define HEDDLE_CSR(address)                                        \
  ({                                                               \
    uint32_t heddle_csr_value;                                     \
    __asm__("csrr %0, %1" : "=r"(heddle_csr_value) : "i"(address)); \
    heddle_csr_value;                                              \
  })

/* An argument: a global the host sets before a launch. Read it once into a local. */
#define HEDDLE_ARG(type, name, value) __attribute__((used)) volatile type name = (value)

/* An array the host fills or reads. Aligned to 64 words, so that lane i of any warp meets word i of a block. */
#define HEDDLE_BUFFER(type, name, length) __attribute__((used, aligned(256))) type name[length]

/* Number of this thread, 0 .. heddle_threads() - 1. */
static inline uint32_t heddle_thread(void) { return HEDDLE_CSR(HEDDLE_CSR_MHARTID); }

/* Threads running this program. */
static inline uint32_t heddle_threads(void) { return HEDDLE_CSR(HEDDLE_CSR_THREADS); }

#endif
