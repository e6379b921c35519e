/* Persistent threads and a queue of work: one thread of each warp, its manager, takes as many searches from the queue as the warp has
 * lanes, until none is left. A search finds the rectangles of a scene that a window overlaps, the first few, by a hierarchy of boxes.
 *
 * Threads diverge as in the paper's NVRT: manager and workers part; a search goes on in the hierarchy or compares the rectangles of a
 * leaf; and searches are of unequal length. A search that has found as many as it wants leaves the leaf by a `break`, as a ray that has
 * hit something: so the end of the loop over rectangles is no RPC but a point of likely convergence. The paper's workers wait for their manager because a stack has them wait where the manager
 * meets them. That is not so with every mechanism: here all wait at a barrier. */
#include "heddle.h"

enum { MOST_SEARCHES = HEDDLE_SIZE(4096, 1024), RECTANGLES = 128, LEAF = 4, NODES = 2 * RECTANGLES / LEAF - 1, MOST_WARPS = 64, WANTED = 2 };

/* Without right and bottom. */
struct rectangle {
  int16_t left, top, right, bottom;
};

/* The box around what is below the node. The child or leaf that comes first follows the node; `next` follows all that is below.
 * The first rectangle of a leaf, or -1. */
struct node {
  struct rectangle box;
  int16_t next, first;
};

HEDDLE_ARG(uint32_t, searches, 0);
HEDDLE_BUFFER(struct node, nodes, NODES);
HEDDLE_BUFFER(struct rectangle, rectangles, RECTANGLES);
HEDDLE_BUFFER(struct rectangle, windows, MOST_SEARCHES);
/* Sums of the numbers of the rectangles that are found, counted from 1. */
HEDDLE_BUFFER(uint32_t, found, MOST_SEARCHES);
/* The first search that nobody has taken. */
HEDDLE_BUFFER(uint32_t, queue, 1);
/* The first search of each warp, in even and in odd turns: a manager may be a turn ahead of its workers. */
HEDDLE_SHARED(uint32_t, taken, 2 * MOST_WARPS);

static int overlap(struct rectangle a, struct rectangle b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

static uint32_t search(struct rectangle window) {
  uint32_t sum = 0, at = 0, wanted = WANTED;
  while (at < NODES) {
    int32_t first = -1;
    while (at < NODES && first < 0) {
      if (overlap(nodes[at].box, window)) {
        first = nodes[at].first;
        at++;
      } else {
        at = nodes[at].next;
      }
      heddle_converge();
    }
    heddle_converge();
    if (first >= 0) {
      for (int32_t i = first; i < first + LEAF; i++) {
        if (overlap(rectangles[i], window)) {
          sum += i + 1;
          if (--wanted == 0) {
            at = NODES;
            break;
          }
        }
        heddle_converge();
      }
    }
    heddle_converge();
  }
  return sum;
}

int main(void) {
  uint32_t lanes = HEDDLE_CSR(HEDDLE_CSR_LANES), lane = HEDDLE_CSR(HEDDLE_CSR_LANE), warp = heddle_block_thread() / lanes;
  uint32_t count = searches;
  for (uint32_t turn = 0;; turn ^= MOST_WARPS) {
    uint32_t *firsts = taken + turn;
    if (lane == 0) firsts[warp] = __atomic_fetch_add(queue, lanes, __ATOMIC_RELAXED);
    heddle_barrier();
    uint32_t number = firsts[warp] + lane;
    if (number < count) found[number] = search(windows[number]);
    heddle_converge();
    /* For all of the block or none, as some at a barrier would wait for those who left. Others may have taken the last searches
     * in this turn, but nobody takes one in a later turn. */
    if (firsts[0] >= count) return 0;
  }
}
