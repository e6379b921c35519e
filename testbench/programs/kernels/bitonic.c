/* One stage of a bitonic sort: the host launches one after another with `run` and `distance`. */
#include "heddle.h"

enum { CAPACITY = 1024 };

/* Length of the runs being merged, and distance of the two elements compared; both powers of two. */
HEDDLE_ARG(uint32_t, run, 2);
HEDDLE_ARG(uint32_t, distance, 1);
HEDDLE_BUFFER(uint32_t, data, CAPACITY);

int main(void) {
  uint32_t length = run, apart = distance, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < CAPACITY / 2; i += threads) {
    /* The i-th index whose bit `apart` is clear. */
    uint32_t low = 2 * i - (i & (apart - 1));
    uint32_t high = low + apart;
    uint32_t x = data[low], y = data[high];
    uint32_t ascending = (low & length) == 0;
    if ((x > y) == ascending) {
      data[low] = y;
      data[high] = x;
    }
  }
  return 0;
}
