// Where a thread stands in its launch.
#ifndef LATENTKIT_CUDA_GRID_H
#define LATENTKIT_CUDA_GRID_H

#include "kernels/platform.h"
#include "shared/inline.h"

namespace {

LK_INLINE uint64_t first_index() { return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; }
LK_INLINE uint64_t index_step() { return (uint64_t)gridDim.x * blockDim.x; }

LK_INLINE bool aligned(const void *p) { return ((uintptr_t)p & 15) == 0; }

}  // namespace

#endif
