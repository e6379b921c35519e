/* RSBench's lookup of macroscopic cross sections, a thread a lookup: `rsbench` before thread coarsening (see rsbench.h).
 *
 * The trip count of the only loop, over the nuclides of a random material, diverges, and there is no loop around it: nothing that a thread
 * could begin while the others are still at theirs. */
#include "coarse.h"
#include "rsbench.h"

HEDDLE_ARG(uint32_t, count, 0);

int main(void) {
  uint32_t i = worker();
  if (i < count) {
    uint32_t state = seeds[i], energy = next(&state) >> 16;
    struct material material = materials[choices[next(&state) >> 24]];
    struct cross_section sum = {0, 0};
    for (uint32_t n = material.first; n < material.end; n++) {
      struct cross_section nuclide = from_nuclide(entries[n], energy);
      sum.total += nuclide.total;
      sum.absorption += nuclide.absorption;
    }
    heddle_converge();
    store(i, sum, next(&state));
  }
  return 0;
}
