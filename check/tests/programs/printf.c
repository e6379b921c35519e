/* Every conversion, from both sides of a branch; then what finds no room. */
#define HEDDLE_PRINT_WORDS 1024
#include "heddle.h"

HEDDLE_ARG(uint32_t, calls, 0);
HEDDLE_BUFFER(char, name, 8) = "thread";

int main(void) {
  uint32_t thread = heddle_block_thread();
  int less = -(int)thread;
  if (calls) {
    for (uint32_t k = 0; k < calls; k++) printf("%u", k);
  } else if (thread & 1) {
    printf("%s %u: %d %i %5d|%-5d|%05d|%+d|% d\n", name, thread, less, less, less, less, less, less, thread);
  } else {
    printf("%x %X %#x %o %c %hhu %hd %lu %.3s %*d %p %% 100%", 0xbeefu, 0xbeefu, thread, 8u, 'a' + thread, 0x1ffu, 0x18000, 7ul, name, 4, thread,
           (void *)0x40);
    printf("no arguments");
    printf("%2000000000d %*d %u", 1, -2000000000, 2, 3);
    printf("two\nlines %f\n", thread);
  }
  return 0;
}
