/* Needleman-Wunsch: the score of the best alignment of all beginnings of two sequences, for some pairs of them. A launch takes the
 * tiles of a diagonal, a block a tile of a pair, and in it diagonal after diagonal.
 *
 * Threads diverge as in the paper's NW: on a diagonal shorter than the tile, some have nothing to do; and on the maximum of three.
 * An if without an else in each place: none is interleavable. */
#include "heddle.h"

enum { TILES = 2, MOST_PAIRS = HEDDLE_SIZE(16, 2), MATCH = 5, MISMATCH = -3, GAP = -4 };
/* Of a tile: as many rows as a warp of 32 has lanes, and columns as fit in its share of the scratchpad. */
enum { ROWS = 32, COLUMNS = 30, PITCH = COLUMNS + 1, WIDTH = TILES * COLUMNS, HEIGHT = TILES * ROWS, SIDE = WIDTH + 1 };

/* Tiles (x, y) of a launch have x + y = diagonal; the first has x = left. */
HEDDLE_ARG(uint32_t, diagonal, 0);
HEDDLE_ARG(uint32_t, left, 0);
HEDDLE_ARG(uint32_t, pairs, 1);
/* Of each pair. */
HEDDLE_BUFFER(uint8_t, across, MOST_PAIRS * WIDTH);
HEDDLE_BUFFER(uint8_t, down, MOST_PAIRS * HEIGHT);
/* The host fills the first row and the first column. */
HEDDLE_BUFFER(int16_t, score, MOST_PAIRS * (HEIGHT + 1) * SIDE);
HEDDLE_SHARED(int16_t, tile, (ROWS + 1) * PITCH);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), pair = heddle_block() % pairs;
  uint32_t x = left + heddle_block() / pairs, y = diagonal - x;
  const uint8_t *of_column = across + pair * WIDTH + x * COLUMNS, *of_row = down + pair * HEIGHT + y * ROWS;
  int16_t *corner = score + (pair * (HEIGHT + 1) + y * ROWS) * SIDE + x * COLUMNS;
  for (uint32_t turn = 0, i = thread; turn <= ROWS; turn += threads, i += threads) {
    if (i <= COLUMNS) tile[i] = corner[i];
    heddle_converge();
    if (i <= ROWS) tile[i * PITCH] = corner[i * SIDE];
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t sum = 0; sum < ROWS + COLUMNS - 1; sum++) {
    for (uint32_t turn = 0, row = thread; turn < ROWS; turn += threads, row += threads) {
      uint32_t column = sum - row;
      if (row < ROWS && column < COLUMNS) {
        int16_t *place = tile + (row + 1) * PITCH + column + 1;
        int32_t best = place[-PITCH - 1] + MISMATCH + (MATCH - MISMATCH) * (of_column[column] == of_row[row]);
        int32_t from_left = place[-1] + GAP, from_above = place[-PITCH] + GAP;
        if (from_left > best) best = from_left;
        if (from_above > best) best = from_above;
        *place = best;
      }
      heddle_converge();
    }
    heddle_barrier();
  }
  for (uint32_t turn = 0, i = thread; turn < ROWS * COLUMNS; turn += threads, i += threads) {
    uint32_t row = i / COLUMNS + 1, column = i % COLUMNS + 1;
    if (i < ROWS * COLUMNS) corner[row * SIDE + column] = tile[row * PITCH + column];
    heddle_converge();
  }
  return 0;
}
