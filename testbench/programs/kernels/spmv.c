/* Sparse matrix times vector, a thread a row: loads of the vector go where the matrix says. */
#include "heddle.h"

/* Element n of row r is element n * rows + r of `indices` and `elements` (ELLPACK); a row that has less ends with zeros. */
HEDDLE_ARG(const uint32_t *, indices, 0);
HEDDLE_ARG(const uint32_t *, elements, 0);
HEDDLE_ARG(const uint32_t *, vector, 0);
HEDDLE_ARG(uint32_t *, product, 0);
HEDDLE_ARG(uint32_t, rows, 0);
HEDDLE_ARG(uint32_t, width, 0);

int main(void) {
  uint32_t n = rows, row = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (row >= n) return 0;
  const uint32_t *index = indices + row, *element = elements + row, *x = vector;
  uint32_t dot = 0;
  for (uint32_t left = width; left > 0; left--, index += n, element += n) dot += *element * x[*index];
  product[row] = dot;
  return 0;
}
