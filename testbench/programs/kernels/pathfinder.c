/* The cheapest way down a grid, one column aside at most in each row: a launch takes STEPS rows, a block TILE columns of them. What
 * it needs of the columns around, it computes too.
 *
 * Threads diverge as in the paper's PathFind: at the sides of the grid, and outside the columns that are still known, which are two
 * less in each step. An if without an else in each place; the compiler makes some interleavable. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(33, 17), COLUMNS = 256, TILE = 24, STEPS = 4, WIDTH = TILE + 2 * STEPS };

/* Number of the launch. */
HEDDLE_ARG(uint32_t, launch, 0);
HEDDLE_BUFFER(uint32_t, cost, ROWS * COLUMNS);
/* Cost of the cheapest way to each place of every STEPS-th row; the host fills the first. */
HEDDLE_BUFFER(uint32_t, way, ((ROWS - 1) / STEPS + 1) * COLUMNS);
HEDDLE_SHARED(uint32_t, ways, 2 * WIDTH);

int main(void) {
  uint32_t number = launch, thread = heddle_block_thread(), threads = heddle_block_threads();
  int32_t left = (int32_t)(heddle_block() * TILE) - STEPS;
  uint32_t *above = ways, *here = ways + WIDTH;
  for (uint32_t i = thread; i < WIDTH; i += threads) {
    uint32_t column = left + i;
    if (column < COLUMNS) above[i] = way[number * COLUMNS + column];
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t step = 1; step <= STEPS; step++) {
    for (uint32_t i = thread; i < WIDTH; i += threads) {
      uint32_t column = left + i;
      if (i >= step && i < WIDTH - step && column < COLUMNS) {
        uint32_t least = above[i];
        if (column > 0 && above[i - 1] < least) least = above[i - 1];
        if (column < COLUMNS - 1 && above[i + 1] < least) least = above[i + 1];
        here[i] = least + cost[(number * STEPS + step) * COLUMNS + column];
      }
      heddle_converge();
    }
    heddle_barrier();
    uint32_t *swap = above;
    above = here;
    here = swap;
  }
  for (uint32_t i = STEPS + thread; i < STEPS + TILE; i += threads) {
    uint32_t column = left + i;
    if (column < COLUMNS) way[(number + 1) * COLUMNS + column] = above[i];
    heddle_converge();
  }
  return 0;
}
