/* Matching with a suffix tree, a thread a query: for each place in the query, how long a beginning of what follows is in the text.
 * From one place to the next a match loses its first letter, and the suffix link of its node leads there (Chang and Lawler).
 *
 * Threads diverge as in MUMmerGPU: they are at different depths of the tree, at a node, where a letter chooses the edge, or on an edge,
 * where a letter is compared. Both are work, so the branch is interleavable; and from both a `break` leaves the loop, at a node without
 * the letter's child and at a letter that differs. So threads that go on can meet at the end of the loop only, which is no RPC but a
 * point of likely convergence. Loads scatter over the tree. */
#include "heddle.h"

enum { TEXT = 512, NODES = 2 * TEXT, LETTERS = 4, MOST_QUERIES = HEDDLE_SIZE(2048, 128), LENGTH = 32 };

/* The letters from the root to a node are text[start] and what follows, `depth` of them. */
struct node {
  uint16_t start, depth, link, child[LETTERS];
} __attribute__((aligned(16)));

HEDDLE_ARG(uint32_t, count, 0);
/* Letters are 0 to 3. Node 0 is the root, which is nobody's child: 0 is no child. */
HEDDLE_BUFFER(uint8_t, text, TEXT);
HEDDLE_BUFFER(struct node, nodes, NODES);
/* Letter 0 of all queries, then letter 1; and so the results. */
HEDDLE_BUFFER(uint8_t, queries, LENGTH * MOST_QUERIES);
HEDDLE_BUFFER(uint32_t, lengths, MOST_QUERIES);
HEDDLE_BUFFER(uint8_t, matched, LENGTH * MOST_QUERIES);

static void match(const uint8_t *query, uint32_t length, uint8_t *results) {
  /* The match ends at node `above`, or on the edge from there to `below`. */
  uint32_t above = 0, below = 0, letters = 0;
  for (uint32_t start = 0; start < length; start++) {
    for (; start + letters < length; letters++) {
      uint32_t letter = query[(start + letters) * MOST_QUERIES];
      if (letters == nodes[above].depth) {
        uint32_t child = nodes[above].child[letter];
        if (child == 0) break;
        below = child;
      } else {
        if (text[nodes[below].start + letters] != letter) break;
      }
      heddle_converge();
      /* Without a branch, so that the loop's last block begins where the sides end. */
      uint32_t arrived = -(uint32_t)(letters + 1 == nodes[below].depth);
      above ^= (above ^ below) & arrived;
    }
    results[start * MOST_QUERIES] = letters;
    if (letters == 0) continue;
    letters--;
    above = nodes[above].link;
    while (nodes[above].depth < letters) {
      below = nodes[above].child[query[(start + 1 + nodes[above].depth) * MOST_QUERIES]];
      if (nodes[below].depth > letters) break;
      above = below;
    }
    heddle_converge();
  }
}

int main(void) {
  uint32_t i = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (i < count) match(queries + i, lengths[i], matched + i);
  return 0;
}
