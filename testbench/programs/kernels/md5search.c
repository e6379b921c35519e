/* Searches for messages by their MD5 digest, several searches a thread, each through candidates of its own number. A candidate is a
 * message of four letters: only the first word of the block differs. The last 15 steps do not use it, so they are undone once, for the
 * digest, and a candidate takes 49 steps.
 *
 * Control flow as in the paper's MeiyaMD5: the inner loop, over candidates, is long and its trip count diverges, since a search ends where
 * it finds; prolog and epilog are short. */
#include "coarse.h"
#include "md5.h"

enum { WORDS = 16, STEPS = 64, MOST_SEARCHES = HEDDLE_SIZE(2048, 256) };
/* Behind the letters the standard puts a one and zeros, and the length in bits as the last word but one. */
enum { LETTERS = 4, END = 0x80, LENGTH_WORD = 14 };

HEDDLE_ARG(uint32_t, count, 0);
/* What each step adds. */
HEDDLE_BUFFER(uint32_t, sines, STEPS);
/* Word 0 of all digests, then word 1; and for each search its first candidate, how many it has, and how many it rejected. */
HEDDLE_BUFFER(uint32_t, digests, 4 * MOST_SEARCHES);
HEDDLE_BUFFER(uint32_t, first, MOST_SEARCHES);
HEDDLE_BUFFER(uint32_t, candidates, MOST_SEARCHES);
HEDDLE_BUFFER(uint32_t, rejected, MOST_SEARCHES);

/* The standard's state, after the steps that are said. */
struct state {
  uint32_t a, b, c, d;
};

static const struct state START = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

/* The letters of a candidate, 'a' to 'p': four bits each. */
static inline uint32_t letters(uint32_t candidate) {
  uint32_t bytes = (candidate | candidate << 8) & 0x00ff00ff;
  return ((bytes | bytes << 4) & 0x0f0f0f0f) + 0x61616161;
}

static inline uint32_t word(uint32_t number, uint32_t first_word) {
  return number == 0 ? first_word : number == 1 ? END : number == LENGTH_WORD ? 8 * LETTERS : 0;
}

/* Four steps of one function, which take words from `at` on, `by` apart. */
#define STEPS_OF(function, n, at, by, s0, s1, s2, s3)                                                            \
  a = b + rotated(a + function(b, c, d) + word((at) % WORDS, first_word) + sines[n], s0);                        \
  d = a + rotated(d + function(a, b, c) + word(((at) + (by)) % WORDS, first_word) + sines[(n) + 1], s1);         \
  c = d + rotated(c + function(d, a, b) + word(((at) + 2 * (by)) % WORDS, first_word) + sines[(n) + 2], s2);     \
  b = c + rotated(b + function(c, d, a) + word(((at) + 3 * (by)) % WORDS, first_word) + sines[(n) + 3], s3);

#define ROUND(function, n, at, by, s0, s1, s2, s3)                        \
  STEPS_OF(function, n, at, by, s0, s1, s2, s3)                           \
  STEPS_OF(function, (n) + 4, (at) + 4 * (by), by, s0, s1, s2, s3)        \
  STEPS_OF(function, (n) + 8, (at) + 8 * (by), by, s0, s1, s2, s3)        \
  STEPS_OF(function, (n) + 12, (at) + 12 * (by), by, s0, s1, s2, s3)

/* After the first 49 steps: the last that uses the first word. */
static inline struct state hashed(uint32_t first_word) {
  uint32_t a = START.a, b = START.b, c = START.c, d = START.d;
  ROUND(f, 0, 0, 1, 7, 12, 17, 22)
  ROUND(g, 16, 1, 5, 5, 9, 14, 20)
  ROUND(h, 32, 5, 3, 4, 11, 16, 23)
  a = b + rotated(a + i(b, c, d) + first_word + sines[48], 6);
  return (struct state){a, b, c, d};
}

/* From after the last step to after the 49th. */
static inline struct state undone(struct state s) {
  static const uint8_t shifts[4] = {6, 10, 15, 21};
#pragma GCC unroll 15
  for (uint32_t n = STEPS - 1; n > 48; n--) {
    uint32_t b = s.c, c = s.d, d = s.a;
    uint32_t a = rotated(s.b - b, 32 - shifts[n % 4]) - i(b, c, d) - word(7 * n % WORDS, 0) - sines[n];
    s = (struct state){a, b, c, d};
  }
  /* `hashed` renames the words instead of moving them. */
  return (struct state){s.b, s.c, s.d, s.a};
}

int main(void) {
  uint32_t searches = count, step = workers();
  HEDDLE_PREDICT(candidate);
  for (uint32_t number = worker(); number < searches; number += step) {
    const uint32_t *digest = digests + number;
    struct state end = {digest[0] - START.a, digest[MOST_SEARCHES] - START.b, digest[2 * MOST_SEARCHES] - START.c,
                        digest[3 * MOST_SEARCHES] - START.d};
    struct state wanted = undone(end);
    uint32_t from = first[number], most = candidates[number], tried = 0;
    for (; tried < most; tried++) {
      HEDDLE_RECONVERGE(candidate);
      struct state s = hashed(letters(from + tried));
      if (((s.a ^ wanted.a) | (s.b ^ wanted.b) | (s.c ^ wanted.c) | (s.d ^ wanted.d)) == 0) break;
    }
    heddle_converge();
    rejected[number] = tried;
  }
  return 0;
}
