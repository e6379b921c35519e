/* Running sums of many rows, a warp a row: in pieces of as many words as it has threads, each by shuffles. */
#include "heddle.h"

enum { ROWS = HEDDLE_SIZE(16, 2), LENGTH = 1024 };

HEDDLE_BUFFER(uint32_t, data, ROWS * LENGTH);
HEDDLE_BUFFER(uint32_t, sums, ROWS * LENGTH);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t row = heddle_block() * LENGTH, before = 0;
  uint64_t named = heddle_first_lanes(threads);
  for (uint32_t i = row + thread; i < row + LENGTH; i += threads) {
    uint32_t sum = data[i];
    HEDDLE_SYNC(0, named);
    for (uint32_t distance = 1; distance < threads; distance *= 2) {
      uint32_t left = heddle_shuffle_up(sum, distance);
      sum += left & -(uint32_t)(thread >= distance);
    }
    sum += before;
    before = heddle_shuffle(sum, threads - 1);
    sums[i] = sum;
  }
  return 0;
}
