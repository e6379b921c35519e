/* Each point of a grid plus its four neighbours, a block a rectangle: threads at an edge go to main memory, the others not. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(192, 24), COLUMNS = 128, WIDTH = 32, HEIGHT = 8 };

HEDDLE_BUFFER(uint32_t, in, ROWS * COLUMNS);
HEDDLE_BUFFER(uint32_t, out, ROWS * COLUMNS);
HEDDLE_SHARED(uint32_t, tile, WIDTH * HEIGHT);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t left = heddle_block() % (COLUMNS / WIDTH) * WIDTH, top = heddle_block() / (COLUMNS / WIDTH) * HEIGHT;
  for (uint32_t i = thread; i < WIDTH * HEIGHT; i += threads) tile[i] = in[(top + i / WIDTH) * COLUMNS + left + i % WIDTH];
  heddle_barrier();
  for (uint32_t i = thread; i < WIDTH * HEIGHT; i += threads) {
    uint32_t x = i % WIDTH, y = i / WIDTH, place = (top + y) * COLUMNS + left + x;
    uint32_t sum = tile[i];
    if (left + x < COLUMNS - 1) sum += x == WIDTH - 1 ? in[place + 1] : tile[i + 1];
    if (left + x > 0) sum += x == 0 ? in[place - 1] : tile[i - 1];
    if (top + y < ROWS - 1) sum += y == HEIGHT - 1 ? in[place + COLUMNS] : tile[i + WIDTH];
    if (top + y > 0) sum += y == 0 ? in[place - COLUMNS] : tile[i - WIDTH];
    out[place] = sum;
  }
  return 0;
}
