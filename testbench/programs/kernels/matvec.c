/* Matrix times vector: a block is a warp, takes row after row, and adds up its threads' sums as a tree in the scratchpad. */
#include "heddle.h"

enum { MOST_THREADS = 64, ROWS = HEDDLE_SIZE(48, 4), COLUMNS = 1024 };

HEDDLE_BUFFER(uint32_t, matrix, ROWS * COLUMNS);
HEDDLE_BUFFER(uint32_t, vector, COLUMNS);
HEDDLE_BUFFER(uint32_t, product, ROWS);
HEDDLE_SHARED(uint32_t, partial, MOST_THREADS);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), blocks = heddle_blocks();
  for (uint32_t y = heddle_block(); y < ROWS; y += blocks) {
    const uint32_t *row = matrix + y * COLUMNS;
    uint32_t sum = 0;
    for (uint32_t x = thread; x < COLUMNS; x += threads) sum += row[x] * vector[x];
    partial[thread] = sum;
    heddle_barrier();
    for (uint32_t half = threads / 2; half > 0; half /= 2) {
      if (thread < half) partial[thread] += partial[thread + half];
      heddle_barrier();
    }
    if (thread == 0) product[y] = partial[0];
  }
  return 0;
}
