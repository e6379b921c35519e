/* The cheapest way down a grid, one column aside at most in each row: a launch takes STEPS rows, a block TILE columns of them. What
 * it needs of the columns around, it computes too.
 *
 * Threads diverge as in the paper's PathFind: at the sides of the grid, and outside the columns that are still known, which are two
 * less in each step. An if without an else in each place: none is interleavable. */
#include "heddle.h"

enum { ROWS = 9, TILE = 24, STEPS = 4, WIDTH = TILE + 2 * STEPS, MOST_COLUMNS = TILE * HEDDLE_SIZE(128, 16) };

/* Number of the launch. */
HEDDLE_ARG(uint32_t, launch, 0);
/* TILE for each block; rows have room for the most. */
HEDDLE_ARG(uint32_t, columns, 0);
HEDDLE_BUFFER(uint32_t, cost, ROWS * MOST_COLUMNS);
/* Cost of the cheapest way to each place of every STEPS-th row; the host fills the first. */
HEDDLE_BUFFER(uint32_t, way, ((ROWS - 1) / STEPS + 1) * MOST_COLUMNS);
HEDDLE_SHARED(uint32_t, ways, 2 * WIDTH);

int main(void) {
  uint32_t number = launch, count = columns, thread = heddle_block_thread(), threads = heddle_block_threads();
  int32_t left = (int32_t)(heddle_block() * TILE) - STEPS;
  uint32_t *above = ways, *here = ways + WIDTH;
  for (uint32_t turn = 0, i = thread; turn < WIDTH; turn += threads, i += threads) {
    uint32_t column = left + i;
    if (i < WIDTH && column < count) above[i] = way[number * MOST_COLUMNS + column];
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t step = 1; step <= STEPS; step++) {
    for (uint32_t turn = 0, i = thread; turn < WIDTH; turn += threads, i += threads) {
      uint32_t column = left + i;
      if (i - step < WIDTH - 2 * step && column < count) {
        uint32_t least = above[i], west = above[i - (column > 0)], east = above[i + (column < count - 1)];
        if (west < least) least = west;
        if (east < least) least = east;
        here[i] = least + cost[(number * STEPS + step) * MOST_COLUMNS + column];
      }
      heddle_converge();
    }
    heddle_barrier();
    uint32_t *swap = above;
    above = here;
    here = swap;
  }
  for (uint32_t turn = 0, i = thread; turn < WIDTH; turn += threads, i += threads) {
    uint32_t column = left + i;
    if (i - STEPS < TILE && column < count) way[(number + 1) * MOST_COLUMNS + column] = above[i];
    heddle_converge();
  }
  return 0;
}
