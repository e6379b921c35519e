/* Bitonic sort of one list that does not fit in the scratchpad: the host launches phase after phase. */
#include "bitonic.h"

enum { CAPACITY = 2048 };

/* Sort lists of LENGTH pairs, every other one to descend; one stage in main memory; or the stages that stay in such a list. */
enum { SORT, STAGE, MERGE };

HEDDLE_ARG(uint32_t, phase, SORT);
/* Length of the runs being merged, and distance of the two pairs that a stage compares; both powers of two. */
HEDDLE_ARG(uint32_t, run, 0);
HEDDLE_ARG(uint32_t, distance, 0);
HEDDLE_BUFFER(uint32_t, keys, CAPACITY);
HEDDLE_BUFFER(uint32_t, values, CAPACITY);

int main(void) {
  uint32_t block = heddle_block(), first = block * LENGTH, merged = run;
  switch (phase) {
    case SORT:
      load(keys + first, values + first);
      sort((block & 1) == 0);
      store(keys + first, values + first);
      break;
    case STAGE: {
      uint32_t apart = distance, threads = heddle_block_threads();
      for (uint32_t i = first / 2 + heddle_block_thread(); i < (first + LENGTH) / 2; i += threads) {
        uint32_t low = lower(i, apart);
        order(keys, values, low, low + apart, (low & merged) == 0);
      }
      break;
    }
    case MERGE:
      load(keys + first, values + first);
      merge(LENGTH, LENGTH / 2, (first & merged) == 0);
      store(keys + first, values + first);
      break;
  }
  return 0;
}
