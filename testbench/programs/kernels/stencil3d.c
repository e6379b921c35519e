/* Seven-point stencil of a box: a block takes a tile of every plane, in the scratchpad, and goes from plane to plane.
 *
 * Threads diverge as in the paper's Stencil: a neighbour in the tile comes from the scratchpad, one beyond the tile's edge from
 * main memory, or counts nothing beyond the box. Both sides of the branch are loads: it is interleavable. */
#include "heddle.h"

enum { SIDE = HEDDLE_SIZE(64, 32), MOST_ROWS = HEDDLE_SIZE(64, 16), PLANE = SIDE * MOST_ROWS, DEPTH = 4, WIDTH = 32, HEIGHT = 4, CENTRE = 6 };

HEDDLE_BUFFER(uint32_t, in, DEPTH * PLANE);
HEDDLE_BUFFER(uint32_t, out, DEPTH * PLANE);
HEDDLE_SHARED(uint32_t, tile, WIDTH * HEIGHT);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), block = heddle_block();
  uint32_t left = block % (SIDE / WIDTH) * WIDTH, top = block / (SIDE / WIDTH) * HEIGHT;
  uint32_t rows = heddle_blocks() / (SIDE / WIDTH) * HEIGHT;
  for (uint32_t z = 0; z < DEPTH; z++) {
    const uint32_t *plane = in + z * PLANE;
    for (uint32_t i = thread; i < WIDTH * HEIGHT; i += threads)
      tile[i] = plane[(top + i / WIDTH) * SIDE + left + i % WIDTH];
    heddle_barrier();
    for (uint32_t i = thread; i < WIDTH * HEIGHT; i += threads) {
      uint32_t column = i % WIDTH, row = i / WIDTH, x = left + column, y = top + row, place = y * SIDE + x;
      uint32_t sum = 0;
      if (column > 0) sum += tile[i - 1];
      else if (x > 0) sum += plane[place - 1];
      heddle_converge();
      if (column < WIDTH - 1) sum += tile[i + 1];
      else if (x < SIDE - 1) sum += plane[place + 1];
      heddle_converge();
      if (row > 0) sum += tile[i - WIDTH];
      else if (y > 0) sum += plane[place - SIDE];
      heddle_converge();
      if (row < HEIGHT - 1) sum += tile[i + WIDTH];
      else if (y < rows - 1) sum += plane[place + SIDE];
      heddle_converge();
      if (z > 0) sum += plane[place - PLANE];
      if (z < DEPTH - 1) sum += plane[place + PLANE];
      out[z * PLANE + place] = sum - CENTRE * tile[i];
    }
    heddle_barrier();
  }
  return 0;
}
