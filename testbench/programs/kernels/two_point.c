/* Two-point angular correlation: for each point of a survey of the sky, how many of some random points are within which angle. A
 * thread a point, and a histogram a point, so that nothing need be atomic.
 *
 * Threads diverge as in the paper's TPACF: the search for a pair's bin ends where the data says. It begins at the widest angles,
 * where most pairs are. */
#include "heddle.h"

enum { POINTS = 512, RANDOM = 16, BINS = 12, FRACTION_BITS = 14 };

/* Directions of unit length, in units of 2^-FRACTION_BITS: all x, then all y, then all z. */
HEDDLE_BUFFER(int32_t, points, 3 * POINTS);
HEDDLE_BUFFER(int32_t, random, 3 * RANDOM);
/* The least cosine of all bins but the first, that of the widest angles; and what is above all cosines. */
HEDDLE_BUFFER(int32_t, edges, BINS);
/* Pairs of a point in a bin: all points of bin 0, then of bin 1. */
HEDDLE_BUFFER(uint32_t, histograms, BINS * POINTS);

int main(void) {
  uint32_t point = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (point < POINTS) {
    int32_t x = points[point], y = points[POINTS + point], z = points[2 * POINTS + point];
    for (uint32_t other = 0; other < RANDOM; other++) {
      int32_t cosine = (x * random[other] + y * random[RANDOM + other] + z * random[2 * RANDOM + other]) >> FRACTION_BITS;
      uint32_t *pairs = histograms + point;
      for (const int32_t *edge = edges; cosine >= *edge; edge++) pairs += POINTS;
      heddle_converge();
      ++*pairs;
    }
  }
  return 0;
}
