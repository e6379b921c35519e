/* A lock that is one word: each thread adds to a counter under it, a few times. Whoever waits asks again and again, in the path that may
 * be before the one of the thread that has the lock. */
#include "heddle.h"

enum { TURNS = 4 };

HEDDLE_BUFFER(uint32_t, lock, 1);
HEDDLE_BUFFER(uint32_t, counter, 1);

int main(void) {
  volatile uint32_t *shared = counter;
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
    }
    *shared = *shared + heddle_thread() + 1;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
  }
  return 0;
}
