/* What a kernel needs: who am I, variables the host can reach by name, memory that a block shares. See docs/reference/programs.md. */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <stdarg.h>
#include <stdint.h>

#include "heddle_csr.h"

/* Value of a CSR that does not change while the thread runs; the compiler may read it once and keep it. */
#define HEDDLE_CSR(address)                                        \
  ({                                                               \
    uint32_t heddle_csr_value;                                     \
    __asm__("csrr %0, %1" : "=r"(heddle_csr_value) : "i"(address)); \
    heddle_csr_value;                                              \
  })

/* A size, and what it is in a build for cores of 32 KiB: programs/elf/small/. */
#ifdef HEDDLE_SMALL
#define HEDDLE_SIZE(usual, small) (small)
#else
#define HEDDLE_SIZE(usual, small) (usual)
#endif

/* An argument: a global the host sets before a launch. Read it once into a local. It lies in the program, where no thread can change
 * it: so `heddle reconverge` knows that it is the same for all. */
#define HEDDLE_ARG(type, name, value) __attribute__((used, section(".arguments"))) type const volatile name = (value)

/* An array the host fills or reads. Aligned to 64 words, so that lane i of any warp meets word i of a block. */
#define HEDDLE_BUFFER(type, name, length) __attribute__((used, aligned(256))) type name[length]

/* An array in the scratchpad: each block has its own, with nothing defined in it at first. The host cannot reach it. */
#define HEDDLE_SHARED(type, name, length) __attribute__((section(".scratchpad"))) type name[length]

/* Number of this thread in the core, 0 .. heddle_threads() - 1: of threads that run together, no two have the same. */
static inline uint32_t heddle_thread(void) { return HEDDLE_CSR(HEDDLE_CSR_MHARTID); }

/* Threads of the core, which a launch starts unless the host chooses blocks. */
static inline uint32_t heddle_threads(void) { return HEDDLE_CSR(HEDDLE_CSR_THREADS); }

/* Number of this thread's block, 0 .. heddle_blocks() - 1. */
static inline uint32_t heddle_block(void) { return HEDDLE_CSR(HEDDLE_CSR_BLOCK); }

/* Blocks of the launch. */
static inline uint32_t heddle_blocks(void) { return HEDDLE_CSR(HEDDLE_CSR_BLOCKS); }

/* Number of this thread in its block, 0 .. heddle_block_threads() - 1. */
static inline uint32_t heddle_block_thread(void) { return HEDDLE_CSR(HEDDLE_CSR_THREAD); }

/* Threads of a block. */
static inline uint32_t heddle_block_threads(void) { return HEDDLE_CSR(HEDDLE_CSR_BLOCKTHREADS); }

/* Lane of this thread in its warp, 0 .. heddle_lanes() - 1. */
static inline uint32_t heddle_lane(void) { return HEDDLE_CSR(HEDDLE_CSR_LANE); }

/* Lanes of a warp. */
static inline uint32_t heddle_lanes(void) { return HEDDLE_CSR(HEDDLE_CSR_LANES); }

/* Ends the text of an asm that the compiler must keep in one place. GCC takes each separator for an instruction, and does not copy a
 * hundred: not into both sides of a branch, so that threads would wait in two places, nor for the turns of a loop. Nothing is
 * assembled from them. */
#define HEDDLE_ONE_PLACE                              \
  ";;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;" \
  ";;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;"

/* Waits until all threads of the block that have not ended wait here. What they stored before, all see after. */
static inline __attribute__((always_inline)) void heddle_barrier(void) {
  __asm__ volatile(".word 0x0000000b" HEDDLE_ONE_PLACE ::: "memory");
}

/* Convergence barriers: docs/reference/convergence-barriers.md. b and c are barriers of the warp, constants from 0 to 15. All are hints: they
 * change no result. The threads that come here participate in b, */
#define HEDDLE_JOIN(b) __asm__ volatile(".insn i 0x0b, 1, x0, x%0, 0" HEDDLE_ONE_PLACE ::"i"(b))
/* wait at b until all wait that participate, or at least `threshold`, 1 to 64; 0 is no threshold, */
#define HEDDLE_WAIT(b, threshold) __asm__ volatile(".insn i 0x0b, 2, x0, x%0, %1" HEDDLE_ONE_PLACE ::"i"(b), "i"(threshold))
/* no longer participate in b. */
#define HEDDLE_CANCEL(b) __asm__ volatile(".insn i 0x0b, 3, x0, x%0, 0" HEDDLE_ONE_PLACE ::"i"(b))
/* How many threads of the warp participate in b; 0 on a core without convergence barriers. */
#define HEDDLE_COUNT(b)                                                              \
  ({                                                                                 \
    uint32_t heddle_count;                                                           \
    __asm__ volatile(".insn i 0x0b, 4, %0, x%1, 0" : "=r"(heddle_count) : "i"(b));     \
    heddle_count;                                                                    \
  })
