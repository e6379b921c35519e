/* X-rays through a body of voxels, several photons a thread, as in MC-GPU: which photons reach the detector, and how much energy stays in
 * which voxel. A step is as long as if all were the densest material (Woodcock): where it ends in a thinner one, the photon most often goes
 * on as if nothing had happened. Else it is absorbed or scattered.
 *
 * Control flow as in the paper's MC-GPU: in a loop over steps, which is short, a condition that diverges, with expensive code behind it.
 * Threads for which it is true in different steps should wait for each other there, but not for all: steps cost about as much as what they
 * lead to. Additions are atomic and of integers, so their order does not matter. */
#include "coarse.h"
#include "fixed.h"

/* A voxel's side is 1. A place has 16 bits for each axis. */
enum { SIDE_BITS = 4, VOXELS = 1 << 3 * SIDE_BITS, PIXELS = 1 << 2 * SIDE_BITS, PLACE_BITS = FRACTION_BITS + SIDE_BITS };
enum { MATERIALS = 3, ENERGIES = 128, ENTRIES = 256, MOST_PHOTONS = 4096 };
/* Energies are in keV. An electron's rest energy; and what is absorbed at once. */
enum { ELECTRON = 511, LEAST_ENERGY = 8 };
/* From the size of a cosine to the entry of a table. */
enum { TO_ENTRY = FRACTION_BITS - 8 };

/* Of a material, for an energy: of 2^16 ends of steps, how many change the photon; and of 2^16 of those, how many absorb it, and how many
 * absorb it or change no more than its direction. */
struct interaction {
  uint16_t real, absorb, turn;
};

HEDDLE_ARG(uint32_t, count, 0);
HEDDLE_BUFFER(uint8_t, voxels, VOXELS);
HEDDLE_BUFFER(struct interaction, interactions, MATERIALS * ENERGIES);
/* The mean length of a step, by energy; and minus the logarithm of numbers from 0 to 1. */
HEDDLE_BUFFER(uint16_t, steps, ENERGIES);
HEDDLE_BUFFER(uint16_t, logarithm, ENTRIES);
/* Energies of the tube's photons, all as likely; cosines of the angles by which light atoms turn photons, all as likely; and cosines of
 * all angles around a direction. */
HEDDLE_BUFFER(uint8_t, spectrum, ENTRIES);
HEDDLE_BUFFER(int16_t, forward, ENTRIES);
HEDDLE_BUFFER(int16_t, around, ENTRIES);
/* By the size of a cosine: the sine, and 1 divided by it. */
HEDDLE_BUFFER(uint16_t, sine, ENTRIES + 1);
HEDDLE_BUFFER(uint32_t, inverse_sine, ENTRIES + 1);
/* For each photon, where its random numbers begin: not 0. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_PHOTONS);
/* Energy that reaches each pixel, or at last none of them; and that stays in each voxel. */
HEDDLE_BUFFER(uint32_t, image, PIXELS + 1);
HEDDLE_BUFFER(uint32_t, dose, VOXELS);

static inline void score(uint32_t *sum, uint32_t energy) { __atomic_fetch_add(sum, energy, __ATOMIC_RELAXED); }

static inline uint32_t entry(int32_t cosine) {
  uint32_t size = (cosine < 0 ? -cosine : cosine) >> TO_ENTRY;
  return size < ENTRIES ? size : ENTRIES;
}

/* A direction after it is turned, around which depends on chance. */
static inline vector turned(vector along, int32_t cosine, uint32_t random) {
  int32_t east = around[random & (ENTRIES - 1)], north = around[(random - ENTRIES / 4) & (ENTRIES - 1)];
  uint32_t steep = entry(along.z);
  int32_t across = sine[entry(cosine)], part = times(across, inverse_sine[steep]), height = times(along.z, east);
  vector now = {times(along.x, cosine) + times(part, times(along.x, height) - times(along.y, north)),
                times(along.y, cosine) + times(part, times(along.y, height) + times(along.x, north)),
                times(along.z, cosine) - times(times(across, east), sine[steep])};
  /* To length 1 again, by a step of Newton's method. */
  return scaled(now, (3 * ONE - dot(now, now)) / 2);
}

int main(void) {
  uint32_t photons = count, step = workers();
  HEDDLE_PREDICT(interaction, 8);
  for (uint32_t i = worker(); i < photons; i += step) {
    uint32_t state = seeds[i], random = next(&state), energy = spectrum[next(&state) >> 24];
    vector at = {0, random >> 16, random & 0xffff}, along = {ONE, 0, 0};
    while (energy != 0) {
      uint32_t length = (uint32_t)logarithm[next(&state) >> 24] * steps[energy] >> FRACTION_BITS;
      at = plus(at, scaled(along, length));
      if ((uint32_t)(at.x | at.y | at.z) >> PLACE_BITS != 0) {
        uint32_t seen = at.x > 0 && (uint32_t)(at.y | at.z) >> PLACE_BITS == 0;
        score(&image[seen ? (at.y >> FRACTION_BITS) << SIDE_BITS | at.z >> FRACTION_BITS : PIXELS], energy);
        break;
      }
      uint32_t voxel = ((at.x >> FRACTION_BITS) << SIDE_BITS | at.y >> FRACTION_BITS) << SIDE_BITS | at.z >> FRACTION_BITS;
      const struct interaction *odds = &interactions[voxels[voxel] * ENERGIES + energy];
      if (next(&state) >> 16 < odds->real) {
        HEDDLE_RECONVERGE(interaction);
        uint32_t kind = next(&state) >> 16, angle = next(&state), left = 0;
        if (kind >= odds->absorb) {
          /* Scattered by an atom, or by an electron (Compton), which takes of the energy. */
          int32_t cosine = forward[angle >> 24];
          left = energy;
          if (kind >= odds->turn) {
            cosine = (int32_t)(angle >> 19) - ONE;
            left = energy * (ELECTRON * ONE) / (ELECTRON * ONE + energy * (ONE - cosine));
            if (left < LEAST_ENERGY) left = 0;
          }
          heddle_converge();
          along = turned(along, cosine, angle);
        }
        heddle_converge();
        if (left != energy) score(&dose[voxel], energy - left);
        energy = left;
      }
      heddle_converge();
    }
    heddle_converge();
  }
  return 0;
}
