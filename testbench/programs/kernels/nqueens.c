/* Ways to place N queens, by recursion: threads differ in pc and in call depth. */
#include "heddle.h"

enum { SIZE = 9, PREFIXES = SIZE * SIZE, ALL = (1 << SIZE) - 1 };

/* Solutions whose first two queens stand in columns p / SIZE and p % SIZE. */
HEDDLE_BUFFER(uint32_t, solutions, PREFIXES);

/* Squares under attack in this row: by columns, and by the diagonals that move left and right with each row. */
static __attribute__((noinline)) uint32_t place(uint32_t columns, uint32_t left, uint32_t right) {
  if (columns == ALL) return 1;
  uint32_t count = 0;
  for (uint32_t open = ALL & ~(columns | left | right); open; open &= open - 1) {
    uint32_t queen = open & -open;
    count += place(columns | queen, (left | queen) << 1, (right | queen) >> 1);
  }
  return count;
}

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t p = heddle_thread(); p < PREFIXES; p += threads) {
    uint32_t first = 1u << p / SIZE, second = 1u << p % SIZE;
    uint32_t left = first << 1, right = first >> 1, count = 0;
    if (!(second & (first | left | right)))
      count = place(first | second, (left | second) << 1, (right | second) >> 1);
    solutions[p] = count;
  }
  return 0;
}
