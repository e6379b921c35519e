// What the instructions are in C. Vectors are those of GCC and clang; where neither has a name for something that every
// machine does in its own way, there is a loop.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef u8 u8x16 __attribute__((vector_size(16)));

#define VECTORS(BYTES, N32, N64)                                       \
    typedef u32 u32x##N32 __attribute__((vector_size(BYTES)));         \
    typedef i32 i32x##N32 __attribute__((vector_size(BYTES)));         \
    typedef float f32x##N32 __attribute__((vector_size(BYTES)));       \
    typedef u64 u64x##N64 __attribute__((vector_size(BYTES)));         \
    typedef i64 i64x##N64 __attribute__((vector_size(BYTES)));
VECTORS(16, 4, 2)
VECTORS(32, 8, 4)
VECTORS(64, 16, 8)

// The highest bit of each lane.
#define HIGH_BITS(TYPE, LANES, TOP)                                    \
    static inline u32 high_bits_##TYPE(TYPE v) {                       \
        u32 bits = 0;                                                  \
        for (int k = 0; k < LANES; k++)                                \
            bits |= (u32)(v[k] >> TOP) << k;                           \
        return bits;                                                   \
    }
#define HIGH_BITS_BY(TYPE, INSTRUCTION, AS)                            \
    static inline u32 high_bits_##TYPE(TYPE v) {                       \
        return (u32)INSTRUCTION((AS)v);                                \
    }
#ifdef __SSE2__
typedef char bytes __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
HIGH_BITS_BY(u8x16, __builtin_ia32_pmovmskb128, bytes)
HIGH_BITS_BY(u32x4, __builtin_ia32_movmskps, f32x4)
HIGH_BITS_BY(u64x2, __builtin_ia32_movmskpd, f64x2)
#else
HIGH_BITS(u8x16, 16, 7)
HIGH_BITS(u32x4, 4, 31)
HIGH_BITS(u64x2, 2, 63)
#endif
#ifdef __AVX__
typedef double f64x4 __attribute__((vector_size(32)));
HIGH_BITS_BY(u32x8, __builtin_ia32_movmskps256, f32x8)
HIGH_BITS_BY(u64x4, __builtin_ia32_movmskpd256, f64x4)
#else
HIGH_BITS(u32x8, 8, 31)
HIGH_BITS(u64x4, 4, 63)
#endif
#ifdef __AVX512DQ__
HIGH_BITS_BY(u32x16, __builtin_ia32_cvtd2mask512, i32x16)
HIGH_BITS_BY(u64x8, __builtin_ia32_cvtq2mask512, i64x8)
#else
HIGH_BITS(u32x16, 16, 31)
HIGH_BITS(u64x8, 8, 63)
#endif

// A power of two up to 2^31 as a number.
#define WHOLE(LANES)                                                   \
    static inline u32x##LANES whole_f32x##LANES(f32x##LANES v) {       \
        u32x##LANES bits = (u32x##LANES)v;                             \
        u32x##LANES one = bits - bits + 1;                             \
        return one << (bits >> 23) - 127;                              \
    }
#ifdef __SSE2__
static inline u32x4 whole_f32x4(f32x4 v) {
    return (u32x4)__builtin_ia32_cvttps2dq(v);
}
#else
WHOLE(4)
#endif
WHOLE(8)
WHOLE(16)

// Between lanes of 32 and of 64 bits: two vectors of the wider for one of the narrower.
#define WIDEN(HALF, LOW, WIDE, OF32, OF64, MADE)                       \
    static inline OF64 widen_##HALF##_##OF32(MADE v) {                 \
        OF64 wide;                                                     \
        for (int k = 0; k < WIDE; k++)                                 \
            wide[k] = ((OF32)v)[LOW + k];                              \
        return wide;                                                   \
    }
// Of lanes of 64 bits that are all below 2^32 (`narrow` in vector/part.rs), the lower halves.
#define EVEN4 0, 2, 4, 6
#define EVEN8 EVEN4, 8, 10, 12, 14
#define EVEN16 EVEN8, 16, 18, 20, 22, 24, 26, 28, 30
#define BETWEEN(N32, N64)                                              \
    WIDEN(low, 0, N64, u32x##N32, u64x##N64, u32x##N32)                \
    WIDEN(high, N64, N64, u32x##N32, u64x##N64, u32x##N32)             \
    WIDEN(low, 0, N64, i32x##N32, u64x##N64, u32x##N32)                \
    WIDEN(high, N64, N64, i32x##N32, u64x##N64, u32x##N32)             \
    static inline u32x##N32 narrow_u64x##N64(u64x##N64 a, u64x##N64 b) {             \
        return __builtin_shufflevector((u32x##N32)a, (u32x##N32)b, EVEN##N32);       \
    }
BETWEEN(4, 2)
BETWEEN(8, 4)
BETWEEN(16, 8)

// The bits in the opposite order.
static inline u64 reverse64(u64 v) {
    v = (v >> 1 & 0x5555555555555555ull) | (v & 0x5555555555555555ull) << 1;
    v = (v >> 2 & 0x3333333333333333ull) | (v & 0x3333333333333333ull) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0full) | (v & 0x0f0f0f0f0f0f0f0full) << 4;
    return __builtin_bswap64(v);
}
static inline u32 reverse32(u32 v) {
    return (u32)(reverse64(v) >> 32);
}
static inline u8 reverse8(u8 v) {
    return (u8)(reverse64(v) >> 56);
}
