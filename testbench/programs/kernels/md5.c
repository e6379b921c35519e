/* MD5 (RFC 1321) of short messages, a thread a message. Coherent: all threads take the same 64 steps. */
#include "heddle.h"
#include "md5.h"

enum { MOST_MESSAGES = HEDDLE_SIZE(2048, 256), WORDS = 16, STEPS = 64 };

HEDDLE_ARG(uint32_t, count, 0);
/* Word 0 of all messages, then word 1. Each is a block, with what the standard puts behind a message. */
HEDDLE_BUFFER(uint32_t, messages, WORDS * MOST_MESSAGES);
/* What each step adds. */
HEDDLE_BUFFER(uint32_t, sines, STEPS);
/* Word 0 of all digests, then word 1. */
HEDDLE_BUFFER(uint32_t, digests, 4 * MOST_MESSAGES);

/* The standard's names: of functions, and of the four words of the digest. */
#define STEP(function, a, b, c, d, by)                                                   \
  a = b + rotated(a + function(b, c, d) + message[word % WORDS * MOST_MESSAGES] + *sine, by); \
  sine++;                                                                                \
  word += stride;

#define ROUND(function, first, step, by0, by1, by2, by3)                \
  for (uint32_t word = first, stride = step, n = 0; n < WORDS; n += 4) { \
    STEP(function, a, b, c, d, by0)                                     \
    STEP(function, d, a, b, c, by1)                                     \
    STEP(function, c, d, a, b, by2)                                     \
    STEP(function, b, c, d, a, by3)                                     \
  }

int main(void) {
  uint32_t number = heddle_block() * heddle_block_threads() + heddle_block_thread();
  if (number < count) {
    const uint32_t *message = messages + number, *sine = sines;
    uint32_t a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
    ROUND(f, 0, 1, 7, 12, 17, 22)
    ROUND(g, 1, 5, 5, 9, 14, 20)
    ROUND(h, 5, 3, 4, 11, 16, 23)
    ROUND(i, 0, 7, 6, 10, 15, 21)
    digests[number] = a + 0x67452301;
    digests[MOST_MESSAGES + number] = b + 0xefcdab89;
    digests[2 * MOST_MESSAGES + number] = c + 0x98badcfe;
    digests[3 * MOST_MESSAGES + number] = d + 0x10325476;
  }
  heddle_converge();
  return 0;
}
