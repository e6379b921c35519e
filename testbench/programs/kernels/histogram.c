/* Counts of byte values: atomic additions in the scratchpad, to counters that many threads want at once. */
#include "heddle.h"

enum { BINS = 256, CAPACITY = HEDDLE_SIZE(65536, 16384) };

HEDDLE_ARG(uint32_t, length, CAPACITY);
HEDDLE_BUFFER(uint8_t, data, CAPACITY);
HEDDLE_BUFFER(uint32_t, counts, BINS);
HEDDLE_SHARED(uint32_t, bins, BINS);

int main(void) {
  uint32_t n = length, thread = heddle_block_thread(), threads = heddle_block_threads();
  for (uint32_t i = thread; i < BINS; i += threads) bins[i] = 0;
  heddle_barrier();
  for (uint32_t i = thread; i < n; i += threads) __atomic_fetch_add(&bins[data[i]], 1, __ATOMIC_RELAXED);
  heddle_barrier();
  for (uint32_t i = thread; i < BINS; i += threads) counts[i] = bins[i];
  return 0;
}
