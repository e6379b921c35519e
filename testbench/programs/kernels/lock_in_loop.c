/* A lock in a loop of unequal length, behind a condition: those who do not need it must not wait for ever, nor those who do. */
#include "heddle.h"

enum { MOST_THREADS = 4096 };

HEDDLE_BUFFER(uint32_t, lock, 1);
HEDDLE_BUFFER(uint32_t, counter, 1);
HEDDLE_BUFFER(uint32_t, alone, MOST_THREADS);

int main(void) {
  volatile uint32_t *shared = counter;
  uint32_t thread = heddle_thread(), own = 0;
  for (uint32_t k = 0; k <= thread % 7; k++) {
    if ((thread + k) & 1) {
      while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
      }
      *shared = *shared + k + 1;
      __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    } else {
      own += k + 1;
    }
    heddle_converge();
  }
  alone[thread] = own;
  return 0;
}
