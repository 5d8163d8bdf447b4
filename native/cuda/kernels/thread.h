// The work of one thread of a launch: its elements, four numbers at once, and the names that native/shared is written
// in, for one number.
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

LK_INLINE uint64_t first_index() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
LK_INLINE uint64_t index_step() { return (uint64_t)gridDim.x * blockDim.x; }

/* Calls body(i) for every i below n that is this thread's. */
template <class Body>
LK_INLINE void for_each(uint64_t n, Body body) {
  for (uint64_t i = first_index(), step = index_step(); i < n; i += step) body(i);
}

/* body4 for the quads of n elements if they may be read as such, body1 for each of the others. */
template <class Body4, class Body1>
LK_INLINE void for_quads(uint64_t n, bool quads, Body4 body4, Body1 body1) {
  uint64_t done = quads ? n & ~(uint64_t)3 : 0;
  for_each(done / 4, [=](uint64_t i) { body4(4 * i); });
  for_each(n - done, [=](uint64_t i) { body1(done + i); });
}

LK_INLINE bool aligned(const void *p, unsigned bytes = 16) { return ((uintptr_t)p & (bytes - 1)) == 0; }

LK_INLINE float4 load4(const float *p) { return *(const float4 *)p; }
LK_INLINE void store4(float *p, float4 v) { *(float4 *)p = v; }

}  // namespace
