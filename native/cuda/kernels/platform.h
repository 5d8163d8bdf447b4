// The language of the kernels: CUDA, or its names for a C++ compiler, so that tests run the kernels without a GPU.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shared/inline.h"

namespace {

constexpr unsigned kWarp = 32;

}  // namespace

#if defined(__CUDACC__)

#define LK_KERNEL extern "C" __global__ void
#define LK_SHARED __shared__
#define LK_UNROLL _Pragma("unroll")
#define LK_ROLLED _Pragma("unroll 1")

namespace {

/* The value of lane `from` of the warp, whose threads must all ask; of whole words, a word at a time. */
template <class T>
__device__ __forceinline__ T shuffled(T value, unsigned from) {
  static_assert(sizeof(T) % sizeof(unsigned) == 0);
  unsigned words[sizeof(T) / sizeof(unsigned)];
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (unsigned k = 0; k < sizeof(T) / sizeof(unsigned); k++) words[k] = __shfl_sync(0xffffffffu, words[k], from);
  memcpy(&value, words, sizeof value);
  return value;
}

}  // namespace

#else

#define LK_KERNEL extern "C" void
#define LK_SHARED static /* blocks run one after another */
#define LK_UNROLL
#define LK_ROLLED

struct lk_index {
  unsigned x;
};
extern thread_local lk_index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};

void __syncthreads();
/* Every thread of a warp leaves a value and reads that of lane `from`. */
void lk_exchange(const void *mine, void *theirs, size_t bytes, unsigned from);

inline void __threadfence() {}
template <class T>
T atomicAdd(T *at, T value) {
  T before = *at;
  *at += value;
  return before;
}

namespace {

template <class T>
T shuffled(T value, unsigned from) {
  T result;
  lk_exchange(&value, &result, sizeof value, from);
  return result;
}

}  // namespace

#endif

namespace {

/* The value of the lane `by` further up, its own if there is none. */
template <class T>
LK_INLINE T from_lane_above(T value, unsigned by) {
  const unsigned lane = threadIdx.x % kWarp;
  return shuffled(value, lane + by < kWarp ? lane + by : lane);
}

}  // namespace
