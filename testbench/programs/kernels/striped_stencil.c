/* Each point of a grid plus its four neighbours, a block some rows: it moves along them, and loads each point once. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(192, 24), COLUMNS = 128, MOST_THREADS = 128 };

/* A block takes 2^log2columns columns at a time, and has threads for so many of each of its rows. */
HEDDLE_ARG(uint32_t, log2columns, 0);
HEDDLE_BUFFER(uint32_t, in, ROWS * COLUMNS);
HEDDLE_BUFFER(uint32_t, out, ROWS * COLUMNS);
/* For each row, three times the columns: those done, those being done, those to come. */
HEDDLE_SHARED(uint32_t, window, 3 * MOST_THREADS);

int main(void) {
  uint32_t log2n = log2columns, n = 1u << log2n, thread = heddle_block_thread(), rows = heddle_block_threads() >> log2n;
  uint32_t x = thread & (n - 1), y = thread >> log2n, row = heddle_block() * rows + y;
  const uint32_t *source = in + row * COLUMNS + x;
  uint32_t *target = out + row * COLUMNS + x;
  uint32_t *done = window + y * 3 * n + x, *now = done + n, *next = now + n;
  *done = 0;
  *now = source[0];
  for (uint32_t i = 0; i < COLUMNS; i += n) {
    *next = i + n == COLUMNS ? 0 : source[i + n];
    heddle_barrier();
    uint32_t above = y > 0 ? now[-3 * (int32_t)n] : row > 0 ? source[(int32_t)i - COLUMNS] : 0;
    uint32_t below = y < rows - 1 ? now[3 * n] : row < ROWS - 1 ? source[i + COLUMNS] : 0;
    target[i] = above + below + now[-1] + now[0] + now[1];
    heddle_barrier();
    *done = *now;
    *now = *next;
  }
  return 0;
}
