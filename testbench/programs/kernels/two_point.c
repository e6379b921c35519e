/* Two-point angular correlation: for each point of a survey of the sky, how many of some random points are within which angle. A
 * thread a point, and a histogram a point in the scratchpad, so that nothing need be atomic.
 *
 * Threads diverge as in the TPACF of Parboil: in the binary search for a pair's bin, which goes to either half and is a turn longer for
 * some bins. */
#include "heddle.h"

enum { MOST_POINTS = HEDDLE_SIZE(2048, 512), RANDOM = 16, BINS = 20, FRACTION_BITS = 14, MOST_THREADS = 256 };
/* A count has five bits, enough for all random points. */
enum { OF_WORD = 6, WORDS = (BINS + OF_WORD - 1) / OF_WORD };

HEDDLE_ARG(uint32_t, count, 0);
/* Directions of unit length, in units of 2^-FRACTION_BITS: all x, then all y, then all z. */
HEDDLE_BUFFER(int32_t, points, 3 * MOST_POINTS);
HEDDLE_BUFFER(int32_t, random, 3 * RANDOM);
/* The least cosine of all bins but the first, that of the widest angles. */
HEDDLE_BUFFER(int32_t, edges, BINS - 1);
/* Pairs of a point in six bins: all points of bins 0 to 5, then of bins 6 to 11. */
HEDDLE_BUFFER(uint32_t, histograms, WORDS * MOST_POINTS);
HEDDLE_SHARED(uint32_t, pairs, WORDS * MOST_THREADS);

int main(void) {
  uint32_t point = heddle_block() * heddle_block_threads() + heddle_block_thread();
  uint32_t *own = pairs + heddle_block_thread();
  if (point < count) {
    int32_t x = points[point], y = points[MOST_POINTS + point], z = points[2 * MOST_POINTS + point];
    for (uint32_t word = 0; word < WORDS; word++) own[word * MOST_THREADS] = 0;
    for (uint32_t other = 0; other < RANDOM; other++) {
      int32_t cosine = (x * random[other] + y * random[RANDOM + other] + z * random[2 * RANDOM + other]) >> FRACTION_BITS;
      uint32_t bin = 0, last = BINS - 1;
      while (bin < last) {
        uint32_t middle = (bin + last) / 2;
        if (cosine >= edges[middle]) bin = middle + 1;
        else last = middle;
        heddle_converge();
      }
      heddle_converge();
      own[bin / OF_WORD * MOST_THREADS] += 1 << bin % OF_WORD * 5;
    }
    for (uint32_t word = 0; word < WORDS; word++) histograms[word * MOST_POINTS + point] = own[word * MOST_THREADS];
  }
  return 0;
}
