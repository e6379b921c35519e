/* A particle filter in fixed point that follows a bright disc through frames, one launch a frame and a block a filter: particles
 * move at random, are weighed by how bright the picture is around them, and are drawn anew by their weights.
 * Coherent, as the paper's PFLT: running sums have zeros before them and the search of a particle takes equally many steps, so that
 * neither needs a branch. */
#include "heddle.h"

enum { MOST_FILTERS = HEDDLE_SIZE(8, 2), PARTICLES = 256, SIDE = 64, PLACE_BITS = 8, OFFSETS = 4, WEIGHTS = 256 };
/* A pixel is as likely the disc's as the background's if it is in the middle of these. */
enum { BACKGROUND = 100, DISC = 228, TO_WEIGHT = 10 };
/* What a black pixel counts, so that no sum is below 0. */
enum { BLACK = DISC * DISC - BACKGROUND * BACKGROUND };

HEDDLE_BUFFER(uint8_t, frame, SIDE * SIDE);
/* In units of 2^-PLACE_BITS of a pixel; the picture's edges meet the opposite ones. */
HEDDLE_BUFFER(uint32_t, x, MOST_FILTERS * PARTICLES);
HEDDLE_BUFFER(uint32_t, y, MOST_FILTERS * PARTICLES);
HEDDLE_BUFFER(uint32_t, moved_x, MOST_FILTERS * PARTICLES);
HEDDLE_BUFFER(uint32_t, moved_y, MOST_FILTERS * PARTICLES);
/* State of each particle's random numbers. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_FILTERS * PARTICLES);
/* Pixels that belong to the disc around a particle. */
HEDDLE_BUFFER(int32_t, offset_x, OFFSETS);
HEDDLE_BUFFER(int32_t, offset_y, OFFSETS);
/* The exponential function. */
HEDDLE_BUFFER(uint32_t, weights, WEIGHTS);
/* Of the number of a particle, where its draw begins. */
HEDDLE_ARG(uint32_t, start, 0);
HEDDLE_SHARED(uint32_t, sums, 4 * PARTICLES);

/* Within a pixel, most often within half of one. */
static uint32_t noise(uint32_t *random) {
  *random = *random * 1664525 + 1013904223;
  return (*random >> 24) + (*random >> 16 & 0xff) - 256;
}

static uint32_t likelihood(uint32_t column, uint32_t row) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < OFFSETS; i++) {
    int32_t pixel = frame[(row + offset_y[i]) % SIDE * SIDE + (column + offset_x[i]) % SIDE];
    int32_t background = pixel - BACKGROUND, disc = pixel - DISC;
    sum += background * background - disc * disc + BLACK;
  }
  return sum;
}

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), own = heddle_block() * PARTICLES;
  uint32_t *from = sums, *to = sums + 2 * PARTICLES;
  for (uint32_t i = thread; i < PARTICLES; i += threads) {
    uint32_t random = seeds[own + i], column = x[own + i] + noise(&random), row = y[own + i] + noise(&random);
    seeds[own + i] = random;
    moved_x[own + i] = column;
    moved_y[own + i] = row;
    from[i] = to[i] = 0;
    from[PARTICLES + i] = weights[likelihood(column >> PLACE_BITS, row >> PLACE_BITS) >> TO_WEIGHT];
  }
  for (uint32_t distance = 1; distance < PARTICLES; distance *= 2) {
    heddle_barrier();
    for (uint32_t i = PARTICLES + thread; i < 2 * PARTICLES; i += threads) to[i] = from[i] + from[i - distance];
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  heddle_barrier();
  const uint32_t *sum = from + PARTICLES;
  uint32_t apart = sum[PARTICLES - 1] / PARTICLES, first = start % apart;
  for (uint32_t i = thread; i < PARTICLES; i += threads) {
    uint32_t wanted = first + i * apart, drawn = 0;
    for (uint32_t step = PARTICLES / 2; step > 0; step /= 2) drawn += step & -(sum[drawn + step - 1] <= wanted);
    x[own + i] = moved_x[own + drawn];
    y[own + i] = moved_y[own + drawn];
  }
  return 0;
}
