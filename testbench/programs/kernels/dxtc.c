/* Texture compression (DXT1) in integers: a block takes a square of 4 by 4 pixels and finds two colours, and for each pixel one of the
 * four on the line between them. Pixels are put in order along the axis in which they differ most; then each thread takes some of the
 * ways to part that order into four, for each the two colours of least error, and the block the best of all.
 *
 * Threads diverge as in the DXTC of the CUDA samples: few load the pixels, add and sort them; the last turn has too few ways for all;
 * a way is the best so far or not; a tree finds the least error, and one thread writes. An if without an else in each place: none is
 * interleavable. */
#include "heddle.h"

enum { PIXELS = 16, MOST_SQUARES = 64, WAYS = 161, CHANNELS = 3, MOMENTS = 9, TURNS = 4 };

/* Red, green, blue from the lowest byte up. */
HEDDLE_BUFFER(uint32_t, pixels, PIXELS * MOST_SQUARES);
/* For each pixel of the order, two bits: thirds of the first colour in its own. */
HEDDLE_BUFFER(uint32_t, ways, WAYS);
/* 3 * 2^32 over the determinant of the normal equations of the way. */
HEDDLE_BUFFER(int32_t, reciprocals, WAYS);
/* Two colours of 5, 6 and 5 bits, then two bits a pixel: the first colour, the second, two thirds of the first, one third. */
HEDDLE_BUFFER(uint32_t, compressed, 2 * MOST_SQUARES);
/* All red, all green, all blue. */
HEDDLE_SHARED(int32_t, picture, CHANNELS * PIXELS);
/* Sums of channels, then of their products, of a pixel each at first. When the axis is known, there is in their place the picture in the
 * order along it; and for each of up to 64 threads a quarter of the least error of its ways, then the number of that way. */
HEDDLE_SHARED(int32_t, moments, MOMENTS * PIXELS);
HEDDLE_SHARED(int32_t, along, PIXELS);
/* Of each pixel, its place along the axis. */
HEDDLE_SHARED(uint32_t, places, PIXELS);

static int32_t magnitude(int32_t x) { return (x ^ x >> 31) - (x >> 31); }

/* From 0 to 255. */
static int32_t clamped(int32_t x) {
  x &= ~(x >> 31);
  return (x | (255 - x) >> 31) & 255;
}

/* A channel's two values of least error, from the way's moments and the channel's: in fewer bits, and what these stand for. */
struct ends {
  int32_t first, second;
};

static struct ends least(int32_t own, int32_t rest, int32_t ff, int32_t fs, int32_t ss, int32_t reciprocal) {
  int32_t first = own * ss - rest * fs, second = rest * ff - own * fs;
  return (struct ends){clamped((int64_t)first * reciprocal >> 32), clamped((int64_t)second * reciprocal >> 32)};
}

static int32_t in_bits(int32_t value, int32_t most) { return (uint32_t)(value * most + 127) / 255; }

/* Nine times the sum of squares by which a channel is off, less nine times that of its own: below 2^25. */
static int32_t off(struct ends e, int32_t own, int32_t rest, int32_t ff, int32_t fs, int32_t ss) {
  return e.first * e.first * ff + e.second * e.second * ss + 2 * e.first * e.second * fs - 6 * (e.first * own + e.second * rest);
}

