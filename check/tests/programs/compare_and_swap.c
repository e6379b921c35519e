/* A list that all threads push onto, the sum of its numbers, and counters of bytes and half words beside each other. */
#include <stdatomic.h>

#include "heddle.h"

HEDDLE_BUFFER(uint32_t, next, 4096);
HEDDLE_BUFFER(uint32_t, number, 4096);
/* One more than a node's index; 0 is the end. */
_Atomic uint32_t head;
_Atomic uint8_t bytes[4];
_Atomic uint16_t halves[2];
_Atomic uint8_t greatest;

int main(void) {
  uint32_t thread = heddle_thread();
  number[thread] = 3 * thread + 1;
  uint32_t first = head;
  do {
    next[thread] = first;
  } while (!atomic_compare_exchange_weak(&head, &first, thread + 1));
  atomic_fetch_add(&bytes[thread % 3], 1);
  atomic_fetch_xor(&bytes[3], thread & 1);
  atomic_fetch_sub(&halves[thread % 2], 2);
  uint8_t before = greatest, own = thread & 0x7f;
  while (before < own && !atomic_compare_exchange_strong(&greatest, &before, own)) {
  }
  return 0;
}
