/* A step towards the solution of Laplace's equation in a box: a block takes a part of every plane, and goes from plane to plane.
 *
 * Threads diverge as in the paper's LPS: a point of the surface stays, all others become a sixth of their neighbours' sum. Both
 * sides of the branch are work: it is interleavable. */
#include "heddle.h"

enum { WIDTH = 32, MOST_HEIGHT = HEDDLE_SIZE(64, 12), PLANE = WIDTH * MOST_HEIGHT, DEPTH = 8, ROWS = 4, PART = ROWS * WIDTH };

/* Of 2^18, rounded up. Values are below 2^13, so that products fit in 32 bits. */
enum { SIXTH = 43691 };

HEDDLE_BUFFER(uint32_t, before, DEPTH * PLANE);
HEDDLE_BUFFER(uint32_t, after, DEPTH * PLANE);
/* The part of a plane, and a row above and below. */
HEDDLE_SHARED(uint32_t, part, PART + 2 * WIDTH);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), top = heddle_block() * ROWS;
  uint32_t height = heddle_blocks() * ROWS, end = height * WIDTH;
  for (uint32_t z = 0; z < DEPTH; z++) {
    const uint32_t *plane = before + z * PLANE;
    for (uint32_t i = thread; i < PART + 2 * WIDTH; i += threads) {
      uint32_t place = top * WIDTH + i - WIDTH;
      if (place < end) part[i] = plane[place];
      heddle_converge();
    }
    heddle_barrier();
    for (uint32_t i = thread; i < PART; i += threads) {
      uint32_t x = i % WIDTH, y = top + i / WIDTH, place = z * PLANE + top * WIDTH + i;
      const uint32_t *here = part + WIDTH + i;
      if (x == 0 || x == WIDTH - 1 || y == 0 || y == height - 1 || z == 0 || z == DEPTH - 1) {
        after[place] = *here;
      } else {
        uint32_t sum = here[-1] + here[1] + here[-WIDTH] + here[WIDTH] + before[place - PLANE] + before[place + PLANE];
        after[place] = sum * SIXTH >> 18;
      }
      heddle_converge();
    }
    heddle_barrier();
  }
  return 0;
}
