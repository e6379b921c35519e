/* The pattern of the paper's Figure 2(c): both sides of a branch that diverges call one function. Threads of both sides should reconverge
 * at its start. */
#include "coarse.h"
#include "fixed.h"

enum { MOST_WORKERS = 256, ITERATIONS = 32, ROUNDS = 24 };

/* Of 2^16 iterations, those that take the first side. */
HEDDLE_ARG(uint32_t, odds, 0);
/* For each worker: where its random numbers begin, not 0; and the result. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_WORKERS);
HEDDLE_BUFFER(uint32_t, sums, MOST_WORKERS);

/* Rounds of multiplication and rotation. */
static __attribute__((noipa)) uint32_t expensive(uint32_t x) {
#pragma GCC unroll 24
  for (uint32_t round = 0; round < ROUNDS; round++) {
    x = x * 0x9e3779b1 + round;
    x = x << 13 | x >> 19;
  }
  return x;
}

int main(void) {
  uint32_t state = seeds[worker()], likely = odds, sum = 0;
  for (uint32_t i = 0; i < ITERATIONS; i++) {
    HEDDLE_PREDICT_FUNCTION(expensive);
    uint32_t random = next(&state);
    if (random >> 16 < likely) {
      sum ^= expensive(random);
    } else {
      uint32_t other = random ^ sum >> 3;
      sum += expensive(other + (other << 5)) >> 1;
    }
    heddle_converge();
    sum = sum << 1 | sum >> 31;
  }
  sums[worker()] = sum;
  return 0;
}
