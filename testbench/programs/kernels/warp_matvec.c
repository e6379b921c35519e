/* Matrix times vector: as matvec, but the threads of a warp add up their sums by shuffles. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(48, 4), COLUMNS = 1024 };

HEDDLE_BUFFER(uint32_t, matrix, ROWS * COLUMNS);
HEDDLE_BUFFER(uint32_t, vector, COLUMNS);
HEDDLE_BUFFER(uint32_t, product, ROWS);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), blocks = heddle_blocks();
  for (uint32_t y = heddle_block(); y < ROWS; y += blocks) {
    const uint32_t *row = matrix + y * COLUMNS;
    uint32_t sum = 0;
    for (uint32_t x = thread; x < COLUMNS; x += threads) sum += row[x] * vector[x];
    HEDDLE_SYNC(0, heddle_first_lanes(threads));
    for (uint32_t half = threads / 2; half > 0; half /= 2) sum += heddle_shuffle_xor(sum, half);
    if (thread == 0) product[y] = sum;
  }
  return 0;
}
