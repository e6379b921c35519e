/* Steps of the Collatz sequence down to 1: a data-dependent loop with a branch inside. */
#include "heddle.h"

enum { CAPACITY = 1024 };

HEDDLE_ARG(uint32_t, length, CAPACITY);
HEDDLE_BUFFER(uint32_t, start, CAPACITY);
HEDDLE_BUFFER(uint32_t, steps, CAPACITY);

int main(void) {
  uint32_t n = length, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < n; i += threads) {
    uint32_t value = start[i], count = 0;
    while (value != 1) {
      if (value & 1)
        value = 3 * value + 1;
      else
        value >>= 1;
      count++;
    }
    steps[i] = count;
  }
  return 0;
}
