// Descriptions of planes and masks for the kernels, and masks that are resized ahead.
#pragma once

#include <cstddef>

#include "device.h"

// A mask that at least four planes read is resized ahead: each would repeat some 250 instructions per element.
namespace latentkit::cuda {

/* All sizes above 0 and within 31 bits. */
inline lk_sizes sizes_of(size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  return {static_cast<uint32_t>(in_h),
          static_cast<uint32_t>(in_w),
          lk_divisor(out_h),
          lk_divisor(out_w),
          static_cast<float>(in_h) / static_cast<float>(out_h),
          static_cast<float>(in_w) / static_cast<float>(out_w)};
}

/* A mask [count, mask_h, mask_w] for planes of h x w, read as it is if the sizes are equal. */
inline lk_mask mask_of(const float *data, size_t count, size_t channels, size_t mask_h, size_t mask_w, size_t h,
                       size_t w) {
  return {data,
          lk_divisor(count),
          lk_divisor(channels),
          lk_divisor(h * w),
          mask_h != h || mask_w != w,
          sizes_of(mask_h, mask_w, h, w)};
}

/* Resizes the mask into `memory` if it is to be resized. */
inline engine_status resize_now(engine_cuda &device, Block &memory, lk_mask *mask) {
  if (!mask->resized) return ENGINE_OK;
  const size_t n = mask->count.by * mask->plane.by;
  if (const engine_status taken = memory.take(n * sizeof(float)); taken != ENGINE_OK) return taken;
  auto *resized = memory.as<float>();
  const engine_status status = LK_LAUNCH(device, resize, blocks_for(n), resized, mask->data, n, mask->sizes);
  mask->data = resized;
  mask->resized = 0;
  return status;
}

/* resize_now if many planes read the mask, `readers` of them: a resize in each costs more than the memory. With few
 * readers, or without memory, the mask stays as it is: same bits. */
inline engine_status resize_ahead(engine_cuda &device, Block &memory, size_t readers, lk_mask *mask) {
  constexpr size_t kMany = 4;
  if (readers / kMany < mask->count.by) return ENGINE_OK;
  const engine_status status = resize_now(device, memory, mask);
  return mask->resized && status == ENGINE_NO_MEMORY ? ENGINE_OK : status;
}

}  // namespace latentkit::cuda
