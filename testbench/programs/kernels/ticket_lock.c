/* A lock that is taken in the order of asking: a thread draws a ticket and waits until it is served. */
#include "heddle.h"

enum { TURNS = 4 };

HEDDLE_BUFFER(uint32_t, tickets, 1);
HEDDLE_BUFFER(uint32_t, served, 1);
HEDDLE_BUFFER(uint32_t, counter, 1);

int main(void) {
  volatile uint32_t *shared = counter;
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    uint32_t ticket = __atomic_fetch_add(tickets, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(served, __ATOMIC_ACQUIRE) != ticket) {
    }
    *shared = *shared + heddle_thread() + 1;
    __atomic_store_n(served, ticket + 1, __ATOMIC_RELEASE);
  }
  return 0;
}
