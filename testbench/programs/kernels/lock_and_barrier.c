/* Rounds in which the threads of a block add to a sum under a lock, and then all read it. */
#include "heddle.h"

enum { ROUNDS = 3, MOST_BLOCKS = HEDDLE_SIZE(4096, 256) };

HEDDLE_BUFFER(uint32_t, locks, MOST_BLOCKS);
HEDDLE_BUFFER(uint32_t, sums, MOST_BLOCKS);
/* Threads that read something else than they should have. */
HEDDLE_BUFFER(uint32_t, wrong, 1);

int main(void) {
  uint32_t block = heddle_block(), thread = heddle_block_thread(), threads = heddle_block_threads();
  volatile uint32_t *sum = sums + block;
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    while (__atomic_exchange_n(locks + block, 1, __ATOMIC_ACQUIRE)) {
    }
    *sum = *sum + thread + 1;
    __atomic_store_n(locks + block, 0, __ATOMIC_RELEASE);
    heddle_barrier();
    if (*sum != round * (threads * (threads + 1) / 2)) __atomic_fetch_add(wrong, 1, __ATOMIC_RELAXED);
    heddle_barrier();
  }
  return 0;
}
