/* Temperatures of a chip that takes up power, in fixed point: a launch takes STEPS steps in time, a block a square of the chip. What
 * it needs of the places around, it computes too.
 *
 * Threads diverge as in the paper's HOTSPOT: at the edges of the chip, where a neighbour is the place itself, and outside the
 * places that are still known, which are fewer in each step. An if without an else in each place: none is
 * interleavable. */
#include "heddle.h"

enum { LAUNCHES = 2, SIDE = 40, TILE = 12, STEPS = 2, WIDTH = TILE + 2 * STEPS, TILES = (SIDE + TILE - 1) / TILE };

/* Number of the launch. */
HEDDLE_ARG(uint32_t, launch, 0);
/* In units of 2^-12 of a degree, as the temperatures are. */
HEDDLE_BUFFER(int32_t, power, SIDE * SIDE);
/* Temperatures before each launch, and after the last; the host fills the first. */
HEDDLE_BUFFER(int32_t, heat, (LAUNCHES + 1) * SIDE * SIDE);
HEDDLE_SHARED(int32_t, squares, 2 * WIDTH * WIDTH);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), block = heddle_block();
  uint32_t left = block % TILES * TILE - STEPS, top = block / TILES * TILE - STEPS;
  int32_t *old = squares, *new = squares + WIDTH * WIDTH;
  int32_t *before = heat + launch * SIDE * SIDE, *after = before + SIDE * SIDE;
  for (uint32_t turn = 0, i = thread; turn < WIDTH * WIDTH; turn += threads, i += threads) {
    uint32_t x = left + i % WIDTH, y = top + i / WIDTH;
    if (i < WIDTH * WIDTH && x < SIDE && y < SIDE) old[i] = before[y * SIDE + x];
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t step = 1; step <= STEPS; step++) {
    for (uint32_t turn = 0, i = thread; turn < WIDTH * WIDTH; turn += threads, i += threads) {
      uint32_t column = i % WIDTH, row = i / WIDTH, x = left + column, y = top + row, span = WIDTH - 2 * step;
      if (column - step < span && row - step < span && x < SIDE && y < SIDE) {
        uint32_t west = i - (x > 0), east = i + (x < SIDE - 1), north = i - (WIDTH & -(y > 0)), south = i + (WIDTH & -(y < SIDE - 1));
        int32_t flow = old[west] + old[east] + old[north] + old[south] - 4 * old[i];
        new[i] = old[i] + ((flow + power[y * SIDE + x]) >> 3);
      }
      heddle_converge();
    }
    heddle_barrier();
    int32_t *swap = old;
    old = new;
    new = swap;
  }
  for (uint32_t turn = 0, i = thread; turn < TILE * TILE; turn += threads, i += threads) {
    uint32_t column = STEPS + i % TILE, row = STEPS + i / TILE, x = left + column, y = top + row;
    if (i < TILE * TILE && x < SIDE && y < SIDE) after[y * SIDE + x] = old[row * WIDTH + column];
    heddle_converge();
  }
  return 0;
}
