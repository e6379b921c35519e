/* A table of keys with their counts: whoever comes first puts a key in by compare-and-swap, into the next place that is free. */
#include "heddle.h"

enum { KEYS = 4, DISTINCT = 61, PLACES = 128 };

/* 0 is free. */
HEDDLE_BUFFER(uint32_t, keys, PLACES);
/* Added to what keys are made of. */
HEDDLE_BUFFER(uint32_t, salt, 1);
HEDDLE_BUFFER(uint32_t, counts, PLACES);

int main(void) {
  uint32_t thread = heddle_thread();
  for (uint32_t k = 0; k < KEYS; k++) {
    uint32_t key = (7 * thread + 13 * k + salt[0]) % DISTINCT + 1, place = key * 2654435761u >> 25, found;
    for (;; place = (place + 1) % PLACES) {
      found = __atomic_load_n(keys + place, __ATOMIC_ACQUIRE);
      if (found == 0 && __atomic_compare_exchange_n(keys + place, &found, key, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) found = key;
      if (found == key) break;
    }
    __atomic_fetch_add(counts + place, 1, __ATOMIC_RELAXED);
  }
  return 0;
}
