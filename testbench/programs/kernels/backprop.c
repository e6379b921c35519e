/* Training of a layer of neurons, in fixed point: one launch computes what the inputs give, another adjusts the weights. A block
 * takes ROWS inputs and all neurons.
 *
 * Threads diverge as in the paper's BACKP: in the tree that adds the products, fewer are at work in each step, and at the end one
 * row writes. An if without an else in each place; the compiler makes some interleavable. */
#include "heddle.h"

enum { INPUTS = HEDDLE_SIZE(256, 128), NEURONS = 16, ROWS = 16, BLOCKS = INPUTS / ROWS, FRACTION_BITS = 12 };
enum { FORWARD, ADJUST };

HEDDLE_ARG(uint32_t, phase, FORWARD);
HEDDLE_BUFFER(int32_t, input, INPUTS);
HEDDLE_BUFFER(int32_t, weight, INPUTS * NEURONS);
/* What a weight last changed by. */
HEDDLE_BUFFER(int32_t, change, INPUTS * NEURONS);
/* Sums of a block's products, for the host to add. */
HEDDLE_BUFFER(int32_t, partial, BLOCKS * NEURONS);
/* How far each neuron is off, times the rate of learning. */
HEDDLE_BUFFER(int32_t, error, NEURONS);
HEDDLE_SHARED(int32_t, product, ROWS * NEURONS);

static int32_t times(int32_t a, int32_t b) { return (a * b) >> FRACTION_BITS; }

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), block = heddle_block();
  uint32_t first = block * ROWS;
  if (phase == FORWARD) {
    for (uint32_t i = thread; i < ROWS * NEURONS; i += threads)
      product[i] = times(input[first + i / NEURONS], weight[first * NEURONS + i]);
    heddle_barrier();
    for (uint32_t step = 1; step < ROWS; step *= 2) {
      for (uint32_t i = thread; i < ROWS * NEURONS; i += threads) {
        if (i / NEURONS % (2 * step) == 0) product[i] += product[i + step * NEURONS];
        heddle_converge();
      }
      heddle_barrier();
    }
    for (uint32_t i = thread; i < NEURONS; i += threads) partial[block * NEURONS + i] = product[i];
  } else {
    for (uint32_t i = first * NEURONS + thread; i < (first + ROWS) * NEURONS; i += threads) {
      int32_t by = times(error[i % NEURONS], input[i / NEURONS]) + (change[i] >> 2);
      weight[i] += by;
      change[i] = by;
    }
  }
  return 0;
}
