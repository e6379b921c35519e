/* c = a * b, one element of c at a time: neighbours read one word of a and neighbouring words of b. */
#include "heddle.h"

enum { ROWS = 32, INNER = 32, COLUMNS = 64 };

HEDDLE_BUFFER(int32_t, a, ROWS * INNER);
HEDDLE_BUFFER(int32_t, b, INNER * COLUMNS);
HEDDLE_BUFFER(int32_t, c, ROWS * COLUMNS);

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < ROWS * COLUMNS; i += threads) {
    const int32_t *row = a + i / COLUMNS * INNER;
    const int32_t *column = b + i % COLUMNS;
    uint32_t dot = 0;
    for (uint32_t k = 0; k < INNER; k++) dot += (uint32_t)row[k] * (uint32_t)column[k * COLUMNS];
    c[i] = (int32_t)dot;
  }
  return 0;
}
