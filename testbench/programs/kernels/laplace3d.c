/* A step towards the solution of Laplace's equation in a box: a block takes a part of every plane, and goes from plane to plane.
 *
 * Threads diverge as in the paper's LPS: the box is no multiple of a block's part wide, so that few threads of the last blocks of a row
 * of parts have a point; some threads load what is around the part; a point of the surface stays, all others become a sixth of their
 * neighbours' sum. Both sides of that branch are work: it is interleavable. */
#include "heddle.h"

enum { WIDTH = HEDDLE_SIZE(100, 36), MOST_HEIGHT = HEDDLE_SIZE(32, 12), PLANE = WIDTH * MOST_HEIGHT, DEPTH = 6 };
/* A part, what is around it, and parts across the box. */
enum { COLUMNS = 32, ROWS = 4, PART = ROWS * COLUMNS, PITCH = COLUMNS + 2, AROUND = 2 * (PITCH + ROWS) };
enum { ACROSS = (WIDTH + COLUMNS - 1) / COLUMNS };

/* Of 2^18, rounded up. Values are below 2^13, so that products fit in 32 bits. */
enum { SIXTH = 43691 };

HEDDLE_BUFFER(uint32_t, before, DEPTH * PLANE);
HEDDLE_BUFFER(uint32_t, after, DEPTH * PLANE);
/* The part of three planes, with what is around it. */
enum { PLANE_PART = (ROWS + 2) * PITCH };
HEDDLE_SHARED(uint32_t, parts, 3 * PLANE_PART);

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t left = heddle_block() % ACROSS * COLUMNS, top = heddle_block() / ACROSS * ROWS, height = heddle_blocks() / ACROSS * ROWS;
  uint32_t *below = parts, *middle = parts + PLANE_PART, *part = parts + 2 * PLANE_PART;
  for (uint32_t next = 0; next <= DEPTH; next++) {
    const uint32_t *plane = before + next * PLANE;
    uint32_t places = next < DEPTH ? PART : 0, places_around = next < DEPTH ? AROUND : 0;
    for (uint32_t i = thread; i < places; i += threads) {
      uint32_t column = i % COLUMNS, row = i / COLUMNS;
      if (left + column < WIDTH) part[(row + 1) * PITCH + column + 1] = plane[(top + row) * WIDTH + left + column];
      heddle_converge();
    }
    for (uint32_t i = thread; i < places_around; i += threads) {
      uint32_t is_below = i >= PITCH, column = i - is_below * PITCH, row = is_below * (ROWS + 1);
      if (i >= 2 * PITCH) {
        column = i % 2 * (COLUMNS + 1);
        row = (i - 2 * PITCH) / 2 + 1;
      }
      uint32_t x = left + column - 1, y = top + row - 1;
      if (x < WIDTH && y < height) part[row * PITCH + column] = plane[y * WIDTH + x];
      heddle_converge();
    }
    heddle_barrier();
    /* The plane before the one that was loaded. */
    uint32_t z = next - 1, known = next > 0 ? PART : 0;
    for (uint32_t i = thread; i < known; i += threads) {
      uint32_t column = i % COLUMNS, row = i / COLUMNS, x = left + column, y = top + row, place = z * PLANE + y * WIDTH + x;
      if (x < WIDTH) {
        uint32_t own = (row + 1) * PITCH + column + 1;
        const uint32_t *here = middle + own;
        if (x == 0 || x == WIDTH - 1 || y == 0 || y == height - 1 || z == 0 || z == DEPTH - 1) {
          after[place] = *here;
        } else {
          uint32_t sum = here[-1] + here[1] + here[-PITCH] + here[PITCH] + below[own] + part[own];
          after[place] = sum * SIXTH >> 18;
        }
      }
      heddle_converge();
    }
    heddle_barrier();
    uint32_t *oldest = below;
    below = middle;
    middle = part;
    part = oldest;
  }
  return 0;
}
