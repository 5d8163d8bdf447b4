// Descriptions of planes and masks for the kernels.
#ifndef LATENTKIT_CUDA_MASKS_H
#define LATENTKIT_CUDA_MASKS_H

#include <cstddef>

#include "kernels/kernels.h"

namespace latentkit::cuda {

/* All sizes above 0 and within 31 bits. */
inline lk_sizes sizes_of(size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  return {static_cast<uint32_t>(in_h),
          static_cast<uint32_t>(in_w),
          static_cast<uint32_t>(out_h),
          static_cast<uint32_t>(out_w),
          static_cast<float>(in_h) / static_cast<float>(out_h),
          static_cast<float>(in_w) / static_cast<float>(out_w)};
}

/* A mask [count, mask_h, mask_w] for planes of h x w, read as it is where the sizes are equal. */
inline lk_mask mask_of(const float *data, size_t count, size_t channels, size_t mask_h, size_t mask_w, size_t h,
                       size_t w) {
  return {data, count, channels, h * w, mask_h != h || mask_w != w, sizes_of(mask_h, mask_w, h, w)};
}

}  // namespace latentkit::cuda

#endif