/* Those participate in b that participate in c, and those that wait at b. */
#define HEDDLE_COPY(b, c) __asm__ volatile(".insn i 0x0b, 5, x0, x%0, %1" ::"i"(b), "i"(c))
/* The same, and none is left in c but those that wait there. */
#define HEDDLE_MOVE(b, c) __asm__ volatile(".insn i 0x0b, 6, x0, x%0, %1" ::"i"(b), "i"(c))

/* Warp primitives: docs/reference/warp-primitives.md; on a core with --warp-primitives on. They are of the threads of a warp that
 * execute them together, as one path: all that came through the HEDDLE_SYNC before, if no branch since could part them. */
#define HEDDLE_VOTE(function, value)                                                     \
  ({                                                                                     \
    uint32_t heddle_voted;                                                               \
    __asm__ volatile(".insn r 0x2b, 0, " #function ", %0, %1, x0" HEDDLE_ONE_PLACE       \
                     : "=r"(heddle_voted)                                                \
                     : "r"((uint32_t)((value) != 0))                                     \
                     : "memory");                                                        \
    heddle_voted;                                                                        \
  })
#define HEDDLE_SHUFFLE(function, value, lane)                                            \
  ({                                                                                     \
    uint32_t heddle_shuffled;                                                            \
    __asm__ volatile(".insn r 0x2b, 1, " #function ", %0, %1, %2" HEDDLE_ONE_PLACE       \
                     : "=r"(heddle_shuffled)                                             \
                     : "r"((uint32_t)(value)), "r"((uint32_t)(lane))                     \
                     : "memory");                                                        \
    heddle_shuffled;                                                                     \
  })
/* A bit for each of these threads whose value is not 0: of lanes 0 to 31, of lanes 32 to 63; 1 if that of one is not 0; of all. */
#define heddle_ballot(value) HEDDLE_VOTE(0, value)
#define heddle_ballot_upper(value) HEDDLE_VOTE(1, value)
#define heddle_any(value) HEDDLE_VOTE(2, value)
#define heddle_all(value) HEDDLE_VOTE(3, value)
/* The value of the thread on another lane: of this number; this lane XOR it; this lane less it; this lane plus it. The own one, if there
 * is no such lane or its thread is not among these. */
#define heddle_shuffle(value, lane) HEDDLE_SHUFFLE(0, value, lane)
#define heddle_shuffle_xor(value, lane) HEDDLE_SHUFFLE(1, value, lane)
#define heddle_shuffle_up(value, lane) HEDDLE_SHUFFLE(2, value, lane)
#define heddle_shuffle_down(value, lane) HEDDLE_SHUFFLE(3, value, lane)
/* Waits for the threads of the warp that `lanes` names, a bit each, 64 of them: until all that have not ended are here and name the same.
 * `b` is a convergence barrier, a constant from 0 to 15. A core or mechanism without it stops, unless all of them are here already. */
#define HEDDLE_SYNC(b, lanes)                                                            \
  do {                                                                                   \
    uint64_t heddle_named = (lanes);                                                     \
    __asm__ volatile(".insn r 0x2b, 7, %0, x0, %1, %2" HEDDLE_ONE_PLACE                  \
                     :                                                                   \
                     : "i"(b), "r"((uint32_t)heddle_named), "r"((uint32_t)(heddle_named >> 32)) \
                     : "memory");                                                        \
  } while (0)
/* For `lanes`: the first `count` lanes, or all that a warp can have. */
static inline uint64_t heddle_first_lanes(uint32_t count) {
  uint32_t lower = count < 32 ? (UINT32_C(1) << count) - 1 : ~UINT32_C(0);
  uint32_t upper = count < 32 ? 0 : count < 64 ? (UINT32_C(1) << (count - 32)) - 1 : ~UINT32_C(0);
  return (uint64_t)upper << 32 | lower;
}
/* The same primitives of the threads that `lanes` names, wherever they come from: nothing is between the two instructions. Others may be
 * there, too; of those a vote says nothing. */
#define HEDDLE_SYNCED(b, lanes, instruction, first, second)                              \
  ({                                                                                     \
    uint64_t heddle_named = (lanes);                                                     \
    uint32_t heddle_result;                                                              \
    __asm__ volatile(".insn r 0x2b, 7, %1, x0, %2, %3\n\t.insn r 0x2b, " instruction HEDDLE_ONE_PLACE \
                     : "=r"(heddle_result)                                               \
                     : "i"(b), "r"((uint32_t)heddle_named), "r"((uint32_t)(heddle_named >> 32)), "r"((uint32_t)(first)), \
                       "r"((uint32_t)(second))                                           \
                     : "memory");                                                        \
    heddle_result;                                                                       \
  })
