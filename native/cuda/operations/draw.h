// Launches of PyTorch's generator as the kernels take them.
#pragma once

#include "launch.h"
#include "shared/checks.h"

// decision 84
namespace latentkit::cuda {

inline lk_draw draw_of(uint64_t seed, uint64_t offset, const PhiloxLaunch &like, float k) {
  return {seed, offset / 4, lk_divisor(like.threads), like.rows * like.threads, k};
}

/* n values, n above 0. */
inline engine_status make_normals(engine_cuda &device, float *out, size_t n, const lk_draw &draw) {
  return LK_LAUNCH(device, philox_normals, blocks_for(draw.counters / 4), out, draw, n);
}

}  // namespace latentkit::cuda