int main(void) {
  uint32_t thread = heddle_block_thread(), threads = heddle_block_threads(), square = heddle_block();
  int32_t *ordered = moments, *keys = moments + CHANNELS * PIXELS;
  for (uint32_t turn = 0, i = thread; turn < PIXELS; turn += threads, i += threads) {
    if (i < PIXELS) {
      uint32_t pixel = pixels[square * PIXELS + i];
      int32_t red = pixel & 255, green = pixel >> 8 & 255, blue = pixel >> 16 & 255, *of_pixel = moments + i;
      picture[i] = red, picture[PIXELS + i] = green, picture[2 * PIXELS + i] = blue;
      of_pixel[0] = red, of_pixel[PIXELS] = green, of_pixel[2 * PIXELS] = blue;
      of_pixel[3 * PIXELS] = red * red, of_pixel[4 * PIXELS] = red * green, of_pixel[5 * PIXELS] = red * blue;
      of_pixel[6 * PIXELS] = green * green, of_pixel[7 * PIXELS] = green * blue, of_pixel[8 * PIXELS] = blue * blue;
    }
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t half = PIXELS / 2; half > 0; half /= 2) {
    for (uint32_t turn = 0, i = thread; turn < half; turn += threads, i += threads) {
      if (i < half)
        for (uint32_t k = i; k < MOMENTS * PIXELS; k += PIXELS) moments[k] += moments[k + half];
      heddle_converge();
    }
    heddle_barrier();
  }

  /* The axis: the covariances turn any direction towards it. Products of them with 14 bits fit in 31. */
  int32_t red = moments[0], green = moments[PIXELS], blue = moments[2 * PIXELS];
  int32_t rr = (PIXELS * moments[3 * PIXELS] - red * red) >> 10, rg = (PIXELS * moments[4 * PIXELS] - red * green) >> 10;
  int32_t rb = (PIXELS * moments[5 * PIXELS] - red * blue) >> 10, gg = (PIXELS * moments[6 * PIXELS] - green * green) >> 10;
  int32_t gb = (PIXELS * moments[7 * PIXELS] - green * blue) >> 10, bb = (PIXELS * moments[8 * PIXELS] - blue * blue) >> 10;
  int32_t x = 1 << 10, y = 1 << 10, z = 1 << 10;
  for (uint32_t turn = 0; turn < TURNS; turn++) {
    int32_t to_x = rr * x + rg * y + rb * z, to_y = rg * x + gg * y + gb * z, to_z = rb * x + gb * y + bb * z;
    while ((magnitude(to_x) | magnitude(to_y) | magnitude(to_z)) >> 13) to_x >>= 4, to_y >>= 4, to_z >>= 4;
    heddle_converge();
    x = to_x, y = to_y, z = to_z;
  }
  for (uint32_t turn = 0, i = thread; turn < PIXELS; turn += threads, i += threads) {
    if (i < PIXELS) along[i] = picture[i] * x + picture[PIXELS + i] * y + picture[2 * PIXELS + i] * z;
    heddle_converge();
  }
  heddle_barrier();
  for (uint32_t turn = 0, i = thread; turn < PIXELS; turn += threads, i += threads) {
    if (i < PIXELS) {
      uint32_t place = 0;
      for (uint32_t k = 0; k < PIXELS; k++) place += (along[k] < along[i]) | ((along[k] == along[i]) & (k < i));
      places[i] = place;
      for (uint32_t k = 0; k < CHANNELS * PIXELS; k += PIXELS) ordered[k + place] = picture[k + i];
    }
    heddle_converge();
  }
  heddle_barrier();

  int32_t best = INT32_MAX;
  uint32_t colours = 0;
  for (uint32_t turn = 0, i = thread; turn < WAYS; turn += threads, i += threads) {
    if (i < WAYS) {
      uint32_t way = ways[i];
      int32_t thirds = 0, ff = 0, own_red = 0, own_green = 0, own_blue = 0;
      for (uint32_t k = 0; k < PIXELS; k++) {
        int32_t part = way & 3;
        thirds += part;
        ff += part * part;
        own_red += part * ordered[k];
        own_green += part * ordered[PIXELS + k];
        own_blue += part * ordered[2 * PIXELS + k];
        way >>= 2;
      }
      int32_t fs = 3 * thirds - ff, ss = 9 * PIXELS - 6 * thirds + ff, reciprocal = reciprocals[i];
      int32_t rest_red = 3 * red - own_red, rest_green = 3 * green - own_green, rest_blue = 3 * blue - own_blue;
      struct ends r = least(own_red, rest_red, ff, fs, ss, reciprocal), g = least(own_green, rest_green, ff, fs, ss, reciprocal);
      struct ends b = least(own_blue, rest_blue, ff, fs, ss, reciprocal);
      r = (struct ends){in_bits(r.first, 31), in_bits(r.second, 31)};
      g = (struct ends){in_bits(g.first, 63), in_bits(g.second, 63)};
      b = (struct ends){in_bits(b.first, 31), in_bits(b.second, 31)};
      uint32_t both = r.first << 11 | g.first << 5 | b.first | (uint32_t)(r.second << 11 | g.second << 5 | b.second) << 16;
      r = (struct ends){r.first << 3 | r.first >> 2, r.second << 3 | r.second >> 2};
      g = (struct ends){g.first << 2 | g.first >> 4, g.second << 2 | g.second >> 4};
      b = (struct ends){b.first << 3 | b.first >> 2, b.second << 3 | b.second >> 2};
      int32_t error = off(r, own_red, rest_red, ff, fs, ss) + off(g, own_green, rest_green, ff, fs, ss);
      error += off(b, own_blue, rest_blue, ff, fs, ss);
      int32_t key = (uint32_t)(error >> 2) << 8 | i;
      if (key < best) {
        best = key;
        colours = both;
      }
    }
    heddle_converge();
  }
  keys[thread] = best;
  heddle_barrier();
  for (uint32_t half = threads / 2; half > 0; half /= 2) {
    if (thread < half) {
      int32_t other = keys[thread + half];
      if (other < keys[thread]) keys[thread] = other;
    }
    heddle_barrier();
  }
  if (best == keys[0]) {
    uint32_t way = ways[best & 255], indices = 0, first = colours & 0xffff, second = colours >> 16;
    /* Of thirds from 3 down to 0: index 0, 2, 3 and 1. */
    for (uint32_t k = 0; k < PIXELS; k++) indices |= (0x2du >> (way >> 2 * places[k] & 3) * 2 & 3) << 2 * k;
    /* The first must be the greater: else there are three colours on the line. */
    if (first < second) {
      colours = first << 16 | second;
      indices ^= 0x55555555;
    }
    heddle_converge();
    compressed[2 * square] = colours;
    compressed[2 * square + 1] = indices;
  }
  return 0;
}
