/* Threads in pairs, of one warp where it has two lanes: one hands numbers to the other, one at a time, and waits until it was taken. */
#include "heddle.h"

enum { ITEMS = 8, MOST_PAIRS = 2048 };

HEDDLE_BUFFER(uint32_t, full, MOST_PAIRS);
HEDDLE_BUFFER(uint32_t, item, MOST_PAIRS);
/* The number that is handed over first, less the pair's. */
HEDDLE_BUFFER(uint32_t, first, 1);
HEDDLE_BUFFER(uint32_t, sums, MOST_PAIRS);

int main(void) {
  uint32_t thread = heddle_thread(), pair = thread / 2;
  if ((thread ^ 1) >= heddle_threads()) return 0;
  uint32_t sum = 0;
  for (uint32_t k = 0; k < ITEMS; k++) {
    while (__atomic_load_n(full + pair, __ATOMIC_ACQUIRE) != (thread & 1)) {
    }
    if (thread & 1) {
      sum += item[pair];
      __atomic_store_n(full + pair, 0, __ATOMIC_RELEASE);
    } else {
      item[pair] = first[0] + 7 * k + pair;
      __atomic_store_n(full + pair, 1, __ATOMIC_RELEASE);
    }
  }
  if (thread & 1) sums[pair] = sum;
  return 0;
}
