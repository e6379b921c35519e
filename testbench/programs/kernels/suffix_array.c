/* Matching with an array of suffixes in order, a thread a query: for each place in the query, how long a beginning of what follows is
 * in the text. The array is the suffix tree's leaves without what is above them; a binary search takes the way that `suffix` has as
 * nodes and edges. Letters that both neighbours share with the query are not compared again (Manber and Myers).
 *
 * Threads diverge as in matching with the tree, in another pattern: they compare unequal numbers of letters, go on in the upper or the
 * lower half, and end early where the rest of the query is found. Loads scatter over text and array. */
#include "heddle.h"

enum { TEXT = 256, MOST_QUERIES = HEDDLE_SIZE(2048, 1024), LENGTH = 6 };

HEDDLE_ARG(uint32_t, count, 0);
/* Letters are 0 to 3; what ends the text is above them. */
HEDDLE_BUFFER(uint8_t, text, TEXT + 1);
/* Where suffixes begin, the least suffix first. */
HEDDLE_BUFFER(uint16_t, suffixes, TEXT);
HEDDLE_BUFFER(uint8_t, queries, MOST_QUERIES * LENGTH);
HEDDLE_BUFFER(uint32_t, lengths, MOST_QUERIES);
HEDDLE_BUFFER(uint8_t, matched, MOST_QUERIES * LENGTH);

static uint32_t longest(const uint8_t *query, uint32_t length) {
  uint32_t low = 0, high = TEXT, low_letters = 0, high_letters = 0, most = 0;
  while (low < high) {
    uint32_t middle = (low + high) / 2, letters = low_letters < high_letters ? low_letters : high_letters;
    const uint8_t *suffix = text + suffixes[middle];
    heddle_converge();
    while (letters < length && suffix[letters] == query[letters]) letters++;
    heddle_converge();
    if (letters > most) most = letters;
    if (letters == length) break;
    if (suffix[letters] > query[letters]) {
      high = middle;
      high_letters = letters;
    } else {
      low = middle + 1;
      low_letters = letters;
    }
    heddle_converge();
  }
  return most;
}

int main(void) {
  uint32_t number = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (number < count) {
    const uint8_t *query = queries + number * LENGTH;
    uint32_t length = lengths[number];
    for (uint32_t start = 0; start < length; start++) {
      matched[number * LENGTH + start] = longest(query + start, length - start);
      heddle_converge();
    }
  }
  heddle_converge();
  return 0;
}
