/* The pattern of the paper's Listing 1 and Figure 2(a): in a loop a condition that diverges, with expensive code behind it, between a
 * short prolog and a short epilog. Threads for which it is true in different iterations should wait for each other there. */
#include "coarse.h"
#include "fixed.h"

enum { MOST_WORKERS = 256, ITERATIONS = 128, ROUNDS = 32 };

/* Of 2^16 iterations, those that take the expensive way. */
HEDDLE_ARG(uint32_t, odds, 0);
/* For each worker: where its random numbers begin, not 0; and the result. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_WORKERS);
HEDDLE_BUFFER(uint32_t, sums, MOST_WORKERS);

/* Rounds of multiplication and rotation. */
static inline uint32_t expensive(uint32_t x) {
#pragma GCC unroll 32
  for (uint32_t round = 0; round < ROUNDS; round++) {
    x = x * 0x9e3779b1 + round;
    x = x << 13 | x >> 19;
  }
  return x;
}

int main(void) {
  uint32_t state = seeds[worker()], likely = odds, sum = 0;
  HEDDLE_PREDICT(rare);
  for (uint32_t i = 0; i < ITERATIONS; i++) {
    uint32_t random = next(&state);
    if (random >> 16 < likely) {
      HEDDLE_RECONVERGE(rare);
      sum ^= expensive(random);
    }
    heddle_converge();
    sum = (sum << 1 | sum >> 31) + random;
  }
  sums[worker()] = sum;
  return 0;
}
