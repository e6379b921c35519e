/* Quasi-random points of Sobol's sequence in Gray code's order (Antonov and Saleev), a thread a run of points: the first of a run takes
 * the direction of each bit of its number's Gray code, each later one that of the bit that changes. A random shift, the same for all
 * points of a dimension, begins the sequence elsewhere.
 * Coherent: runs begin at multiples of their length, so that all threads change the same bit. */
#include "heddle.h"

enum { DIMENSIONS = 2, BITS = 14, RUN = 8, MOST_RUNS = HEDDLE_SIZE(2048, 256), MOST_POINTS = RUN * MOST_RUNS };

HEDDLE_ARG(uint32_t, runs, 0);
/* Of each bit, in one dimension, then in the other. */
HEDDLE_BUFFER(uint32_t, directions, DIMENSIONS * BITS);
/* Where the sequence begins. */
HEDDLE_BUFFER(uint32_t, shifts, DIMENSIONS);
/* All points' places in a dimension, then in the other: of each run the first, then of each run the second. */
HEDDLE_BUFFER(uint32_t, points, DIMENSIONS * MOST_POINTS);

int main(void) {
  uint32_t run = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (run < runs) {
    for (uint32_t dimension = 0; dimension < DIMENSIONS; dimension++) {
      const uint32_t *direction = directions + dimension * BITS;
      uint32_t *point = points + dimension * MOST_POINTS + run;
      uint32_t number = run * RUN, gray = number ^ number >> 1, place = shifts[dimension];
      for (uint32_t bit = 0; bit < BITS; bit++) place ^= direction[bit] & -(gray >> bit & 1);
      *point = place;
      for (uint32_t n = 1; n < RUN; n++) {
        uint32_t bit = 0;
        while ((n >> bit & 1) == 0) bit++;
        place ^= direction[bit];
        point += MOST_RUNS;
        *point = place;
      }
    }
  }
  return 0;
}
