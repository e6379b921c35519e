/* Training of a layer of neurons, in fixed point: one launch computes what the inputs give, another adjusts the weights. A block
 * takes ROWS inputs and all neurons, a thread each of their products.
 *
 * Threads diverge as in the BACKP of Rodinia: one column loads the inputs (CAPRI's Figure 4); in the tree that adds the products, rows
 * that a power of two divides are at work; and one column writes. An if without an else in each place: none is interleavable. */
#include "heddle.h"

enum { INPUTS = HEDDLE_SIZE(256, 128), NEURONS = 16, ROWS = 16, LOG_ROWS = 4, BLOCKS = INPUTS / ROWS, FRACTION_BITS = 12 };
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
HEDDLE_SHARED(int32_t, node, ROWS);
HEDDLE_SHARED(int32_t, product, ROWS * NEURONS);

static int32_t times(int32_t a, int32_t b) { return (a * b) >> FRACTION_BITS; }

/* The turns of a block's threads, each of which has a place in what they take together. */
#define EACH(place) for (uint32_t turn = 0, place = thread; turn < ROWS * NEURONS; turn += threads, place += threads)

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), block = heddle_block();
  uint32_t first = block * ROWS;
  if (phase == FORWARD) {
    EACH(i) {
      if (i % NEURONS == 0 && i < ROWS * NEURONS) node[i / NEURONS] = input[first + i / NEURONS];
      heddle_converge();
    }
    heddle_barrier();
    EACH(i) {
      if (i < ROWS * NEURONS) product[i] = times(weight[first * NEURONS + i], node[i / NEURONS]);
      heddle_converge();
    }
    heddle_barrier();
    for (uint32_t step = 1; step <= LOG_ROWS; step++) {
      uint32_t power = 1 << step;
      EACH(i) {
        if (i / NEURONS % power == 0 && i < ROWS * NEURONS) product[i] += product[i + power / 2 * NEURONS];
        heddle_converge();
      }
      heddle_barrier();
    }
    EACH(i) {
      if (i % NEURONS == 0 && i < ROWS * NEURONS) partial[block * NEURONS + i / NEURONS] = product[i / NEURONS];
      heddle_converge();
    }
  } else {
    EACH(i) {
      if (i < ROWS * NEURONS) {
        uint32_t place = first * NEURONS + i;
        int32_t by = times(error[i % NEURONS], input[first + i / NEURONS]) + (change[place] >> 2);
        weight[place] += by;
        change[place] = by;
      }
      heddle_converge();
    }
  }
  return 0;
}
