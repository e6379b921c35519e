/* Cross sections of materials for neutrons, interpolated between the points of each nuclide's table, as in the benchmark XSBench, several
 * lookups a thread. A grid of all nuclides' energies says where a nuclide's table has an energy, so that only the grid is searched.
 *
 * Control flow as in the paper's XSBench: the inner loop, over the nuclides of a random material, has a trip count that diverges and loads
 * that scatter; a search comes before it, and an expensive epilog, the digest of the results, after it. So it may be better that threads
 * take new work several at once. */
#include "coarse.h"
#include "fixed.h"

enum { NUCLIDES = 68, POINTS = 16, GRID = NUCLIDES * POINTS, GRID_TOP = 1024, REACTIONS = 5 };
enum { MATERIALS = 12, ENTRIES = 197, CHOICES = 256, MOST_LOOKUPS = 4096 };
enum { DIGEST = 5381, TURN = 33 };

/* A line of a nuclide's table: an energy, 2^16 divided by the distance to the next, and what it gives to each reaction. */
struct point {
  uint16_t energy, inverse, reactions[REACTIONS];
} __attribute__((aligned(16)));

/* The first of a material's entries, and the one after the last. An entry is a nuclide and, in the lower half, its density. */
struct material {
  uint32_t first, end;
};

HEDDLE_ARG(uint32_t, count, 0);
HEDDLE_BUFFER(struct point, points, NUCLIDES * POINTS);
/* All energies in order; and for each, of all nuclides, the last of their points that is not above it. */
HEDDLE_BUFFER(uint16_t, grid, GRID);
HEDDLE_BUFFER(uint8_t, nearest, GRID * NUCLIDES);
HEDDLE_BUFFER(uint32_t, entries, ENTRIES);
HEDDLE_BUFFER(struct material, materials, MATERIALS);
/* The material of a random number: each as often as it is likely. */
HEDDLE_BUFFER(uint8_t, choices, CHOICES);
/* For each lookup: where its random numbers begin, not 0; and the results. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_LOOKUPS);
HEDDLE_BUFFER(uint32_t, total, MOST_LOOKUPS);
HEDDLE_BUFFER(uint32_t, digests, MOST_LOOKUPS);

/* The last line of the grid that is not above an energy; the first has the least energy. */
static inline uint32_t search(uint32_t energy) {
  uint32_t line = 0;
  for (uint32_t step = GRID_TOP; step != 0; step >>= 1) {
    if (line + step < GRID && grid[line + step] <= energy) line += step;
    heddle_converge();
  }
  return line;
}

int main(void) {
  uint32_t lookups = count, step = workers();
  HEDDLE_PREDICT(nuclide);
  for (uint32_t i = worker(); i < lookups; i += step) {
    uint32_t state = seeds[i], energy = next(&state) >> 16;
    struct material material = materials[choices[next(&state) >> 24]];
    const uint8_t *line = nearest + search(energy) * NUCLIDES;
    uint32_t sums[REACTIONS] = {0};
    for (uint32_t n = material.first; n < material.end; n++) {
      HEDDLE_RECONVERGE(nuclide);
      uint32_t nuclide = entries[n] >> 16, density = entries[n] & 0xffff;
      const struct point *low = &points[nuclide * POINTS + line[nuclide]], *high = low + 1;
      int32_t part = (energy - low->energy) * low->inverse >> 4;
#pragma GCC unroll 5
      for (uint32_t r = 0; r < REACTIONS; r++) {
        int32_t from = low->reactions[r], to = high->reactions[r];
        sums[r] += density * (from + times(to - from, part)) >> FRACTION_BITS;
      }
    }
    heddle_converge();
    uint32_t digest = DIGEST;
#pragma GCC unroll 5
    for (uint32_t r = 0; r < REACTIONS; r++) {
      for (uint32_t shift = 0; shift < 32; shift += 8) digest = digest * TURN + (sums[r] >> shift & 0xff);
    }
    total[i] = sums[0];
    digests[i] = digest;
  }
  return 0;
}
