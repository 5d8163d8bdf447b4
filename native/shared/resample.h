/* A bilinear resize: the positions it reads and their weights, and their sum. Before `weighted` is used, the including
 * file defines `fused` for its vectors. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "shared/inline.h"

// One fused multiply-add on both sides gives every unclamped position the float that a product in double gave.
namespace {

/* Two positions of the input and their weights: align_corners false, no antialias, edges clamped. */
struct Tap {
  int32_t first, second;
  float first_weight, second_weight;
};

/*
 * For an output position the two input positions and their weights; ratio is f32(in) / f32(out). The source position is
 * PyTorch's scale * (i + 0.5) - 0.5 in float32 with a fused multiply-add.
 */
LK_INLINE Tap tap_at(uint32_t position, uint32_t in, float ratio) {
  float at = fmaf(ratio, (float)position + 0.5f, -0.5f);
  if (at < 0.0f) at = 0.0f;
  uint32_t low = (uint32_t)at;
  if (low > in - 1) low = in - 1;
  float fraction = at - (float)low;
  // far beyond 2^24 positions a float steps over pixels
  if (fraction > 1.0f) fraction = 1.0f;
  return {(int32_t)low, (int32_t)(low < in - 1 ? low + 1 : low), 1.0f - fraction, fraction};
}

/* w0 * first + w1 * second, the second term added by fma, as PyTorch's kernel rounds. */
template <class V, class W>
LK_INLINE V weighted(V first, W w0, V second, W w1) {
  return fused(second, w1, first * w0);
}

}  // namespace
