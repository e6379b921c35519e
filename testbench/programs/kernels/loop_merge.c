/* The pattern of the paper's Figure 2(b): an inner loop whose trip count diverges, with expensive code in it, in a loop whose prolog and
 * epilog are short. Threads that are in different iterations of the outer loop should reconverge in the inner one. */
#include "coarse.h"
#include "fixed.h"

enum { MOST_WORKERS = 256, ITERATIONS = 32, ROUNDS = 4, TRIPS = 32 };

/* For each worker: where its random numbers begin, not 0; and the result. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_WORKERS);
HEDDLE_BUFFER(uint32_t, sums, MOST_WORKERS);

/* Rounds of multiplication and rotation. */
static inline uint32_t expensive(uint32_t x) {
#pragma GCC unroll 4
  for (uint32_t round = 0; round < ROUNDS; round++) {
    x = x * 0x9e3779b1 + round;
    x = x << 13 | x >> 19;
  }
  return x;
}

int main(void) {
  uint32_t state = seeds[worker()], sum = 0;
  HEDDLE_PREDICT(body);
  for (uint32_t i = 0; i < ITERATIONS; i++) {
    /* Prolog: one trip, or up to `TRIPS`, few more often than many. */
    uint32_t random = next(&state), trips = 1 + ((random >> 27) * (random >> 22 & (TRIPS - 1)) * (random >> 17 & (TRIPS - 1)) >> 10);
    uint32_t x = random;
    for (uint32_t trip = 0; trip < trips; trip++) {
      HEDDLE_RECONVERGE(body);
      x = expensive(x);
    }
    heddle_converge();
    /* Epilog. */
    sum = (sum << 1 | sum >> 31) ^ x;
  }
  sums[worker()] = sum;
  return 0;
}
