/* A lock that is a queue of those who wait, each for a word of its own (Mellor-Crummey and Scott). Whoever leaves as the last makes the
 * queue empty by compare-and-swap. */
#include "heddle.h"

enum { TURNS = 4, MOST_THREADS = HEDDLE_SIZE(4096, 256) };

/* The last in the queue, and who comes behind a thread: one more than its number, or 0. */
HEDDLE_BUFFER(uint32_t, tail, 1);
HEDDLE_BUFFER(uint32_t, behind, MOST_THREADS);
HEDDLE_BUFFER(uint32_t, waits, MOST_THREADS);
HEDDLE_BUFFER(uint32_t, counter, 1);

int main(void) {
  volatile uint32_t *shared = counter;
  uint32_t thread = heddle_thread();
  if (thread >= MOST_THREADS) return 0;
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    __atomic_store_n(behind + thread, 0, __ATOMIC_RELAXED);
    __atomic_store_n(waits + thread, 1, __ATOMIC_RELAXED);
    uint32_t before = __atomic_exchange_n(tail, thread + 1, __ATOMIC_ACQ_REL);
    if (before != 0) {
      __atomic_store_n(behind + before - 1, thread + 1, __ATOMIC_RELEASE);
      while (__atomic_load_n(waits + thread, __ATOMIC_ACQUIRE)) {
      }
    }
    *shared = *shared + thread + 1;
    uint32_t next = __atomic_load_n(behind + thread, __ATOMIC_ACQUIRE), last = thread + 1;
    if (next == 0 && !__atomic_compare_exchange_n(tail, &last, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
      do {
        next = __atomic_load_n(behind + thread, __ATOMIC_ACQUIRE);
      } while (next == 0);
    }
    if (next != 0) __atomic_store_n(waits + next - 1, 0, __ATOMIC_RELEASE);
  }
  return 0;
}
