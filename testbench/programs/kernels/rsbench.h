/* Cross sections of materials for neutrons, by the multipole method: the sum over a material's nuclides of what each nuclide's
 * resonance that is nearest to the neutron's energy gives. Materials have from 4 to 321 nuclides, and the one with the most is that of
 * every seventh neutron: numbers and shares are those of the Hoogenboom-Martin reactor, as in the benchmark RSBench. */
#ifndef RSBENCH_H
#define RSBENCH_H

#include "fixed.h"

enum { NUCLIDES = 321, MATERIALS = 12, ENTRIES = 484, CHOICES = 256, MOST_LOOKUPS = HEDDLE_SIZE(2048, 128) };
/* An energy has 16 bits; its highest choose the window of the resonance. */
enum { WINDOWS = 8, TO_WINDOW = 13 };
/* A resonance's shape: from half of the table's length below its centre to that above it. */
enum { SHAPE = 256, TO_SHAPE = 16 };

/* A resonance: its centre, which is in the window, how narrow it is, and what it gives to total and absorption. */
struct resonance {
  uint16_t centre, narrow, total, absorption;
};

/* The first of a material's entries, and the one after the last. An entry is a nuclide and, in the lower half, its density. */
struct material {
  uint32_t first, end;
};

HEDDLE_BUFFER(struct resonance, resonances, NUCLIDES * WINDOWS);
HEDDLE_BUFFER(uint32_t, entries, ENTRIES);
HEDDLE_BUFFER(struct material, materials, MATERIALS);
/* The material of a random number: each as often as it is likely. */
HEDDLE_BUFFER(uint8_t, choices, CHOICES);
HEDDLE_BUFFER(uint16_t, shape, SHAPE);
/* For each lookup: where its random numbers begin, not 0; and the results. A neutron is absorbed or scattered. */
HEDDLE_BUFFER(uint32_t, seeds, MOST_LOOKUPS);
HEDDLE_BUFFER(uint32_t, total, MOST_LOOKUPS);
HEDDLE_BUFFER(uint32_t, absorption, MOST_LOOKUPS);
HEDDLE_BUFFER(uint32_t, absorbed, MOST_LOOKUPS);

struct cross_section {
  uint32_t total, absorption;
};

static inline struct cross_section from_nuclide(uint32_t entry, uint32_t energy) {
  const struct resonance *at = &resonances[(entry >> 16) * WINDOWS + (energy >> TO_WINDOW)];
  int32_t place = ((int32_t)(energy - at->centre) * at->narrow >> TO_SHAPE) + SHAPE / 2;
  uint32_t strength = (entry & 0xffff) * shape[place] >> FRACTION_BITS;
  return (struct cross_section){strength * at->total >> FRACTION_BITS, strength * at->absorption >> FRACTION_BITS};
}

static inline void store(uint32_t lookup, struct cross_section sum, uint32_t random) {
  total[lookup] = sum.total;
  absorption[lookup] = sum.absorption;
  absorbed[lookup] = (random >> 16) * (sum.total >> 16) < sum.absorption;
}

#endif
