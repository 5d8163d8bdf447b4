// The elements of a thread of a launch, and reads and writes of four numbers at once.
#pragma once

#include "kernels/platform.h"
#include "shared/inline.h"

namespace {

LK_INLINE uint64_t first_index() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
LK_INLINE uint64_t index_step() { return (uint64_t)gridDim.x * blockDim.x; }

/* Calls body(i) for every i below n that is this thread's. */
template <class Body>
LK_INLINE void for_each(uint64_t n, Body body) {
  for (uint64_t i = first_index(), step = index_step(); i < n; i += step) body(i);
}

/* body4 for the quads of n elements where they may be read as such, body1 for each of the others. */
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
