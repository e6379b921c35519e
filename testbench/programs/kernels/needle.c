/* Needleman-Wunsch: the score of the best alignment of all beginnings of two sequences. A launch takes the tiles of a diagonal, a
 * block a tile, and in it diagonal after diagonal.
 *
 * Threads diverge as in the paper's NW: on a diagonal shorter than the tile, some have nothing to do; and on the maximum of three.
 * An if without an else in each place; the compiler makes some interleavable. */
#include "heddle.h"

enum { LENGTH = HEDDLE_SIZE(96, 48), TILE = 16, SIDE = LENGTH + 1, MATCH = 5, MISMATCH = -3, GAP = -4 };

/* Tiles (x, y) of a launch have x + y = diagonal; the first has x = left. */
HEDDLE_ARG(uint32_t, diagonal, 0);
HEDDLE_ARG(uint32_t, left, 0);
HEDDLE_BUFFER(uint8_t, across, LENGTH);
HEDDLE_BUFFER(uint8_t, down, LENGTH);
/* The host fills the first row and the first column. */
HEDDLE_BUFFER(int32_t, score, SIDE * SIDE);
HEDDLE_SHARED(int32_t, tile, (TILE + 1) * (TILE + 1));

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t x = left + heddle_block(), y = diagonal - x;
  int32_t *corner = score + y * TILE * SIDE + x * TILE;
  for (uint32_t i = thread; i <= TILE; i += threads) {
    tile[i] = corner[i];
    tile[i * (TILE + 1)] = corner[i * SIDE];
  }
  heddle_barrier();
  for (uint32_t sum = 0; sum < 2 * TILE - 1; sum++) {
    for (uint32_t row = thread; row < TILE; row += threads) {
      uint32_t column = sum - row;
      if (column < TILE) {
        int32_t *place = tile + (row + 1) * (TILE + 1) + column + 1;
        int32_t best = place[-TILE - 2] + (across[x * TILE + column] == down[y * TILE + row] ? MATCH : MISMATCH);
        int32_t from_left = place[-1] + GAP, from_above = place[-TILE - 1] + GAP;
        if (from_left > best) best = from_left;
        if (from_above > best) best = from_above;
        *place = best;
      }
      heddle_converge();
    }
    heddle_barrier();
  }
  for (uint32_t i = thread; i < TILE * TILE; i += threads) {
    uint32_t row = i / TILE + 1, column = i % TILE + 1;
    corner[row * SIDE + column] = tile[row * (TILE + 1) + column];
  }
  return 0;
}
