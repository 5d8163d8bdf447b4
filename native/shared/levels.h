/* Floats of images and their bytes. */
#pragma once

#include <stdint.h>

#include "shared/inline.h"

namespace {

/* x * 255, clipped and truncated; the comparisons send NaN to 0. */
LK_INLINE int32_t to_level(float x) {
  float v = x * 255.0f;
  v = v > 0.0f ? v : 0.0f;
  v = v < 255.0f ? v : 255.0f;
  return (int32_t)v;
}

LK_INLINE float from_level(uint8_t level) { return (float)level / 255.0f; }

/* The mean of three equal values is not always the value: torch adds, then divides. */
LK_INLINE float mean_of_three(float x) {
  float v = (float)to_level(x) / 255.0f;
  return (v + v + v) / 3.0f;
}

/* Clamped to 0 … 1; NaN is 0. */
LK_INLINE float in_unit(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }

}  // namespace
