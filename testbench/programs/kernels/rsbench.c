/* RSBench's lookup of macroscopic cross sections, several lookups a thread (see rsbench.h).
 *
 * Control flow as in the paper's Figure 3: the trip count of the inner loop, over the nuclides of a random material, diverges; prolog and
 * epilog are short. A thread that is done with a material should take the next while the others are still at theirs. */
#include "coarse.h"
#include "rsbench.h"

HEDDLE_ARG(uint32_t, count, 0);

int main(void) {
  uint32_t lookups = count, step = workers();
  HEDDLE_PREDICT(nuclide);
  for (uint32_t i = worker(); i < lookups; i += step) {
    uint32_t state = seeds[i], energy = next(&state) >> 16;
    struct material material = materials[choices[next(&state) >> 24]];
    struct cross_section sum = {0, 0};
    for (uint32_t n = material.first; n < material.end; n++) {
      HEDDLE_RECONVERGE(nuclide);
      struct cross_section nuclide = from_nuclide(entries[n], energy);
      sum.total += nuclide.total;
      sum.absorption += nuclide.absorption;
    }
    heddle_converge();
    store(i, sum, next(&state));
  }
  return 0;
}
