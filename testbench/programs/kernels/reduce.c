/* Sum of an array as a tree: each launch folds the upper half of what is left onto the lower half. */
#include "heddle.h"

enum { CAPACITY = 16384 };

HEDDLE_ARG(uint32_t, half, CAPACITY / 2);
HEDDLE_BUFFER(uint32_t, data, CAPACITY);

int main(void) {
  uint32_t n = half, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < n; i += threads) data[i] += data[i + n];
  return 0;
}
