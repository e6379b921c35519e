/* Rays through a tree of boxes around spheres, several rays a thread: which sphere each meets first. The tree's nodes lie in the order of a
 * walk from the root, and each says where the walk goes on if the ray misses its box, so that there is no stack.
 *
 * In place of the paper's OptiX, which cannot be had: control flow as in any ray tracer's traversal. The inner loop, over nodes, has a trip
 * count that diverges, from one node to many, and loads that scatter; prolog and epilog are short. A thread whose ray is done should take
 * the next while the others are still on their way. */
#include "coarse.h"
#include "fixed.h"

enum { SPHERES = 64, NODES = 2 * SPHERES - 1, MOST_RAYS = HEDDLE_SIZE(4096, 256), MOST_SQUARE = ONE };
/* What no ray reaches; a result is a distance and, in the lowest bits, the sphere. */
enum { FAR = 1 << 17, SPHERE_BITS = 6, NONE = FAR << SPHERE_BITS };
/* No part of a direction is less, so that products with 1 divided by it fit in 32 bits. */
enum { LEAST_PART = ONE / 24 };

/* A box, where to go on if it is missed, and a leaf's sphere, or `SPHERES`. */
struct node {
  int16_t low[3], high[3];
  uint16_t behind, sphere;
};

struct sphere {
  vector centre;
  int32_t square_radius;
};

struct ray {
  vector from, along;
};

HEDDLE_ARG(uint32_t, count, 0);
HEDDLE_BUFFER(struct node, nodes, NODES);
HEDDLE_BUFFER(struct sphere, spheres, SPHERES);
/* Square roots of numbers from 0 to 1. */
HEDDLE_BUFFER(uint16_t, roots, MOST_SQUARE);
HEDDLE_BUFFER(struct ray, rays, MOST_RAYS);
HEDDLE_BUFFER(uint32_t, met, MOST_RAYS);

static inline int32_t least(int32_t a, int32_t b) { return b + ((a - b) & ((a - b) >> 31)); }
static inline int32_t most(int32_t a, int32_t b) { return a - ((a - b) & ((a - b) >> 31)); }

static inline int32_t inverse(int32_t part) {
  int32_t sign = part >> 31, size = (part ^ sign) - sign;
  return ((ONE * ONE / most(size, LEAST_PART)) ^ sign) - sign;
}

int main(void) {
  uint32_t all = count, step = workers();
  HEDDLE_PREDICT(node);
  for (uint32_t i = worker(); i < all; i += step) {
    vector from = rays[i].from, along = rays[i].along, over = {inverse(along.x), inverse(along.y), inverse(along.z)};
    uint32_t result = NONE, at = 0;
    while (at < NODES) {
      HEDDLE_RECONVERGE(node);
      const struct node *node = &nodes[at];
      int32_t x0 = times(node->low[0] - from.x, over.x), x1 = times(node->high[0] - from.x, over.x);
      int32_t y0 = times(node->low[1] - from.y, over.y), y1 = times(node->high[1] - from.y, over.y);
      int32_t z0 = times(node->low[2] - from.z, over.z), z1 = times(node->high[2] - from.z, over.z);
      int32_t enters = most(most(least(x0, x1), least(y0, y1)), most(least(z0, z1), 0));
      int32_t leaves = least(least(most(x0, x1), most(y0, y1)), least(most(z0, z1), result >> SPHERE_BITS));
      if (enters > leaves) {
        at = node->behind;
      } else {
        at++;
        uint32_t number = node->sphere;
        if (number < SPHERES) {
          const struct sphere *sphere = &spheres[number];
          vector to = minus(sphere->centre, from);
          int32_t middle = dot(to, along), square = times(middle, middle) - dot(to, to) + sphere->square_radius;
          if (square > 0) {
            int32_t entry = middle - roots[square];
            uint32_t this = (uint32_t)entry << SPHERE_BITS | number;
            if (entry > 0 && this < result) result = this;
          }
        }
      }
      heddle_converge();
    }
    heddle_converge();
    met[i] = result;
  }
  return 0;
}
