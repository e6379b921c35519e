/* Running sums of many rows, a block a row: in pieces of as many words as the block has threads, each by Hillis and Steele. */
#include "heddle.h"

enum { MOST_THREADS = 256, ROWS = HEDDLE_SIZE(16, 2), LENGTH = 1024 };

HEDDLE_BUFFER(uint32_t, data, ROWS * LENGTH);
HEDDLE_BUFFER(uint32_t, sums, ROWS * LENGTH);
HEDDLE_SHARED(uint32_t, first, MOST_THREADS);
HEDDLE_SHARED(uint32_t, second, MOST_THREADS);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t row = heddle_block() * LENGTH, before = 0;
  uint32_t *from = first, *to = second;
  for (uint32_t i = row + thread; i < row + LENGTH; i += threads) {
    uint32_t sum = data[i];
    from[thread] = sum;
    heddle_barrier();
    for (uint32_t distance = 1; distance < threads; distance *= 2) {
      if (thread >= distance) sum += from[thread - distance];
      to[thread] = sum;
      heddle_barrier();
      uint32_t *other = from;
      from = to;
      to = other;
    }
    sums[i] = before + sum;
    before += from[threads - 1];
    /* Slower threads may still read the last sum. */
    uint32_t *other = from;
    from = to;
    to = other;
  }
  return 0;
}
