// The names that native/shared is written in, for one number.
#pragma once

#include <math.h>

#include "kernels/platform.h"
#include "shared/inline.h"

#define LK_HAS_FMA 1
#define LK_CONVERTS_WORDS 1 /* unsigned numbers to floats, rounded once */

namespace {

typedef float Floats;
typedef int32_t Ints;
typedef uint32_t Words;

LK_INLINE float fused(float a, float b, float c) { return fmaf(a, b, c); }
LK_INLINE float root(float v) { return sqrtf(v); }
LK_INLINE float to_floats(int32_t v) { return (float)v; }
LK_INLINE int32_t to_ints(float v) { return (int32_t)v; }
LK_INLINE float where_clear(uint32_t words, uint32_t bits, float a, float b) { return (words & bits) == 0 ? a : b; }

#if defined(__CUDACC__)
LK_INLINE int32_t bits_of(float v) { return __float_as_int(v); }
LK_INLINE float float_of(uint32_t v) { return __uint_as_float(v); }
#else
LK_INLINE int32_t bits_of(float v) { return __builtin_bit_cast(int32_t, v); }
LK_INLINE float float_of(uint32_t v) { return __builtin_bit_cast(float, v); }
#endif

}  // namespace
