// What a kernel is written in: CUDA, or the same names for a host compiler, whose tests run the kernels without a GPU.
#ifndef LATENTKIT_CUDA_PLATFORM_H
#define LATENTKIT_CUDA_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)

#define LK_KERNEL extern "C" __global__ void
#define LK_SHARED __shared__

namespace {

/* The value of the lane `by` further up in the warp. */
template <class T>
__device__ __forceinline__ T from_lane_above(T value, unsigned by) {
  return __shfl_down_sync(0xffffffffu, value, by);
}

}  // namespace

#else

#define LK_KERNEL extern "C" void
#define LK_SHARED static /* blocks run one after another */

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
/* Every thread of a warp leaves a value, and reads that of the one `by` further up (its own where there is none). */
void lk_exchange(const void *mine, void *theirs, size_t bytes, unsigned by);

inline void __threadfence() {}
template <class T>
T atomicAdd(T *at, T value) {
  T before = *at;
  *at += value;
  return before;
}

namespace {

template <class T>
T from_lane_above(T value, unsigned by) {
  T result;
  lk_exchange(&value, &result, sizeof value, by);
  return result;
}

}  // namespace

#endif

#endif
