/* Fast Fourier transforms in fixed point, a block a transform, which stays in the scratchpad (Cooley and Tukey, radix 2, decimation
 * in time). Coherent: each thread has a butterfly in every stage, and waits for the others after it. */
#include "heddle.h"

enum { MOST_TRANSFORMS = HEDDLE_SIZE(16, 8), LENGTH_LOG2 = 8, LENGTH = 1 << LENGTH_LOG2, FRACTION_BITS = 14 };

/* All transforms, first inputs, then outputs, which are LENGTH times less than the sum. */
HEDDLE_BUFFER(int32_t, real, MOST_TRANSFORMS * LENGTH);
HEDDLE_BUFFER(int32_t, imaginary, MOST_TRANSFORMS * LENGTH);
/* Roots of unity, in units of 2^-FRACTION_BITS. */
HEDDLE_BUFFER(int32_t, cosine, LENGTH / 2);
HEDDLE_BUFFER(int32_t, sine, LENGTH / 2);
HEDDLE_SHARED(int32_t, re, LENGTH);
HEDDLE_SHARED(int32_t, im, LENGTH);

static uint32_t reversed(uint32_t index) {
  uint32_t result = 0;
  for (uint32_t bit = 0; bit < LENGTH_LOG2; bit++) result = result << 1 | (index >> bit & 1);
  return result;
}

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), first = heddle_block() * LENGTH;
  for (uint32_t i = thread; i < LENGTH; i += threads) {
    uint32_t from = first + reversed(i);
    re[i] = real[from];
    im[i] = imaginary[from];
  }
  for (uint32_t stage = 0; stage < LENGTH_LOG2; stage++) {
    heddle_barrier();
    for (uint32_t i = thread; i < LENGTH / 2; i += threads) {
      uint32_t apart = 1 << stage, place = i & (apart - 1), low = 2 * i - place, high = low + apart;
      uint32_t root = place << (LENGTH_LOG2 - 1 - stage);
      int32_t turned_re = (re[high] * cosine[root] - im[high] * sine[root]) >> FRACTION_BITS;
      int32_t turned_im = (re[high] * sine[root] + im[high] * cosine[root]) >> FRACTION_BITS;
      int32_t low_re = re[low], low_im = im[low];
      re[low] = (low_re + turned_re) >> 1;
      im[low] = (low_im + turned_im) >> 1;
      re[high] = (low_re - turned_re) >> 1;
      im[high] = (low_im - turned_im) >> 1;
    }
  }
  heddle_barrier();
  for (uint32_t i = thread; i < LENGTH; i += threads) {
    real[first + i] = re[i];
    imaginary[first + i] = im[i];
  }
  return 0;
}
