/* Bitonic sort of many lists that fit in the scratchpad, a block a list. */
#include "bitonic.h"

enum { LISTS = HEDDLE_SIZE(8, 4) };

HEDDLE_BUFFER(uint32_t, keys, LISTS * LENGTH);
HEDDLE_BUFFER(uint32_t, values, LISTS * LENGTH);

int main(void) {
  uint32_t first = heddle_block() * LENGTH;
  load(keys + first, values + first);
  sort(1);
  store(keys + first, values + first);
  return 0;
}
