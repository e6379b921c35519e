/* Matching with a suffix tree, a thread a query: for each place in the query, how long a beginning of what follows is in the text.
 * From one place to the next a match loses its first letter, and the suffix link of its node leads there (Chang and Lawler).
 *
 * Threads diverge as in the paper's MUMmerGPU++: they are at different depths of the tree, at a node, where a letter chooses the edge,
 * or on an edge, where a letter is compared. Both are work, so the branch is interleavable. Loads scatter over the tree. */
#include "heddle.h"

enum { TEXT = 512, NODES = 2 * TEXT, LETTERS = 4, QUERIES = 192, LENGTH = 48 };

/* The letters from the root to a node are text[start] and what follows, `depth` of them. */
struct node {
  uint16_t start, depth, link, child[LETTERS];
} __attribute__((aligned(16)));

/* Letters are 0 to 3. Node 0 is the root, which is nobody's child: 0 is no child. */
HEDDLE_BUFFER(uint8_t, text, TEXT);
HEDDLE_BUFFER(struct node, nodes, NODES);
HEDDLE_BUFFER(uint8_t, queries, QUERIES * LENGTH);
HEDDLE_BUFFER(uint32_t, lengths, QUERIES);
HEDDLE_BUFFER(uint32_t, matched, QUERIES * LENGTH);

static void match(const uint8_t *query, uint32_t length, uint32_t *results) {
  /* The match ends at node `above`, or on the edge from there to `below`. */
  uint32_t above = 0, below = 0, letters = 0;
  for (uint32_t start = 0; start < length; start++) {
    for (; start + letters < length; letters++) {
      uint32_t letter = query[start + letters], depth = nodes[above].depth;
      int goes_on;
      if (letters == depth) {
        below = nodes[above].child[letter];
        goes_on = below != 0;
      } else {
        goes_on = text[nodes[below].start + letters] == letter;
      }
      heddle_converge();
      if (!goes_on) break;
      if (letters + 1 == nodes[below].depth) above = below;
      heddle_converge();
    }
    results[start] = letters;
    if (letters == 0) continue;
    letters--;
    above = nodes[above].link;
    while (nodes[above].depth < letters) {
      below = nodes[above].child[query[start + 1 + nodes[above].depth]];
      if (nodes[below].depth > letters) break;
      above = below;
    }
    heddle_converge();
  }
}

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < QUERIES; i += threads) match(queries + i * LENGTH, lengths[i], matched + i * LENGTH);
  return 0;
}
