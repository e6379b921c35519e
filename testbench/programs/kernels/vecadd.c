/* Vector addition: the coherent kernel, bound by memory accesses. */
#include "heddle.h"

enum { CAPACITY = HEDDLE_SIZE(16384, 2048) };

HEDDLE_ARG(uint32_t, length, CAPACITY);
HEDDLE_BUFFER(uint32_t, a, CAPACITY);
HEDDLE_BUFFER(uint32_t, b, CAPACITY);
HEDDLE_BUFFER(uint32_t, sum, CAPACITY);

int main(void) {
  uint32_t n = length, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < n; i += threads) sum[i] = a[i] + b[i];
  return 0;
}
