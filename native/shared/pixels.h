/* Floats of images and their bytes, and the filters of PNG rows. */
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

/* ---- filters of PNG rows, byte by byte ---- */
enum Filter { kNone, kSub, kUp, kAverage, kPaeth, kFilters };

/* The nearest of the three to left + above - corner, the first of equals. */
LK_INLINE uint8_t byte_paeth(uint8_t left, uint8_t above, uint8_t corner) {
  int pa = above - corner, pb = left - corner, pc = pa + pb;
  pa = pa < 0 ? -pa : pa, pb = pb < 0 ? -pb : pb, pc = pc < 0 ? -pc : pc;
  return pa <= pb && pa <= pc ? left : pb <= pc ? above : corner;
}

template <Filter F>
LK_INLINE uint8_t predict_byte(uint8_t left, uint8_t above, uint8_t corner) {
  if constexpr (F == kSub) return left;
  if constexpr (F == kUp) return above;
  if constexpr (F == kAverage) return (uint8_t)((left + above) >> 1);
  if constexpr (F == kPaeth) return byte_paeth(left, above, corner);
  return 0;
}

/* A byte's distance from 0, modulo 256; a row takes the filter of the least sum, the lowest of equals. */
LK_INLINE uint32_t byte_cost(uint8_t v) { return v < 128 ? v : 256u - v; }

}  // namespace
