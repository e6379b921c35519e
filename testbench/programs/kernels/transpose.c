/* Transpose of a matrix, a block a square: through the scratchpad, so that loads and stores both coalesce. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(192, 96), COLUMNS = HEDDLE_SIZE(128, 32), SIDE = 32 };

HEDDLE_BUFFER(uint32_t, in, ROWS * COLUMNS);
HEDDLE_BUFFER(uint32_t, out, ROWS * COLUMNS);
/* The word too many a row puts the words of a column in different banks. */
HEDDLE_SHARED(uint32_t, square, SIDE * (SIDE + 1));

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t left = heddle_block() % (COLUMNS / SIDE) * SIDE, top = heddle_block() / (COLUMNS / SIDE) * SIDE;
  for (uint32_t i = thread; i < SIDE * SIDE; i += threads) {
    uint32_t x = i % SIDE, y = i / SIDE;
    square[y * (SIDE + 1) + x] = in[(top + y) * COLUMNS + left + x];
  }
  heddle_barrier();
  for (uint32_t i = thread; i < SIDE * SIDE; i += threads) {
    uint32_t x = i % SIDE, y = i / SIDE;
    out[(left + y) * ROWS + top + x] = square[x * (SIDE + 1) + y];
  }
  return 0;
}
