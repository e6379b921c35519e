/* The Mandelbrot set in fixed point: a loop whose trip count differs from pixel to pixel. */
#include "heddle.h"

enum { WIDTH = 80, HEIGHT = 48, FRACTION_BITS = 12 };

/* Top left corner and distance of two pixels, in units of 2^-FRACTION_BITS. */
HEDDLE_ARG(int32_t, left, 0);
HEDDLE_ARG(int32_t, top, 0);
HEDDLE_ARG(int32_t, pixel, 0);
HEDDLE_ARG(uint32_t, limit, 0);
/* Iterations until a point escaped; `limit` for one that did not. */
HEDDLE_BUFFER(uint32_t, iterations, WIDTH * HEIGHT);

static uint32_t escape(int32_t x0, int32_t y0, uint32_t most) {
  const int32_t four = 4 << FRACTION_BITS;
  int32_t x = 0, y = 0;
  for (uint32_t n = 0; n < most; n++) {
    int32_t xx = (x * x) >> FRACTION_BITS;
    int32_t yy = (y * y) >> FRACTION_BITS;
    if (xx + yy > four) return n;
    y = ((x * y) >> (FRACTION_BITS - 1)) + y0;
    x = xx - yy + x0;
  }
  return most;
}

int main(void) {
  int32_t x0 = left, y0 = top, step = pixel;
  uint32_t most = limit, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < WIDTH * HEIGHT; i += threads) {
    int32_t column = i % WIDTH, row = i / WIDTH;
    iterations[i] = escape(x0 + column * step, y0 + row * step, most);
  }
  return 0;
}
