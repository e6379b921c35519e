/* Photons that wander through layers of tissue until they are absorbed or leave it, a thread a photon: how much of their weight ends
 * where. The layers have no sides, so of a photon's place and direction only depth and its cosine matter. A step of random length
 * that would leave the layer ends at its edge; the next is as long as any other, since the exponential distribution has no memory.
 *
 * Threads diverge as in the paper's MCML: a step ends in the layer or at its edge, and there is much to do in both cases, so the
 * branch is interleavable; and photons live for unequal times. Additions are atomic and of integers, so their order does not matter. */
#include "fixed.h"

enum { PHOTONS = 320, LAYERS = 3, BINS = 32, ENTRIES = 256 };
/* Depths are in units of 2^-16 mm, weights of 2^-16; sines, cosines and steps of 2^-12. */
enum { WEIGHT = 1 << 16, BIN_BITS = 12 };
/* Of photons whose weight falls below the least, one in `CHANCE` lives on, with that many times the weight. */
enum { LEAST_WEIGHT = WEIGHT / 64, CHANCE = 8 };
/* The logarithm of 2; and from a sine or cosine to the entry of a table. */
enum { LOG_2 = 2839, TO_ENTRY = FRACTION_BITS - 8 };

/* A layer's lower edge, the mean length of a step, and the part of the weight that is scattered, not absorbed, at its end. */
struct layer {
  uint32_t edge, step, scattered;
};

HEDDLE_BUFFER(struct layer, layers, LAYERS);
/* Where each photon's random numbers begin: not 0. */
HEDDLE_BUFFER(uint32_t, seeds, PHOTONS);
/* Minus the logarithm of numbers from 1/2 to 1. */
HEDDLE_BUFFER(uint16_t, logarithm, ENTRIES);
/* Cosines of the angles by which photons are scattered, all as likely; and of all angles around the old direction. */
HEDDLE_BUFFER(int16_t, scattering, ENTRIES);
HEDDLE_BUFFER(int16_t, around, ENTRIES);
/* By the size of a cosine: the sine; and how many of 2^16 photons the surface throws back. */
HEDDLE_BUFFER(uint16_t, sine, ENTRIES + 1);
HEDDLE_BUFFER(uint32_t, mirrored, ENTRIES + 1);
/* Weight that is absorbed, by depth; and that leaves above and below. */
HEDDLE_BUFFER(uint32_t, absorbed, BINS);
HEDDLE_BUFFER(uint32_t, left, 2);

static void score(uint32_t *sum, uint32_t weight) { __atomic_fetch_add(sum, weight, __ATOMIC_RELAXED); }

/* Length of a step, exponentially distributed. */
static uint32_t step(uint32_t random) {
  uint32_t length = 0;
  for (; random >> 31 == 0; random <<= 1) length += LOG_2;
  return length + logarithm[random >> 23 & (ENTRIES - 1)];
}

static int32_t scatter(int32_t cosine, uint32_t random) {
  int32_t turn = scattering[random & (ENTRIES - 1)], aside = around[random >> 8 & (ENTRIES - 1)];
  uint32_t steepness = cosine < 0 ? -cosine : cosine, turned = turn < 0 ? -turn : turn;
  int32_t across = sine[steepness >> TO_ENTRY] * sine[turned >> TO_ENTRY] >> FRACTION_BITS;
  int32_t now = (cosine * turn + across * aside) >> FRACTION_BITS;
  return now > ONE ? ONE : now < -ONE ? -ONE : now;
}

static void wander(uint32_t random) {
  uint32_t depth = 0, weight = WEIGHT, at = 0;
  int32_t cosine = ONE;
  while (weight != 0) {
    uint32_t steepness = cosine < 0 ? -cosine : cosine;
    uint32_t length = (step(next(&random)) * layers[at].step >> FRACTION_BITS) * steepness >> FRACTION_BITS;
    uint32_t above = at == 0 ? 0 : layers[at - 1].edge, below = layers[at].edge;
    uint32_t room = cosine < 0 ? depth - above : below - depth;
    if (length < room) {
      depth = cosine < 0 ? depth - length : depth + length;
      uint32_t stays = weight * layers[at].scattered >> 16;
      score(&absorbed[depth >> BIN_BITS], weight - stays);
      weight = stays;
      cosine = scatter(cosine, next(&random));
      if (weight < LEAST_WEIGHT) weight = next(&random) % CHANCE == 0 ? weight * CHANCE : 0;
    } else {
      depth = cosine < 0 ? above : below;
      uint32_t surface = cosine < 0 ? 0 : LAYERS - 1;
      if (at != surface) {
        at = cosine < 0 ? at - 1 : at + 1;
      } else if (next(&random) >> 16 < mirrored[steepness >> TO_ENTRY]) {
        cosine = -cosine;
      } else {
        score(&left[cosine > 0], weight);
        weight = 0;
      }
    }
    heddle_converge();
  }
}

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < PHOTONS; i += threads) wander(seeds[i]);
  return 0;
}
