// Launches of PyTorch's generator as the kernels take them.
#ifndef LATENTKIT_CUDA_DRAW_H
#define LATENTKIT_CUDA_DRAW_H

#include "launch.h"
#include "shared/checks.h"

namespace latentkit::cuda {

inline lk_draw draw_of(uint64_t seed, uint64_t offset, const PhiloxLaunch &like, float k) {
  return {seed, offset / 4, like.threads, like.rows * like.threads, k};
}

}  // namespace latentkit::cuda

#endif
