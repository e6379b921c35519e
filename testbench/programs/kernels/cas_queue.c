/* A queue without a lock (Michael and Scott): every thread puts its number in and takes one out, by compare-and-swap. A node is put in
 * once, so no value comes back that was seen before. */
#include "heddle.h"

enum { MOST_THREADS = HEDDLE_SIZE(4096, 256) };

/* The node before the first, and the last or one before it. Node 0 is there at first, node t + 1 is thread t's. */
HEDDLE_BUFFER(uint32_t, head, 1);
HEDDLE_BUFFER(uint32_t, tail, 1);
/* The node behind each; 0 if there is none. */
HEDDLE_BUFFER(uint32_t, behind, MOST_THREADS + 1);
HEDDLE_BUFFER(uint32_t, taken, MOST_THREADS);

static int swap(uint32_t *place, uint32_t expected, uint32_t wanted) {
  return __atomic_compare_exchange_n(place, &expected, wanted, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static uint32_t at(uint32_t *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }

int main(void) {
  uint32_t thread = heddle_thread(), node = thread + 1;
  if (thread >= MOST_THREADS) return 0;
  for (int done = 0; !done;) {
    uint32_t last = at(tail), next = at(behind + last);
    if (next == 0) {
      done = swap(behind + last, 0, node);
      if (done) swap(tail, last, node);
    } else {
      swap(tail, last, next);
    }
  }
  for (int done = 0; !done;) {
    uint32_t first = at(head), last = at(tail), next = at(behind + first);
    if (first == last) {
      if (next != 0) swap(tail, last, next);
    } else if (next != 0) {
      done = swap(head, first, next);
      if (done) taken[thread] = next;
    }
  }
  return 0;
}
