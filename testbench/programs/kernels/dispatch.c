/* A table of functions indexed by data: one jalr goes to many targets at once. */
#include "heddle.h"

enum { CAPACITY = HEDDLE_SIZE(4096, 1024), OPERATIONS = 8 };

HEDDLE_ARG(uint32_t, length, CAPACITY);
HEDDLE_BUFFER(uint32_t, operation, CAPACITY);
HEDDLE_BUFFER(uint32_t, x, CAPACITY);
HEDDLE_BUFFER(uint32_t, y, CAPACITY);
HEDDLE_BUFFER(uint32_t, result, CAPACITY);

static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t multiply_high(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }
/* 64 bits wide: a call into libgcc. */
static uint32_t divide(uint32_t a, uint32_t b) { return ((uint64_t)a << 16) / b; }
static uint32_t remainder(uint32_t a, uint32_t b) { return (uint32_t)((int32_t)a % (int32_t)b); }
static uint32_t rotate(uint32_t a, uint32_t b) { return a << (b & 31) | a >> (-b & 31); }
static uint32_t least(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }

static uint32_t ones(uint32_t a, uint32_t b) {
  uint32_t count = 0;
  for (uint32_t bits = a ^ b; bits; bits &= bits - 1) count++;
  return count;
}

static uint32_t hash(uint32_t a, uint32_t b) {
  uint32_t h = 2166136261u;
  for (int shift = 0; shift < 32; shift += 8) h = (h ^ ((a + b) >> shift & 255)) * 16777619u;
  return h;
}

static uint32_t (*const table[OPERATIONS])(uint32_t, uint32_t) = {
    add, multiply_high, divide, remainder, rotate, least, ones, hash,
};

int main(void) {
  uint32_t n = length, threads = heddle_threads();
  for (uint32_t i = heddle_thread(); i < n; i += threads) result[i] = table[operation[i]](x[i], y[i]);
  return 0;
}
