/* LU decomposition in place by square tiles, without pivoting. Numbers are modulo 2^32, where an odd pivot has an inverse.
 *
 * Threads diverge where the paper's LUD does: a unit of threads takes the two tiles beside the diagonal, one half of it rows of
 * the lower, the other columns of the right tile. Both sides of the branch are long loops: it is interleavable. */
#include "heddle.h"

enum { SIZE = 48 };

/* Rows of a tile; SIZE is a multiple. */
HEDDLE_ARG(uint32_t, tile, 8);
/* First A; then U, and below the diagonal L, whose diagonal is 1. */
HEDDLE_BUFFER(uint32_t, a, SIZE * SIZE);

/* Each turn of Newton's method doubles the low bits that are right, which are three at first. */
static uint32_t inverse(uint32_t odd) {
  uint32_t x = odd;
  for (uint32_t turn = 0; turn < 4; turn++) x *= 2 - odd * x;
  return x;
}

/* Element (row, column), less its dot product of the columns and rows from `first` to `end`. */
static uint32_t rest(uint32_t row, uint32_t column, uint32_t first, uint32_t end) {
  uint32_t value = a[row * SIZE + column];
  for (uint32_t k = first; k < end; k++) value -= a[row * SIZE + k] * a[k * SIZE + column];
  return value;
}

int main(void) {
  uint32_t side = tile, thread = heddle_block_thread(), threads = heddle_block_threads();
  for (uint32_t first = 0; first < SIZE; first += side) {
    uint32_t end = first + side, left = SIZE - end;
    for (uint32_t k = first; k < end; k++) {
      for (uint32_t row = k + 1 + thread; row < end; row += threads) {
        uint32_t factor = a[row * SIZE + k] * inverse(a[k * SIZE + k]);
        a[row * SIZE + k] = factor;
        for (uint32_t column = k + 1; column < end; column++) a[row * SIZE + column] -= factor * a[k * SIZE + column];
      }
      heddle_barrier();
    }
    for (uint32_t i = thread; i < 2 * left; i += threads) {
      uint32_t unit = i / (2 * side), place = i % (2 * side);
      uint32_t line = end + unit * side + (place < side ? place : place - side);
      if (place < side) {
        for (uint32_t row = first + 1; row < end; row++) a[row * SIZE + line] = rest(row, line, first, row);
      } else {
        for (uint32_t column = first; column < end; column++)
          a[line * SIZE + column] = rest(line, column, first, column) * inverse(a[column * SIZE + column]);
      }
      heddle_converge();
    }
    heddle_barrier();
    for (uint32_t i = thread; i < left * left; i += threads) {
      uint32_t row = end + i / left, column = end + i % left;
      a[row * SIZE + column] = rest(row, column, first, end);
    }
    heddle_barrier();
  }
  return 0;
}
