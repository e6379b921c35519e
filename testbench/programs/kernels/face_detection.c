/* Detection of faces by a cascade of classifiers (Viola and Jones), a thread a window of the picture: each stage weighs more features
 * than the one before, and rejects the windows whose sum is too low. A feature is how much brighter one rectangle is than the
 * other within it, from the picture's integral.
 *
 * Threads diverge as in the paper's FCDT: a window is done at the stage that rejects it, which is an early one for most. */
#include "heddle.h"

enum { ACROSS = 32, MOST_DOWN = HEDDLE_SIZE(64, 16), WINDOW = 16, WIDTH = ACROSS + WINDOW, HEIGHT = MOST_DOWN + WINDOW, STAGES = 6, FEATURES = 27 };

/* From the window's corner to the rectangle's; its width; and its height times WIDTH. */
struct rectangle {
  uint32_t corner, width, height;
};

/* What the sum gains where the contrast is below the threshold, and where it is not. */
struct feature {
  struct rectangle whole, part;
  int32_t part_weight, threshold, below, above;
};

struct stage {
  uint32_t features;
  int32_t least;
};

HEDDLE_ARG(uint32_t, windows, 0);
/* Of the pixels above and left of a place, their sum. */
HEDDLE_BUFFER(uint32_t, integral, WIDTH * HEIGHT);
HEDDLE_BUFFER(struct feature, features, FEATURES);
HEDDLE_BUFFER(struct stage, stages, STAGES);
/* Of each window: stages that it passed, and the sum in the last one it came to. */
HEDDLE_BUFFER(uint32_t, passed, ACROSS * MOST_DOWN);
HEDDLE_BUFFER(int32_t, score, ACROSS * MOST_DOWN);

static int32_t brightness(const uint32_t *window, const struct rectangle *rectangle) {
  const uint32_t *top = window + rectangle->corner, *bottom = top + rectangle->height;
  return top[0] - top[rectangle->width] - bottom[0] + bottom[rectangle->width];
}

int main(void) {
  uint32_t place = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (place < windows) {
    const uint32_t *window = integral + place / ACROSS * WIDTH + place % ACROSS;
    const struct feature *feature = features;
    uint32_t stage = 0;
    int32_t sum;
    do {
      sum = 0;
      for (const struct feature *end = feature + stages[stage].features; feature < end; feature++) {
        int32_t contrast = feature->part_weight * brightness(window, &feature->part) - brightness(window, &feature->whole);
        if (contrast < feature->threshold) sum += feature->below;
        else sum += feature->above;
        heddle_converge();
      }
      if (sum < stages[stage].least) break;
    } while (++stage < STAGES);
    passed[place] = stage;
    score[place] = sum;
  }
  return 0;
}
