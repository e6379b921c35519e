/* Bitonic sort of one list of pairs in the scratchpad, by the threads of a block. */
#ifndef BITONIC_H
#define BITONIC_H

#include "heddle.h"

enum { LENGTH = 512 };

HEDDLE_SHARED(uint32_t, list_keys, LENGTH);
HEDDLE_SHARED(uint32_t, list_values, LENGTH);

/* Puts two pairs into order. */
static inline void order(uint32_t *keys, uint32_t *values, uint32_t low, uint32_t high, uint32_t ascending) {
  uint32_t x = keys[low], y = keys[high];
  if ((x > y) == ascending) {
    uint32_t value = values[low];
    keys[low] = y;
    keys[high] = x;
    values[low] = values[high];
    values[high] = value;
  }
}

/* The i-th index whose bit `distance` is clear. */
static inline uint32_t lower(uint32_t i, uint32_t distance) { return 2 * i - (i & (distance - 1)); }

/* Copies a list in; `keys` and `values` are its first pair. */
static inline void load(const uint32_t *keys, const uint32_t *values) {
  for (uint32_t i = heddle_block_thread(); i < LENGTH; i += heddle_block_threads()) {
    list_keys[i] = keys[i];
    list_values[i] = values[i];
  }
}

/* And out again. */
static inline void store(uint32_t *keys, uint32_t *values) {
  heddle_barrier();
  for (uint32_t i = heddle_block_thread(); i < LENGTH; i += heddle_block_threads()) {
    keys[i] = list_keys[i];
    values[i] = list_values[i];
  }
}

/* Stages of `distance` and less that merge runs of `run` pairs; every other run descends, unless `run` is the list. */
static inline void merge(uint32_t run, uint32_t distance, uint32_t ascending) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  for (; distance > 0; distance /= 2) {
    heddle_barrier();
    for (uint32_t i = thread; i < LENGTH / 2; i += threads) {
      uint32_t low = lower(i, distance);
      order(list_keys, list_values, low, low + distance, ascending ^ ((low & run) != 0));
    }
  }
}

/* All stages. */
static inline void sort(uint32_t ascending) {
  for (uint32_t run = 2; run < LENGTH; run *= 2) merge(run, run / 2, 1);
  merge(LENGTH, LENGTH / 2, ascending);
}

#endif
