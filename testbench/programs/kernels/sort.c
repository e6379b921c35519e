/* Insertion sort of many short lists, a thread a list: a while loop that ends on data. */
#include "heddle.h"

enum { LISTS = HEDDLE_SIZE(256, 128), LENGTH = 32 };

/* Element k of list i is data[k * LISTS + i]: neighbouring threads, neighbouring words, until they disagree on k. */
HEDDLE_BUFFER(int32_t, data, LISTS * LENGTH);

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < LISTS; i += threads) {
    int32_t *list = data + i;
    for (uint32_t k = 1; k < LENGTH; k++) {
      int32_t value = list[k * LISTS];
      uint32_t hole = k;
      for (; hole > 0 && list[(hole - 1) * LISTS] > value; hole--) list[hole * LISTS] = list[(hole - 1) * LISTS];
      list[hole * LISTS] = value;
    }
  }
  return 0;
}
