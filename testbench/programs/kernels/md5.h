/* The steps of MD5 (RFC 1321). */
#ifndef MD5_H
#define MD5_H

#include <stdint.h>

static inline uint32_t rotated(uint32_t x, uint32_t by) { return x << by | x >> (32 - by); }
static inline uint32_t f(uint32_t x, uint32_t y, uint32_t z) { return z ^ (x & (y ^ z)); }
static inline uint32_t g(uint32_t x, uint32_t y, uint32_t z) { return y ^ (z & (x ^ y)); }
static inline uint32_t h(uint32_t x, uint32_t y, uint32_t z) { return x ^ y ^ z; }
static inline uint32_t i(uint32_t x, uint32_t y, uint32_t z) { return y ^ (x | ~z); }

#endif
