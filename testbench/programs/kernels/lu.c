/* LU decomposition in place by square tiles, without pivoting, of a matrix for each block. Numbers are modulo 2^32, where an odd pivot
 * has an inverse. A block has its matrix in the scratchpad, as the paper's LUD has its tiles.
 *
 * Threads diverge where the paper's LUD does: a unit of threads takes the two tiles beside the diagonal, one half of it rows of
 * the lower, the other columns of the right tile. Both sides of the branch are long loops: it is interleavable. */
#include "heddle.h"

enum { SIZE = 32, MOST_MATRICES = HEDDLE_SIZE(32, 4) };

/* Rows of a tile; SIZE is a multiple. */
HEDDLE_ARG(uint32_t, tile, 8);
/* Of each matrix, first A; then U, and below the diagonal L, whose diagonal is 1. */
HEDDLE_BUFFER(uint32_t, matrices, MOST_MATRICES * SIZE * SIZE);
HEDDLE_SHARED(uint32_t, a, SIZE * SIZE);

/* Where an element is: neither those of a row nor those of a column meet in a bank. */
static uint32_t *at(uint32_t row, uint32_t column) { return a + row * SIZE + (column ^ row); }

/* Each turn of Newton's method doubles the low bits that are right, which are three at first. */
static uint32_t inverse(uint32_t odd) {
  uint32_t x = odd;
  for (uint32_t turn = 0; turn < 4; turn++) x *= 2 - odd * x;
  return x;
}

/* Element (row, column), less its dot product of the columns and rows from `first` to `end`. */
static uint32_t rest(uint32_t row, uint32_t column, uint32_t first, uint32_t end) {
  uint32_t value = *at(row, column);
  for (uint32_t k = first; k < end; k++) value -= *at(row, k) * *at(k, column);
  return value;
}

int main(void) {
  uint32_t *matrix = matrices + heddle_block() * SIZE * SIZE;
  uint32_t side = tile, thread = heddle_block_thread(), threads = heddle_block_threads();
  for (uint32_t i = thread; i < SIZE * SIZE; i += threads) *at(i / SIZE, i % SIZE) = matrix[i];
  heddle_barrier();
  for (uint32_t first = 0; first < SIZE; first += side) {
    uint32_t end = first + side, left = SIZE - end;
    for (uint32_t k = first; k < end; k++) {
      for (uint32_t row = k + 1 + thread; row < end; row += threads) {
        uint32_t factor = *at(row, k) * inverse(*at(k, k));
        *at(row, k) = factor;
        for (uint32_t column = k + 1; column < end; column++) *at(row, column) -= factor * *at(k, column);
      }
      heddle_barrier();
    }
    for (uint32_t i = thread; i < 2 * left; i += threads) {
      uint32_t unit = i / (2 * side), place = i % (2 * side);
      uint32_t line = end + unit * side + (place < side ? place : place - side);
      if (place < side) {
        for (uint32_t row = first + 1; row < end; row++) *at(row, line) = rest(row, line, first, row);
      } else {
        for (uint32_t column = first; column < end; column++)
          *at(line, column) = rest(line, column, first, column) * inverse(*at(column, column));
      }
      heddle_converge();
    }
    heddle_barrier();
    for (uint32_t i = thread; i < left * left; i += threads) {
      uint32_t row = end + i / left, column = end + i % left;
      *at(row, column) = rest(row, column, first, end);
    }
    heddle_barrier();
  }
  for (uint32_t i = thread; i < SIZE * SIZE; i += threads) matrix[i] = *at(i / SIZE, i % SIZE);
  return 0;
}
