/* Greatest common divisor by subtraction: both sides of the branch in the loop are always taken by someone. */
#include "heddle.h"

enum { CAPACITY = HEDDLE_SIZE(16384, 2048) };

HEDDLE_ARG(uint32_t, length, CAPACITY);
HEDDLE_BUFFER(uint32_t, a, CAPACITY);
HEDDLE_BUFFER(uint32_t, b, CAPACITY);
HEDDLE_BUFFER(uint32_t, divisor, CAPACITY);

int main(void) {
  uint32_t n = length, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < n; i += threads) {
    uint32_t x = a[i], y = b[i];
    while (x != y) {
      if (x > y)
        x -= y;
      else
        y -= x;
      heddle_converge();
    }
    divisor[i] = x;
  }
  return 0;
}
