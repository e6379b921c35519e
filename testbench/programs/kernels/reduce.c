/* Sum of an array: each thread adds up its share, each block its threads' sums as a tree in the scratchpad. */
#include "heddle.h"

enum { MOST_THREADS = 256 };

HEDDLE_ARG(const uint32_t *, data, 0);
HEDDLE_ARG(uint32_t, length, 0);
HEDDLE_BUFFER(uint32_t, total, 1);
HEDDLE_SHARED(uint32_t, partial, MOST_THREADS);

int main(void) {
  const uint32_t *in = data;
  uint32_t n = length, thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t step = heddle_blocks() * threads, sum = 0;
  for (uint32_t i = heddle_block() * threads + thread; i < n; i += step) sum += in[i];
  partial[thread] = sum;
  for (uint32_t half = threads / 2; half > 0; half /= 2) {
    heddle_barrier();
    if (thread < half) partial[thread] += partial[thread + half];
  }
  if (thread == 0) __atomic_fetch_add(total, partial[0], __ATOMIC_RELAXED);
  return 0;
}
