/* Where a word first occurs in each of many lines of text: byte loads, early exits, calls. */
#include "heddle.h"

enum { LINES = HEDDLE_SIZE(512, 256), WIDTH = 64, LONGEST = 16 };

HEDDLE_BUFFER(char, word, LONGEST);
HEDDLE_BUFFER(char, text, LINES * WIDTH);
/* Column of the first occurrence, -1 if there is none; both strings end with a zero byte. */
HEDDLE_BUFFER(int16_t, column, LINES);
HEDDLE_BUFFER(uint8_t, found, LINES);

static __attribute__((noinline)) int starts_with(const char *line, const char *prefix) {
  while (*prefix)
    if (*line++ != *prefix++) return 0;
  return 1;
}

static int find(const char *line, const char *wanted) {
  for (int i = 0; line[i]; i++)
    if (starts_with(line + i, wanted)) return i;
  return -1;
}

int main(void) {
  uint32_t threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < LINES; i += threads) {
    int at = find(text + i * WIDTH, word);
    column[i] = at;
    found[i] = at >= 0;
  }
  return 0;
}
