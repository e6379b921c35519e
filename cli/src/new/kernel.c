#include "heddle.h"

enum { CAPACITY = 1024 };

/* heddle.toml has values for these. */
HEDDLE_ARG(uint32_t, length, CAPACITY);   /* how many there are */
HEDDLE_BUFFER(uint32_t, start, CAPACITY); /* where each sequence begins */
HEDDLE_BUFFER(uint32_t, steps, CAPACITY); /* the results */

/* Every thread runs main: how many steps does each Collatz sequence take to come down to 1? Sequences differ in length,
 * so the threads of a warp diverge. Threads take what is theirs, whatever the grid is. */
int main(void) {
  uint32_t n = length < CAPACITY ? length : CAPACITY, threads = heddle_blocks() * heddle_block_threads();
  for (uint32_t i = heddle_block() * heddle_block_threads() + heddle_block_thread(); i < n; i += threads) {
    uint32_t count = 0;
    for (uint32_t x = start[i]; x > 1; count++) x = x & 1 ? 3 * x + 1 : x / 2;
    steps[i] = count;
  }
  return 0;
}

/* What `steps` should be, by other means: one thread runs this in the instruction-set simulator, in a memory of its
 * own. All halvings of a number are taken at once. */
void expected(void) {
  uint32_t n = length < CAPACITY ? length : CAPACITY;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t count = 0, x = start[i];
    while (x > 1) {
      for (; x % 2 == 0; x /= 2) count++;
      if (x > 1) {
        x = 3 * x + 1;
        count++;
      }
    }
    steps[i] = count;
  }
}
