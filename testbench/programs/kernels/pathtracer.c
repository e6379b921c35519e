/* Path tracing in fixed point: spheres in a Cornell box whose ceiling shines, several samples of several pixels a thread. A path goes on from
 * what it meets, thrown back by a mirror or in a random direction, until it meets the light, or ends by chance (Russian roulette): what is
 * darker ends more paths, so that one that goes on keeps the brightest of its colours.
 *
 * Control flow as in the paper's PathTracer: the inner loop, over a sample's bounces, has a trip count that diverges, and is most of the
 * work; prolog and epilog are short. A thread whose path has ended should take the next while the others are still on theirs. */
#include "coarse.h"
#include "fixed.h"

enum { WIDTH = 32, HEIGHT = 24, PIXELS = WIDTH * HEIGHT, SPHERES = 3, WALLS = 6, BOUNCES = 16 };
enum { DIRECTIONS = 1024, MOST_SQUARE = ONE };
/* The box goes from -HALF to HALF, but to the front, where the eye is. The light is in the middle of the ceiling, -LIGHT to LIGHT; and
 * a path that ends elsewhere is given what there is of light on the mean. */
enum { HALF = 2 * ONE, FRONT = 4 * ONE, LIGHT = ONE * 3 / 2, BRIGHT = ONE * 9 / 8, AMBIENT = ONE / 4 };
/* Nearer than this a sphere is the one from which the ray comes. */
enum { LEAST_DISTANCE = ONE / 64 };

/* Of 2^16 paths, how many go on; and what they keep of red, green and blue, which are x, y and z. */
struct surface {
  vector colour;
  uint32_t goes_on;
};

struct sphere {
  vector centre;
  int32_t square_radius, inverse_radius, mirror;
  struct surface surface;
};

HEDDLE_ARG(uint32_t, samples, 1);
HEDDLE_BUFFER(struct sphere, spheres, SPHERES);
/* Left and right, floor and ceiling, front and back. */
HEDDLE_BUFFER(struct surface, walls, WALLS);
/* Square roots of numbers from 0 to 1. */
HEDDLE_BUFFER(uint16_t, roots, MOST_SQUARE);
/* Directions of length 1: of each pixel's rays, and random ones. */
HEDDLE_BUFFER(vector, rays, PIXELS);
HEDDLE_BUFFER(vector, directions, DIRECTIONS);
/* For each pixel, where its random numbers begin: not 0. */
HEDDLE_BUFFER(uint32_t, seeds, PIXELS);
/* For each pixel, the sum of its samples. */
HEDDLE_BUFFER(vector, picture, PIXELS);

static inline int32_t size(int32_t a) { return a < 0 ? -a : a; }
/* From a place to the wall before a ray. */
static inline int32_t room(int32_t at, int32_t along, int32_t low, int32_t high) { return along < 0 ? at - low : high - at; }

int main(void) {
  uint32_t of_pixel = samples, step = workers(), pixel = worker(), sample = 0, state = 0;
  vector sum = {0, 0, 0};
  HEDDLE_PREDICT(bounce);
  while (pixel < PIXELS) {
    if (sample == 0) state = seeds[pixel];
    vector from = {0, 0, -FRONT + ONE / 16}, along = rays[pixel], weight = {ONE, ONE, ONE}, seen = {0, 0, 0};
    for (uint32_t bounce = 0; bounce < BOUNCES; bounce++) {
      HEDDLE_RECONVERGE(bounce);
      /* The first wall: of two distances, the products with both divisors are compared. No divisor is 0. */
      int32_t x = room(from.x, along.x, -HALF, HALF), over_x = size(along.x) | 1;
      int32_t y = room(from.y, along.y, -HALF, HALF), over_y = size(along.y) | 1;
      int32_t z = room(from.z, along.z, -FRONT, HALF), over_z = size(along.z) | 1;
      uint32_t axis = 0;
      if (y * over_x < x * over_y) {
        x = y;
        over_x = over_y;
        axis = 1;
      }
      if (z * over_x < x * over_z) {
        x = z;
        over_x = over_z;
        axis = 2;
      }
      heddle_converge();
      int32_t distance = x * ONE / over_x;
      const struct sphere *nearest = 0;
      for (const struct sphere *sphere = spheres; sphere < spheres + SPHERES; sphere++) {
        vector to = minus(sphere->centre, from);
        int32_t middle = dot(to, along), square = times(middle, middle) - dot(to, to) + sphere->square_radius;
        if (square > 0 && middle > 0) {
          int32_t entry = middle - roots[square];
          if (entry > LEAST_DISTANCE && entry < distance) {
            distance = entry;
            nearest = sphere;
          }
        }
        heddle_converge();
      }
      from = plus(from, scaled(along, distance));
      const struct surface *surface;
      vector upright = {0, 0, 0};
      int32_t mirror = 0;
      if (nearest) {
        upright = scaled(minus(from, nearest->centre), nearest->inverse_radius);
        surface = &nearest->surface;
        mirror = nearest->mirror;
      } else if (axis == 0) {
        surface = &walls[along.x > 0];
        upright.x = along.x < 0 ? ONE : -ONE;
        from.x = along.x < 0 ? -HALF : HALF;
      } else if (axis == 1) {
        surface = &walls[2 + (along.y > 0)];
        upright.y = along.y < 0 ? ONE : -ONE;
        from.y = along.y < 0 ? -HALF : HALF;
      } else {
        surface = &walls[4 + (along.z > 0)];
        upright.z = along.z < 0 ? ONE : -ONE;
        from.z = along.z < 0 ? -FRONT : HALF;
      }
      heddle_converge();
      if (surface == &walls[3] && size(from.x) < LIGHT && size(from.z) < LIGHT) {
        seen = scaled(weight, BRIGHT);
        break;
      }
      weight = (vector){times(weight.x, surface->colour.x), times(weight.y, surface->colour.y), times(weight.z, surface->colour.z)};
      uint32_t random = next(&state);
      if (random >> 16 >= surface->goes_on) {
        seen = scaled(weight, AMBIENT);
        break;
      }
      if (mirror) {
        along = minus(along, scaled(upright, 2 * dot(upright, along)));
      } else {
        /* The steeper of two directions of the sphere, away from the surface: its cosine is as likely as it is large (Lambert). */
        vector other = directions[random >> 10 & (DIRECTIONS - 1)];
        along = directions[random & (DIRECTIONS - 1)];
        int32_t cosine = dot(upright, along), other_cosine = dot(upright, other);
        if (size(other_cosine) > size(cosine)) {
          along = other;
          cosine = other_cosine;
        }
        heddle_converge();
        int32_t sign = cosine >> 31;
        along = (vector){(along.x ^ sign) - sign, (along.y ^ sign) - sign, (along.z ^ sign) - sign};
      }
      heddle_converge();
    }
    heddle_converge();
    sum = plus(sum, seen);
    if (++sample == of_pixel) {
      picture[pixel] = sum;
      sum = (vector){0, 0, 0};
      sample = 0;
      pixel += step;
    }
    heddle_converge();
  }
  return 0;
}
