/* Ray tracing in fixed point, a thread a pixel: spheres over a floor, a sun that throws shadows, a sky. A ray goes on from what
 * mirrors, a bounded number of times.
 *
 * Threads diverge as in the paper's ray tracing: a ray meets a sphere or not, a floor or not, and there is work to do in each
 * case; a shadow is found early or late; rays are thrown back once, several times or never. */
#include "fixed.h"

enum { WIDTH = 64, HEIGHT = 40, SPHERES = 4, BOUNCES = 3 };
/* All is within 11 units, so that the square of a distance fits in 31 bits with twice the fraction. */
enum { FAR = 11 * ONE, FLOOR = -ONE, SIDE = 4 * ONE, AMBIENT = ONE / 4, LEAST_WEIGHT = ONE / 16 };

/* Red, green and blue are x, y and z. */
struct sphere {
  vector centre, colour;
  int32_t square_radius, inverse_radius, mirror;
};

HEDDLE_BUFFER(struct sphere, spheres, SPHERES);
/* The direction to the sun. */
HEDDLE_BUFFER(vector, sun, 1);
/* Red, green and blue of a pixel, 8 bits each, red highest. */
HEDDLE_BUFFER(uint32_t, picture, WIDTH * HEIGHT);

/* The square root, bit by bit. */
static int32_t root(int32_t square) {
  uint32_t rest = (uint32_t)square << FRACTION_BITS, result = 0;
  for (uint32_t bit = 1 << 26; bit != 0; bit >>= 2) {
    uint32_t next = result + bit;
    result >>= 1;
    if (rest >= next) {
      rest -= next;
      result += bit;
    }
  }
  return result;
}

/* The square of half of a ray's way through a sphere, negative beside it; and how far it is to the middle of that way. */
static int32_t inside(const struct sphere *sphere, vector from, vector along, int32_t *middle) {
  vector to = minus(sphere->centre, from);
  *middle = dot(to, along);
  return times(*middle, *middle) - dot(to, to) + sphere->square_radius;
}

static int shadowed(vector from, vector light) {
  for (uint32_t i = 0; i < SPHERES; i++) {
    int32_t middle;
    if (inside(&spheres[i], from, light, &middle) > 0 && middle > 0) return 1;
  }
  return 0;
}

static uint32_t trace(vector from, vector along) {
  vector seen = {0, 0, 0}, light = sun[0];
  int32_t weight = ONE;
  for (uint32_t bounce = 0; bounce < BOUNCES && weight > LEAST_WEIGHT; bounce++) {
    const struct sphere *nearest = 0;
    int32_t distance = FAR;
    for (const struct sphere *sphere = spheres; sphere < spheres + SPHERES; sphere++) {
      int32_t middle, square = inside(sphere, from, along, &middle);
      if (square > 0 && middle > 0) {
        int32_t entry = middle - root(square);
        if (entry < distance) {
          distance = entry;
          nearest = sphere;
        }
      }
      heddle_converge();
    }
    vector place = from, upright = {0, 0, 0}, colour;
    int32_t mirror = 0, bright = AMBIENT;
    if (nearest) {
      place = plus(from, scaled(along, distance));
      upright = scaled(minus(place, nearest->centre), nearest->inverse_radius);
      colour = nearest->colour;
      mirror = nearest->mirror;
    } else {
      int32_t down = -along.y;
      distance = down > 0 ? ((from.y - FLOOR) << FRACTION_BITS) / down : FAR;
      if (distance < FAR) place = plus(from, scaled(along, distance));
      if (distance < FAR && place.x >= -SIDE && place.x < SIDE && place.z >= -SIDE && place.z < SIDE) {
        int32_t tile = ((place.x >> FRACTION_BITS) + (place.z >> FRACTION_BITS)) & 1;
        upright = (vector){0, ONE, 0};
        colour = tile ? (vector){ONE, ONE, ONE * 7 / 8} : (vector){ONE / 4, ONE / 8, ONE / 8};
        mirror = ONE / 8;
      } else {
        int32_t height = along.y > 0 ? along.y : 0;
        colour = (vector){ONE * 3 / 4 - height / 2, ONE * 7 / 8 - height / 4, ONE};
        bright = ONE;
      }
      heddle_converge();
    }
    heddle_converge();
    int32_t facing = dot(upright, light);
    if (facing > 0 && !shadowed(place, light)) bright += times(ONE - AMBIENT, facing);
    seen = plus(seen, scaled(colour, times(times(weight, ONE - mirror), bright)));
    weight = times(weight, mirror);
    from = place;
    along = minus(along, scaled(upright, 2 * dot(upright, along)));
  }
  uint32_t red = seen.x * 255 >> FRACTION_BITS, green = seen.y * 255 >> FRACTION_BITS, blue = seen.z * 255 >> FRACTION_BITS;
  return red << 16 | green << 8 | blue;
}

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < WIDTH * HEIGHT; i += threads) {
    int32_t column = i % WIDTH, row = i / WIDTH;
    vector eye = {0, ONE / 2, -5 * ONE};
    vector to = {(2 * column + 1 - WIDTH) * ONE / WIDTH, (HEIGHT - 2 * row - 1) * ONE / WIDTH - ONE / 4, ONE * 3 / 2};
    vector along = scaled(to, (ONE << FRACTION_BITS) / root(dot(to, to)));
    picture[i] = trace(eye, along);
  }
  return 0;
}
