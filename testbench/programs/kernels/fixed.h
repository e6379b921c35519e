/* Numbers in fixed point, vectors of them, and random numbers. */
#ifndef FIXED_H
#define FIXED_H

#include "heddle.h"

enum { FRACTION_BITS = 12, ONE = 1 << FRACTION_BITS };

/* In units of 2^-FRACTION_BITS, as all numbers. */
typedef struct {
  int32_t x, y, z;
} vector;

static inline int32_t times(int32_t a, int32_t b) { return (a * b) >> FRACTION_BITS; }
static inline int32_t dot(vector a, vector b) { return (a.x * b.x + a.y * b.y + a.z * b.z) >> FRACTION_BITS; }
static inline vector scaled(vector a, int32_t by) { return (vector){times(a.x, by), times(a.y, by), times(a.z, by)}; }
static inline vector plus(vector a, vector b) { return (vector){a.x + b.x, a.y + b.y, a.z + b.z}; }
static inline vector minus(vector a, vector b) { return (vector){a.x - b.x, a.y - b.y, a.z - b.z}; }

/* Marsaglia's xorshift; never 0. */
static inline uint32_t next(uint32_t *state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return *state = x;
}

#endif
