/* Quicksort of many lists, a block a list: its threads part a range together, smaller to one end and larger to the other.
 *
 * Threads diverge at each comparison with the pivot, as in the paper's QSort: to move an element down and to move it up are both
 * work, so the branch is interleavable. What is pushed and popped is the same in all threads of a block. */
#include "heddle.h"

enum { MOST_LISTS = HEDDLE_SIZE(32, 12), LENGTH = 128, THREADS = 64, SMALL = 24, DEPTH = 8 };

HEDDLE_BUFFER(uint32_t, data, MOST_LISTS * LENGTH);
HEDDLE_BUFFER(uint32_t, moved, MOST_LISTS * LENGTH);
/* Of each thread of a block: elements that it moves down, and up. */
HEDDLE_BUFFER(uint32_t, below, MOST_LISTS * THREADS);
HEDDLE_BUFFER(uint32_t, above, MOST_LISTS * THREADS);

int main(void) {
  uint32_t block = heddle_block(), thread = heddle_block_thread(), threads = heddle_block_threads();
  uint32_t *list = data + block * LENGTH, *other = moved + block * LENGTH;
  uint32_t *downs = below + block * THREADS, *ups = above + block * THREADS;
  uint32_t from = 0, to = LENGTH, depth = 0;
  /* The shorter part goes first, so no more than log2(LENGTH / SMALL) wait. */
  struct { uint32_t from, to; } waiting[DEPTH];
  for (;;) {
    if (to - from <= SMALL) {
      for (uint32_t i = from + thread; i < to; i += threads) {
        uint32_t value = list[i], place = from;
        for (uint32_t k = from; k < to; k++)
          if (list[k] < value || (list[k] == value && k < i)) place++;
        other[place] = value;
      }
      heddle_barrier();
      for (uint32_t i = from + thread; i < to; i += threads) list[i] = other[i];
      heddle_barrier();
      if (depth == 0) return 0;
      depth--;
      from = waiting[depth].from;
      to = waiting[depth].to;
      continue;
    }
    uint32_t pivot = list[(from + to) / 2], down = 0, up = 0;
    for (uint32_t i = from + thread; i < to; i += threads) {
      if (list[i] < pivot) down++;
      else if (list[i] > pivot) up++;
    }
    downs[thread] = down;
    ups[thread] = up;
    heddle_barrier();
    uint32_t low = from, high = to, middle = from, middle_end = to;
    for (uint32_t t = 0; t < threads; t++) {
      if (t < thread) low += downs[t], high -= ups[t];
      middle += downs[t];
      middle_end -= ups[t];
    }
    for (uint32_t i = from + thread; i < to; i += threads) {
      uint32_t value = list[i];
      if (value < pivot) {
        other[low++] = value;
      } else if (value > pivot) {
        other[--high] = value;
      }
      heddle_converge();
    }
    for (uint32_t i = middle + thread; i < middle_end; i += threads) other[i] = pivot;
    heddle_barrier();
    for (uint32_t i = from + thread; i < to; i += threads) list[i] = other[i];
    heddle_barrier();
    if (middle - from < to - middle_end) {
      waiting[depth].from = middle_end;
      waiting[depth].to = to;
      to = middle;
    } else {
      waiting[depth].from = from;
      waiting[depth].to = middle;
      from = middle_end;
    }
    depth++;
  }
}
