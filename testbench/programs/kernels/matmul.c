/* c = a * b, a block a tile of c: tiles of a and b come to the scratchpad, where each thread multiplies a row and a column. */
#include "heddle.h"

enum { ROWS = 32, INNER = 64, COLUMNS = 32, MOST_SIDE = 32, MOST_THREADS = 512 };

/* A tile of b is a square of 2^log2side words a side; one of a has as many columns and a word for each thread. */
HEDDLE_ARG(uint32_t, log2side, 0);
HEDDLE_BUFFER(int32_t, a, ROWS * INNER);
HEDDLE_BUFFER(int32_t, b, INNER * COLUMNS);
HEDDLE_BUFFER(int32_t, c, ROWS * COLUMNS);
HEDDLE_SHARED(int32_t, a_tile, MOST_THREADS);
HEDDLE_SHARED(int32_t, b_tile, MOST_SIDE * MOST_SIDE);

int main(void) {
  uint32_t log2n = log2side, n = 1u << log2n, thread = heddle_block_thread(), rows = heddle_block_threads() >> log2n;
  uint32_t x = thread & (n - 1), y = thread >> log2n;
  uint32_t column = heddle_block() << log2n, left = column % COLUMNS, top = column / COLUMNS * rows;
  uint32_t dot = 0;
  for (uint32_t inner = 0; inner < INNER; inner += n) {
    a_tile[thread] = a[(top + y) * INNER + inner + x];
    for (uint32_t row = y; row < n; row += rows) b_tile[(row << log2n) + x] = b[(inner + row) * COLUMNS + left + x];
    heddle_barrier();
    const int32_t *element = b_tile + x;
    for (uint32_t k = 0; k < n; k++, element += n) dot += (uint32_t)a_tile[(y << log2n) + k] * (uint32_t)*element;
    heddle_barrier();
  }
  c[(top + y) * COLUMNS + left + x] = (int32_t)dot;
  return 0;
}
