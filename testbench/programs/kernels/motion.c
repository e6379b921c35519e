/* Motion estimation, a block a region of a frame: how unlike each 4 x 4 pixels are to those around their place before. */
#include "heddle.h"

/* Vectors are -RADIUS .. RADIUS - 1 in each direction. */
enum { WIDTH = 64, HEIGHT = HEDDLE_SIZE(32, 16), REGION = 16, PATCH = 4, RADIUS = 4 };
enum { PATCHES = REGION / PATCH, VECTORS = 2 * RADIUS, SIDE = REGION + VECTORS, LINE = 32 };
enum { REGIONS = WIDTH / REGION * (HEIGHT / REGION), RESULTS = PATCHES * PATCHES * VECTORS * VECTORS };

HEDDLE_BUFFER(uint32_t, frame, WIDTH * HEIGHT);
HEDDLE_BUFFER(uint32_t, previous, WIDTH * HEIGHT);
/* Sums of absolute differences, by region, patch and vector. */
HEDDLE_BUFFER(uint32_t, sads, REGIONS * RESULTS);
HEDDLE_SHARED(uint32_t, now, REGION * REGION);
HEDDLE_SHARED(uint32_t, before, SIDE * SIDE);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), region = heddle_block();
  uint32_t left = region % (WIDTH / REGION) * REGION, top = region / (WIDTH / REGION) * REGION;
  for (uint32_t i = thread; i < REGION * REGION; i += threads)
    now[i] = frame[(top + i / REGION) * WIDTH + left + i % REGION];
  for (uint32_t i = thread; i < SIDE * LINE; i += threads) {
    uint32_t column = i % LINE, row = i / LINE;
    /* Outside the frame, where a number may be negative if signed, all is 0. */
    uint32_t x = left + column - RADIUS, y = top + row - RADIUS;
    if (column < SIDE) before[row * SIDE + column] = x < WIDTH && y < HEIGHT ? previous[y * WIDTH + x] : 0;
  }
  heddle_barrier();
  for (uint32_t i = thread; i < RESULTS; i += threads) {
    uint32_t patch = i / (VECTORS * VECTORS), vector = i % (VECTORS * VECTORS);
    uint32_t x = patch % PATCHES * PATCH, y = patch / PATCHES * PATCH;
    const uint32_t *here = now + y * REGION + x;
    const uint32_t *there = before + (y + vector / VECTORS) * SIDE + x + vector % VECTORS;
    uint32_t sad = 0;
    for (uint32_t row = 0; row < PATCH; row++, here += REGION, there += SIDE)
      for (uint32_t column = 0; column < PATCH; column++) {
        int32_t difference = (int32_t)(here[column] - there[column]);
        sad += (uint32_t)(difference < 0 ? -difference : difference);
      }
    sads[region * RESULTS + i] = sad;
  }
  return 0;
}
