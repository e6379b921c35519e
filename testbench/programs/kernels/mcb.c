/* Transport of particles through a square of zones until the end of a step of time, several particles a thread, as in the Monte Carlo
 * Benchmark: a particle goes on until it collides, comes to the side of its zone, or the time is over. Collisions absorb a part of its
 * weight and turn it; light particles live on by chance.
 *
 * Control flow as in the paper's MCB: the inner loop, over what happens to a particle, has a trip count that diverges; most of its work is
 * common, the three distances, and what follows depends on which is least. A thread whose particle has ended should take the next while the
 * others are still on their way. Additions are atomic and of integers, so their order does not matter. */
#include "coarse.h"
#include "fixed.h"

/* A zone's side is 1. A place has 16 bits for each axis. */
enum { SIDE = 16, ZONES = SIDE * SIDE, ENTRIES = 256, MOST_PARTICLES = 2048 };
enum { WEIGHT = 1 << 16, LEAST_WEIGHT = WEIGHT / 16, CHANCE = 4 };

/* The mean distance of collisions, and of 2^16 of the weight what they leave. */
struct zone {
  uint16_t mean, stays;
};

/* Cosine and sine of an angle, and 1 divided by the size of each. */
struct direction {
  int32_t x, y, inverse_x, inverse_y;
};

HEDDLE_ARG(uint32_t, count, 0);
/* How far particles go until the time is over. */
HEDDLE_ARG(int32_t, census, 0);
HEDDLE_BUFFER(struct zone, zones, ZONES);
HEDDLE_BUFFER(struct direction, directions, ENTRIES);
/* Minus the logarithm of numbers from 0 to 1. */
HEDDLE_BUFFER(uint16_t, logarithm, ENTRIES);
/* For each particle, where its random numbers begin: not 0. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_PARTICLES);
/* Of each zone: weight times the way in it, and the weight that is there in the end. At last, the weight that leaves the square. */
HEDDLE_BUFFER(uint32_t, flux, ZONES);
HEDDLE_BUFFER(uint32_t, left, ZONES + 1);

static inline void score(uint32_t *sum, uint32_t weight) { __atomic_fetch_add(sum, weight, __ATOMIC_RELAXED); }

/* From a place to the side of its zone. */
static inline int32_t to_side(int32_t at, int32_t zone, int32_t along, int32_t inverse) {
  int32_t room = along < 0 ? at - zone * ONE : (zone + 1) * ONE - at;
  return times(room & ~(room >> 31), inverse);
}

int main(void) {
  uint32_t particles = count, step = workers();
  HEDDLE_PREDICT(event);
  for (uint32_t i = worker(); i < particles; i += step) {
    uint32_t state = seeds[i], random = next(&state), weight = WEIGHT;
    int32_t x = random >> 16, y = random & 0xffff, zone_x = x >> FRACTION_BITS, zone_y = y >> FRACTION_BITS, way = census;
    const struct direction *along = &directions[next(&state) >> 24];
    while (weight != 0) {
      HEDDLE_RECONVERGE(event);
      uint32_t number = zone_y * SIDE + zone_x;
      const struct zone *zone = &zones[number];
      int32_t collision = logarithm[next(&state) >> 24] * zone->mean >> FRACTION_BITS;
      int32_t side_x = to_side(x, zone_x, along->x, along->inverse_x);
      int32_t side_y = to_side(y, zone_y, along->y, along->inverse_y);
      int32_t side = side_x < side_y ? side_x : side_y, distance = collision < side ? collision : side;
      distance = way < distance ? way : distance;
      x += times(along->x, distance);
      y += times(along->y, distance);
      way -= distance;
      score(&flux[number], (weight >> 4) * (uint32_t)distance >> FRACTION_BITS);
      if (way == 0) {
        score(&left[number], weight);
        weight = 0;
      } else if (distance == collision) {
        weight = weight * zone->stays >> 16;
        along = &directions[next(&state) >> 24];
        if (weight < LEAST_WEIGHT) weight = next(&state) % CHANCE == 0 ? weight * CHANCE : 0;
      } else {
        if (side_x < side_y) {
          zone_x += along->x < 0 ? -1 : 1;
          x = (zone_x + (along->x < 0)) * ONE;
        } else {
          zone_y += along->y < 0 ? -1 : 1;
          y = (zone_y + (along->y < 0)) * ONE;
        }
        heddle_converge();
        if ((uint32_t)zone_x >= SIDE || (uint32_t)zone_y >= SIDE) {
          score(&left[ZONES], weight);
          weight = 0;
        }
      }
      heddle_converge();
    }
    heddle_converge();
  }
  return 0;
}
