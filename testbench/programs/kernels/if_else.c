/* An if and its else, in the basic blocks A to D of Example 1 and Figure 7 of thread-block-compaction.txt: three of eight threads go to C, the
 * others to B. */
#include "heddle.h"

enum { CAPACITY = 4096, CHOSEN = 0x61 };

HEDDLE_BUFFER(uint32_t, result, CAPACITY);

int main(void) {
  uint32_t thread = heddle_thread(), x = thread;
  if (!(CHOSEN >> thread % 8 & 1)) {
    x = x * 3 + 5;
    /* Both sides stay branches. */
    __asm__ volatile("" : "+r"(x));
  } else {
    x = x * x + 3;
    __asm__ volatile("" : "+r"(x));
  }
  result[thread] = x;
  return 0;
}
