/* Price of an Asian option by Monte Carlo in fixed point, a thread a path: what the mean of a wandering price is above the strike.
 * Coherent: paths are of equal length, and the payoff is taken without a branch. */
#include "heddle.h"

enum { MOST_PATHS = HEDDLE_SIZE(4096, 2048), STEPS_LOG2 = 4, STEPS = 1 << STEPS_LOG2, FRACTION_BITS = 12, ONE = 1 << FRACTION_BITS };

HEDDLE_ARG(uint32_t, paths, 0);
/* Of 2^-FRACTION_BITS: the part by which a price rises in a step, and by which it varies for each unit of noise. */
HEDDLE_ARG(int32_t, drift, 0);
HEDDLE_ARG(int32_t, volatility, 0);
HEDDLE_ARG(int32_t, strike, ONE);
/* Where the random numbers of each path begin. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_PATHS);
HEDDLE_BUFFER(int32_t, payoffs, MOST_PATHS);

int main(void) {
  uint32_t path = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (path < paths) {
    uint32_t random = seeds[path];
    int32_t rise = drift, noise = volatility, price = ONE, sum = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
      /* Three bytes, less their mean: nearly normal. The generator's lowest byte is of short period. */
      random = random * 1664525 + 1013904223;
      int32_t normal = (int32_t)((random >> 24) + (random >> 16 & 0xff) + (random >> 8 & 0xff)) - 3 * 128;
      price += (price * (rise + (noise * normal >> 8))) >> FRACTION_BITS;
      sum += price;
    }
    int32_t gain = (sum >> STEPS_LOG2) - strike;
    payoffs[path] = gain & ~(gain >> 31);
  }
  return 0;
}