#define heddle_ballot_sync(b, lanes, value) \
  ({ uint64_t heddle_of = (lanes); HEDDLE_SYNCED(b, heddle_of, "0, 0, %0, %4, x0", (value) != 0, 0) & (uint32_t)heddle_of; })
#define heddle_ballot_upper_sync(b, lanes, value) \
  ({ uint64_t heddle_of = (lanes); HEDDLE_SYNCED(b, heddle_of, "0, 1, %0, %4, x0", (value) != 0, 0) & (uint32_t)(heddle_of >> 32); })
#define heddle_shuffle_sync(b, lanes, value, lane) HEDDLE_SYNCED(b, lanes, "1, 0, %0, %4, %5", value, lane)
#define heddle_shuffle_xor_sync(b, lanes, value, lane) HEDDLE_SYNCED(b, lanes, "1, 1, %0, %4, %5", value, lane)
#define heddle_shuffle_up_sync(b, lanes, value, lane) HEDDLE_SYNCED(b, lanes, "1, 2, %0, %4, %5", value, lane)
#define heddle_shuffle_down_sync(b, lanes, value, lane) HEDDLE_SYNCED(b, lanes, "1, 3, %0, %4, %5", value, lane)

/* Where `heddle predict` should place convergence barriers: docs/reference/predict.md. A directive is a record for that pass, and no instruction.
 * From here on, threads are expected to come to HEDDLE_RECONVERGE of this name, and wait there for each other: for all, or for
 * `threshold`, 1 to 64, if it is given. */
#define HEDDLE_PREDICT(...) HEDDLE_RECORD(0, __VA_ARGS__, 0, 0)
#define HEDDLE_RECONVERGE(name) HEDDLE_RECORD(1, name, 0, 0)
/* From here on, threads are expected to call this function, and wait at its beginning. It must not be inlined. */
#define HEDDLE_PREDICT_FUNCTION(...) HEDDLE_RECORD(2, __VA_ARGS__, 0, 0)

/* Place in the code, kind, threshold and name, in a section that is not loaded. */
#define HEDDLE_RECORD(kind, name, threshold, ...)                      \
  __asm__ volatile("8989:\n"                                           \
                   ".pushsection .heddle.predict,\"\",@progbits\n"     \
                   ".word 8989b, %0, %1\n"                             \
                   ".asciz \"" #name "\"\n"                            \
                   ".balign 4\n"                                       \
                   ".popsection" ::"i"(kind), "i"(threshold))

/* printf: docs/reference/programs.md#printf. What threads print is in memory until the launch has ended; then the host formats it. Up to 16
 * arguments of 32 bits or less; texts must stay as they are until then. Words of memory for all that a launch prints, 3 for each call and 1
 * for each argument: what finds no room is counted and lost. */
#ifndef HEDDLE_PRINT_WORDS
#define HEDDLE_PRINT_WORDS 4096
#endif
#define printf(...) heddle_print(HEDDLE_ARGUMENTS(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0), __VA_ARGS__)
#define HEDDLE_ARGUMENTS(format, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count

/* Words that are taken, calls that found no room; then records. */
extern struct {
  uint32_t taken, dropped, words[HEDDLE_PRINT_WORDS];
} heddle_printed;

__attribute__((noinline, unused)) static void heddle_print(uint32_t count, const char *format, ...) {
  /* The buffer is in programs that print, once. */
  __asm__ volatile(".comm heddle_printed, %0, 256" ::"i"(sizeof heddle_printed));
  uint32_t place = __atomic_fetch_add(&heddle_printed.taken, count + 3, __ATOMIC_RELAXED);
  if (place > HEDDLE_PRINT_WORDS || HEDDLE_PRINT_WORDS - place < count + 3) {
    __atomic_fetch_add(&heddle_printed.dropped, 1, __ATOMIC_RELAXED);
    return;
  }
  uint32_t *record = heddle_printed.words + place;
  record[0] = (uint32_t)format;
  record[1] = heddle_block_thread() << 8 | count;
  record[2] = heddle_block();
  va_list arguments;
  va_start(arguments, format);
  for (uint32_t k = 0; k < count; k++) record[3 + k] = va_arg(arguments, uint32_t);
  va_end(arguments);
}

/* The end of an if or a loop in a loop, where its paths should meet. Without it, each may jump to the top of the loop around for
 * itself, and the first to be there goes on alone. */
static inline __attribute__((always_inline)) void heddle_converge(void) { __asm__ volatile(HEDDLE_ONE_PLACE); }

#endif
